"""The ties explorer: its script gives the library's scores, and its page moves."""

import numpy as np
import pytest

from biohash_mini.metrics import average_precision

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from traitlets import TraitError

from biohash_mini.widgets import TiesExplorer

TIES = ("expected", "best", "worst")


def rankings(n_cases=30):
    rng = np.random.default_rng(0)
    for _ in range(n_cases):
        n = int(rng.integers(1, 11))
        yield np.sort(rng.integers(0, 4, n)).tolist(), rng.integers(0, 2, n).tolist(), int(rng.integers(1, n + 1))


def test_the_script_gives_the_exact_bounds(script):
    cases = list(rankings())
    got = script(TiesExplorer, "x.cases.map((c) => js.bounds(...c))", cases=cases)
    want = [[average_precision(np.array(d), np.array(r, bool), at=R, ties=t)[0] for t in TIES] for d, r, R in cases]
    np.testing.assert_allclose([[found[t] for t in TIES] for found in got], want, atol=1e-12)


def test_relevant_first_is_best_for_a_whole_ranking(script):
    widget = TiesExplorer()
    order = script(TiesExplorer, "js.sorted(x.d, x.r, 1)", d=widget.distances, r=widget.relevant)
    widget.order = order
    assert widget.score() == pytest.approx(widget.score("best"))


def test_an_item_cannot_leave_its_tie():
    widget = TiesExplorer()
    with pytest.raises(TraitError, match="inside its tie"):
        widget.order = [7, 1, 2, 3, 4, 5, 6, 0]


def test_distances_must_ascend():
    with pytest.raises(ValueError, match="ascending"):
        TiesExplorer(distances=[2, 0], relevant=[1, 0])


def test_an_item_moves_inside_its_tie_and_the_score_follows(show):
    page = show(TiesExplorer())
    verdict = page.locator(".bh-verdict")
    before = verdict.inner_text()
    page.get_by_label("item b, rank 2").click()
    assert page.get_by_label("item b, rank 1, not relevant").evaluate("el => el === document.activeElement")
    assert verdict.inner_text() != before
    page.keyboard.press("ArrowRight")
    assert verdict.inner_text() == before


def test_buttons_reach_the_bounds_and_the_cut_changes_them(show):
    widget = TiesExplorer()
    page = show(widget)
    page.get_by_role("button", name="Relevant first").click()
    assert f"AP {widget.score('best'):.3f} in this order" in page.locator(".bh-verdict").inner_text()
    page.get_by_role("button", name="Relevant last").click()
    assert f"AP {widget.score('worst'):.3f} in this order" in page.locator(".bh-verdict").inner_text()
    page.get_by_label("items that count, R").fill("4")
    widget.at = 4
    assert f"best {widget.score('best'):.3f}" in page.locator(".bh-scale").inner_text()
