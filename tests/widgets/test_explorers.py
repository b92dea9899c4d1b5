"""The explorers of retrievals and of results: their scripts against Python, in a browser, and with a kernel."""

import base64
import io
import itertools
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from biohash_mini import BioHash, DenseCodes, HammingIndex, SparseCodes
from biohash_mini.datasets import Task, load
from biohash_mini.hashers import LSH, PCAHash
from biohash_mini.reproduction import report, results
from biohash_mini.reproduction.declarations import EXPERIMENTS
from book.build import BUILD
from tests.helpers import record

from .browser import luminance, until

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from PIL import Image

from biohash_mini.widgets import ResultsExplorer, RetrievalExplorer
from biohash_mini.widgets.explorer import FIELDS
from biohash_mini.widgets.retrieval import packed_codes

TOP = 15


@pytest.fixture(scope="module")
def task():
    """A few hundred real digits to search, and forty to search with."""
    whole = load("mnist").retrieval_task(queries_per_class=4)
    rows = slice(0, 600)
    return Task(
        database=whole.database[rows],
        queries=whole.queries,
        database_labels=whole.database_labels[rows],
        query_labels=whole.query_labels,
        image_shape=whole.image_shape,
    )


def hashed(task, hasher):
    hasher.fit(task.database)
    return hasher.encode(task.queries), hasher.encode(task.database)


@pytest.fixture(scope="module")
def codes(task):
    """Codes of two methods; LSH is also there at a length at which BioHash is not."""
    found = {("LSH", k): hashed(task, LSH(k)) for k in (4, 8, 16)}
    return found | {("BioHash", k): hashed(task, BioHash(k, activity=k / 40, max_epochs=2)) for k in (2, 4)}


@pytest.fixture
def make(task, codes):
    """Make a retrieval explorer of some digits; with ``fit`` it can make other codes."""

    def explorer(**options):
        options = {"n_queries": 20, "n_database": 300, "hash_length": 4} | options
        return RetrievalExplorer(task, codes, **options)

    return explorer


@pytest.fixture
def recorded(tmp_path):
    """Report cells of a folder where a few values of MNIST are recorded."""
    where = tmp_path / "results"
    for seed, value in enumerate([11.0, 12.0]):
        results.append("mnist", record(value=value, seed=seed), where)
    results.append("mnist", record("BioHash", 4, 40.0, best=60.0, worst=30.0), where)
    return list(report.cells(["mnist", "smoothness"], where=where))


# ---------------------------------------------------------------- retrieval: the mathematics


def some_codes(seed=0, n=40):
    rng = np.random.default_rng(seed)
    for m, k in [(40, 2), (64, 5), (320, 16), (7840, 3)]:
        yield SparseCodes(np.argsort(rng.random((n, m)), axis=1)[:, :k], m)
    for m in (2, 8, 21):
        yield DenseCodes(np.packbits(rng.integers(0, 2, (n, m), dtype=np.uint8), axis=1), m)


def test_codes_arrive_in_the_script_as_they_are(script):
    for found in some_codes():
        got = script(RetrievalExplorer, "js.read(x.table).rows", table=packed_codes(found))
        want = found.active if isinstance(found, SparseCodes) else found.to_matrix()
        np.testing.assert_array_equal(got, want)
        stored = len(base64.b64decode(packed_codes(found)["bits"])) / len(found)
        assert stored == -(-found.bits_per_item // 8)  # k ⌈log₂ m⌉ bits, or m, in whole bytes


def test_distances_and_matches_are_those_of_the_codes(script):
    expression = """(() => { const codes = js.read(x.table), all = codes.rows.map((_, i) => i);
        return all.map((i) => all.map((j) => [js.hamming(codes, i, j), js.matches(codes, i, j).filter(Boolean).length]))
    })()"""
    for found in some_codes(1, 15):
        far, same = np.moveaxis(np.array(script(RetrievalExplorer, expression, table=packed_codes(found))), -1, 0)
        np.testing.assert_array_equal(far, found.hamming(found))
        bits = found.to_matrix()
        bits = bits.toarray() if isinstance(found, SparseCodes) else bits
        sparse = (bits[:, None] & bits).sum(2)
        np.testing.assert_array_equal(
            same, sparse if isinstance(found, SparseCodes) else (bits[:, None] == bits).sum(2)
        )


def test_the_ranking_is_the_exact_search_with_ties_by_item(script):
    for found in some_codes(2):
        expression = "js.ranking(js.read(x.table), 3, 10).map(({ item, far }) => [far, item])"
        got = np.array(script(RetrievalExplorer, expression, table=packed_codes(found)))
        distances, ids = HammingIndex(found[10:]).search(found[3], top=30)
        np.testing.assert_array_equal(got, np.stack([distances[0], ids[0] + 10], axis=1))


def test_an_item_of_the_database_does_not_find_itself(script):
    found = next(some_codes(3))
    items = script(
        RetrievalExplorer, "js.ranking(js.read(x.table), 12, 10).map((a) => a.item)", table=packed_codes(found)
    )
    assert sorted(items) == [i for i in range(10, 40) if i != 12]


def test_the_expected_precision_is_the_mean_over_all_orders_of_the_tie(script):
    far, labels = [0, 1, 1, 1, 1, 1, 2], [1, 0, 1, 1, 0, 0, 1]
    ranked = [{"item": i, "far": f} for i, f in enumerate(far)]
    got = script(RetrievalExplorer, "js.judge(x.ranked, x.labels, 1, 3)", ranked=ranked, labels=labels)
    by_hand = np.mean([(labels[0] + labels[a] + labels[b]) / 3 for a, b in itertools.permutations(range(1, 6), 2)])
    assert got.pop("expected") == pytest.approx(by_hand)
    assert got == {"right": 2, "last": 1, "tied": 5, "places": 2}


def test_other_tie_orders_keep_the_distances_and_average_to_the_expected_precision(script):
    rng = np.random.default_rng(4)
    found = DenseCodes(np.packbits(rng.integers(0, 2, (80, 1), dtype=np.uint8), axis=1), 1)  # two distances: two ties
    expression = """(() => { const codes = js.read(x.table);
        return Array.from({ length: 400 }, (_, order) => {
            const ranked = js.ranking(codes, 0, 1, order), score = js.judge(ranked, x.labels, 1, 15);
            return [score.right / 15, score.expected, ranked.reduce((sum, { far }, i) => sum + i * far, 0)];
        }) })()"""
    labels = rng.integers(0, 2, 80).tolist()
    runs = np.array(script(RetrievalExplorer, expression, table=packed_codes(found), labels=labels))
    assert len(np.unique(runs[:, 0])) > 5
    assert np.ptp(runs[:, 1]) == np.ptp(runs[:, 2]) == 0
    assert runs[1:, 0].mean() == pytest.approx(runs[0, 1], abs=0.03)  # 400 orders: a standard error of 0.005


# ---------------------------------------------------------------- retrieval: the widget


def test_the_page_carries_the_images_where_the_script_looks_for_them(make, task):
    widget = make()
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(widget.sheet.split(",")[1]))).convert("L"))
    for item in (0, 19, 20, 319):
        x, y = widget.side * (item % widget.columns), widget.side * (item // widget.columns)
        shown = image[y : y + 28, x : x + 28]
        row = task.queries[widget._queries[item]] if item < 20 else task.database[widget._database[item - 20]]
        assert np.abs(shown - (255 - 255 * row.reshape(28, 28))).mean() < 6  # 16 levels of grey
    assert widget.labels[:4] == [0, 0, 1, 1]
    assert np.bincount(widget.labels[20:]).tolist() == [30] * 10


def test_python_and_script_rank_alike(script, make):
    widget = make(query=11, method="LSH", hash_length=8)
    far, items = widget.ranking()
    expression = "js.ranking(js.read(x.table), 11, x.first).slice(0, 15).map(({ item, far }) => [far, item])"
    got = np.array(script(widget, expression, table=widget.tables["LSH"]["8"], first=widget.n_queries))
    np.testing.assert_array_equal(got, np.stack([far, items], axis=1))


def test_a_kernel_fits_the_lengths_that_the_page_does_not_carry(make, task):
    asked = []

    def fit(method, k):
        asked.append((method, k))
        return hashed(task, {"LSH": LSH, "BioHash": PCAHash}[method](k))

    widget = make(fit=fit, method="LSH")
    assert not asked
    widget.hash_length = 11
    widget.hash_length = 4
    widget.hash_length = 11
    assert asked == [("LSH", 11)]
    assert {name: widget.fresh[name] for name in ("method", "hash_length", "k")} == {
        "method": "LSH",
        "hash_length": 11,
        "k": 11,
    }
    with widget.hold_trait_notifications():
        widget.method, widget.hash_length = "BioHash", 999
    assert "trouble" in widget.fresh
    assert "999" in widget.fresh["trouble"]
    assert make(fit=fit, method="LSH", hash_length=5).fresh["k"] == 5


def test_without_a_way_to_fit_only_what_is_carried_can_be_shown(make):
    widget = make()
    widget.hash_length = 11
    assert widget.fresh == {}
    assert not widget.can_fit
    with pytest.raises(ValueError, match="no codes of BioHash at k = 11"):
        make(method="BioHash", hash_length=11)


def test_the_still_picture_frames_right_and_wrong_answers_differently(make):
    widget = make(query=9)
    frames = list(ET.fromstring(widget.picture()).iter("{http://www.w3.org/2000/svg}rect"))
    _, items = widget.ranking()
    right = np.array(widget.labels)[items] == widget.labels[9]
    assert [f.get("stroke-dasharray") is None for f in frames] == right.tolist()


# ---------------------------------------------------------------- results: the numbers


def test_cells_arrive_in_the_script_as_the_report_has_them(script, recorded):
    widget = ResultsExplorer(recorded)
    got = [c for e in widget.experiments for c in script(widget, "js.cellsOf(x.e, x.fields)", e=e, fields=FIELDS)]
    assert len(got) == len(recorded)
    for cell, want in zip(got, recorded, strict=True):
        numbers = {name: pytest.approx(want[name], abs=0.005) for name in FIELDS if isinstance(want[name], float)}
        assert cell == {name: want[name] for name in FIELDS} | numbers


@pytest.mark.parametrize(("low", "high"), [(0, 80.3), (12, 13.1), (-3, 4), (0, 1), (0, 4000), (0.03, 0.31)])
def test_ticks_are_round_even_and_few(script, low, high):
    got = np.array(script(ResultsExplorer, "js.ticks(x.low, x.high)", low=low, high=high))
    assert 2 <= len(got) <= 7
    assert low <= got.min() <= got.max() <= high
    steps = np.diff(got)
    np.testing.assert_allclose(steps, steps[0])
    assert f"{steps[0]:e}"[0] in "125"
    np.testing.assert_allclose(got / steps[0], np.round(got / steps[0]), atol=1e-9)


def test_the_range_holds_the_bounds_or_only_the_values(script, recorded):
    cells = [c for c in recorded if c["experiment"] == "mnist"]
    low, high = script(ResultsExplorer, "js.range(x.cells, true)", cells=cells)
    assert low == 0
    assert high > max(c["best"] for c in cells if c["best"])
    few = [{"paper": 20.0, "ours": 21.0, "worst": 1.0, "best": 90.0}]
    low, high = script(ResultsExplorer, "js.range(x.few, false)", few=few)
    assert 19 < low < 20
    assert 21 < high < 22
    assert script(ResultsExplorer, "js.range([], true)")[0] == 0


def test_methods_stand_side_by_side_inside_their_column(script):
    places = np.array(script(ResultsExplorer, "x.all.map((a) => js.place(...a))", all=[[1, 4, i, 5] for i in range(5)]))
    assert 0.25 < places.min() < places.max() < 0.5
    assert (np.diff(places) > 0).all()


def test_a_cell_is_spelt_out_with_what_it_has_and_what_it_lacks(script, recorded):
    found = {(c["method"], c["hash_length"]): c for c in recorded}

    def spelt(method, k):
        return dict(script(ResultsExplorer, "js.spell(x.cell)", cell=found[method, k]))

    lsh = spelt("LSH", 2)
    assert lsh["paper"] == "12.45"
    assert lsh["ours"] == "11.50 ± 0.71 (2 seeds)"
    assert lsh["ours − paper"] == "−0.95"
    assert lsh["tie orders"] == "5.00 to 40.00"
    assert lsh["verdict"] == "✓ reproduced"
    assert spelt("BioHash", 4)["ours"] == "40.00 (1 seed)"
    assert spelt("BioHash", 4)["verdict"] == "✗ deviates"
    assert spelt("ITQ", 8) == {"paper": "38.44", "ours": "missing", "verdict": "missing"}
    assert spelt("BioHash", 64)["paper"] == "not printed"


def test_results_are_read_anew_when_the_page_asks(monkeypatch, recorded, tmp_path):
    widget = ResultsExplorer(recorded)
    results.append("mnist", record("ITQ", 2, 21.0), tmp_path / "results")
    anew = list(report.cells(["mnist", "smoothness"], where=tmp_path / "results"))
    monkeypatch.setattr(report, "cells", lambda: iter(anew))
    widget._on_message(None, {"reload": True}, [])
    measured = [c[FIELDS.index("ours")] for e in widget.experiments for c in e["cells"]]
    assert [m for m in measured if m is not None] == [11.5, 21.0, 40.0]


def test_rows_of_different_methods_have_different_colours():
    for experiment in ResultsExplorer().experiments:
        methods = {row.label: row.method for row in EXPERIMENTS[experiment["name"]].all_rows()}
        of_color = {}
        for row in experiment["methods"]:  # those that only the paper has are methods of their own
            of_color.setdefault(row["color"], set()).add(methods.get(row["name"], row["name"]))
        assert {color: found for color, found in of_color.items() if len(found) > 1} == {}, experiment["name"]


# ---------------------------------------------------------------- their pages


@pytest.fixture(params=["retrieval", "results"])
def widget(request, make):
    return make() if request.param == "retrieval" else ResultsExplorer()


def test_the_page_is_small_whole_and_asks_for_nothing(widget):
    html = widget.html()
    assert html.count("</script") == html.count("<script") == 1
    payload = json.loads(re.search(r"const { esm, state } = (.*);\n", html)[1])
    assert payload == {"esm": widget._esm, "state": widget.state()}
    assert set(re.findall(r"https?://[\w./]*", html)) == {"http://www.w3.org/2000/svg"}
    assert len(html) < 200_000


@pytest.mark.parametrize("width", [340, 820])
def test_the_explorer_fits_the_screen(show, widget, width):
    page = show(widget, width=width)
    page.locator(".bh select").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for control in page.locator(".bh :is(button, select, input, .bh-chart)").all():
        box = control.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width


@pytest.mark.parametrize("dark", [False, True])
def test_the_explorer_is_readable_in_light_and_dark(show, widget, dark):
    page = show(widget, head=f'<html data-theme="{"dark" if dark else "light"}">')
    page.locator(".bh select").first.wait_for()
    ink, paper = luminance(page, ".bh", "color"), luminance(page, ".bh", "backgroundColor")
    assert (ink > paper + 300) if dark else (ink < paper - 300)


def test_every_control_has_a_name_and_can_be_reached(show, widget):
    page = show(widget)
    page.locator(".bh select").first.wait_for()
    stops = page.locator(".bh :is(button, select, input, [tabindex]):not([tabindex='-1']):not(:disabled)").count()
    names = []
    for _ in range(stops):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent"))
    assert len(set(names)) == stops
    assert all(names)


def test_without_scripts_it_is_a_picture_and_a_sentence(show, widget):
    page = show(widget, java_script_enabled=False)
    assert page.locator("noscript svg").bounding_box()["width"] > 200
    assert widget.sentence in page.locator("noscript").inner_text()


# ---------------------------------------------------------------- retrieval in a browser


def right(page):
    return int(re.search(r"(\d+) of the first", page.locator(".bh-verdict").inner_text())[1])


def test_a_click_on_a_query_searches_and_marks_right_and_wrong(show, make):
    widget = make(method="LSH", hash_length=8)
    page = show(widget)
    for query in (0, 13):
        page.get_by_role("radio").nth(query).click()
        assert page.get_by_role("radio", checked=True).get_attribute("aria-label").startswith(f"query {query + 1},")
        widget.query = query
        far, items = widget.ranking()
        hits = np.array(widget.labels)[items] == widget.labels[query]
        until(lambda hits=hits: right(page) == hits.sum())
        tiles = page.locator(".bh-answers button")
        names = [tile.get_attribute("aria-label") for tile in tiles.all()]
        assert [f"distance {f}," in name for f, name in zip(far, names, strict=True)] == [True] * TOP
        signs = [tile.inner_text().strip()[0] for tile in tiles.all()]
        assert signs == ["✓" if hit else "✗" for hit in hits]
        borders = [tile.evaluate("e => getComputedStyle(e).borderTopStyle") for tile in tiles.all()]
        assert borders == ["solid" if hit else "dashed" for hit in hits]


def test_the_images_are_drawn(show, make):
    page = show(make())
    ink = "c => [...c.getContext('2d').getImageData(0, 0, 28, 28).data].filter((v, i) => i % 4 === 0 && v < 99).length"
    for canvas in page.locator(".bh canvas").all():
        until(lambda canvas=canvas: canvas.evaluate(ink) > 10)


def test_method_and_length_can_be_chosen_and_a_length_that_is_not_there_gives_way(show, make):
    page = show(make(method="LSH", hash_length=16))
    assert page.locator(".bh-cells i").count() == 16
    page.get_by_label("method").select_option("BioHash")
    assert page.locator(".bh-slider b").inner_text() == "4"
    assert page.locator(".bh-cells.bh-units i").count() == 4
    page.get_by_label("hash length k").press("ArrowLeft")
    assert page.locator(".bh-slider b").inner_text() == "2"
    assert page.locator(".bh-cells i").count() == 2


def test_the_bits_that_match_are_those_of_the_two_codes(show, make):
    widget = make(method="BioHash", hash_length=4, query=5)
    page = show(widget)
    codes = widget._codes["BioHash", 4]
    _, items = widget.ranking()
    page.locator(".bh-answers button").nth(14).hover()
    until(lambda: "answer 15" in page.locator(".bh-two").inner_text())
    mine, theirs = set(codes.active[5].tolist()), set(codes.active[items[14]].tolist())
    cells = page.locator(".bh-cells i")
    assert [int(cell.inner_text()) for cell in cells.all()] == sorted(mine)
    filled = {int(cell.inner_text()) for cell in page.locator(".bh-cells .bh-same").all()}
    assert filled == mine & theirs
    assert f"{len(mine & theirs)} of 4 active units shared" in page.locator(".bh-agree").inner_text()


def test_the_tie_at_the_end_is_counted_and_can_be_shuffled(show, make):
    widget = make(method="BioHash", hash_length=2, query=4)
    page = show(widget)
    codes = widget._codes["BioHash", 2]
    far = codes[4].hamming(codes[20:])[0]
    last = np.sort(far)[TOP - 1]
    words = page.get_by_role("status").inner_text()
    assert f"{(far == last).sum()} images are tied at the last distance, {last}," in words
    assert f"for {TOP - (far < last).sum()} place" in words
    before = [tile.get_attribute("aria-label") for tile in page.locator(".bh-answers button").all()]
    canvases = page.locator(".bh-answers canvas")
    items = [canvas.get_attribute("data-item") for canvas in canvases.all()]
    page.get_by_role("button", name="Shuffle ties").click()
    until(lambda: [canvas.get_attribute("data-item") for canvas in canvases.all()] != items)
    after = [tile.get_attribute("aria-label") for tile in page.locator(".bh-answers button").all()]
    distances = [[re.search(r"distance (\d+)", name)[1] for name in names] for names in (before, after)]
    assert distances[0] == distances[1]


def test_arrow_keys_walk_both_grids_and_an_answer_can_become_the_query(show, make):
    page = show(make())
    page.get_by_role("radio").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("radio", checked=True).get_attribute("aria-label").startswith("query 2,")
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("radio", checked=True).get_attribute("aria-label").startswith("query 8,")
    page.locator(".bh-answers button").first.focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert "answer 10:" in page.locator(".bh-two").inner_text()
    found = page.locator(".bh-answers canvas").nth(9).get_attribute("data-item")
    page.get_by_role("button", name="Use as query").click()
    until(lambda: page.locator(".bh-two canvas").first.get_attribute("data-item") == found)
    assert page.get_by_role("radio", checked=True).count() == 0
    items = [canvas.get_attribute("data-item") for canvas in page.locator(".bh-answers canvas").all()]
    assert found not in items


# ---------------------------------------------------------------- results in a browser


def test_marks_are_as_many_as_the_cells_have_values(show, recorded):
    page = show(ResultsExplorer(recorded))
    for name in ("mnist", "smoothness"):
        page.get_by_label("experiment").select_option(name)
        cells = [c for c in recorded if c["experiment"] == name]
        count = {mark: page.locator(f".bh-plot .bh-{mark}").count() for mark in ("ours", "paper", "whisker", "absent")}
        assert count == {
            "ours": sum(c["ours"] is not None for c in cells),
            "paper": sum(c["paper"] is not None for c in cells),
            "whisker": sum(c["best"] is not None for c in cells),
            "absent": sum(c["verdict"] == "missing" for c in cells),
        }


def test_arrow_keys_read_the_numbers_of_every_cell(show, recorded):
    page = show(ResultsExplorer(recorded))
    page.locator(".bh-chart").focus()
    reading = page.locator(".bh-reading")
    assert "LSH, k = 2" in reading.inner_text()
    assert "11.50 ± 0.71 (2 seeds)" in reading.inner_text()
    page.keyboard.press("ArrowRight")
    assert "LSH, k = 4" in reading.inner_text()
    assert "missing" in reading.inner_text()
    page.keyboard.press("End")
    assert "LSH, k = 64" in reading.inner_text()
    page.keyboard.press("ArrowDown")
    assert "PCAHash, k = 64" in reading.inner_text()


def test_the_pointer_reads_the_cell_it_is_at(show, recorded):
    page = show(ResultsExplorer(recorded))
    dot = page.locator(".bh-plot .bh-mark[data-method=BioHash] .bh-ours").bounding_box()
    page.mouse.move(dot["x"] + 2, dot["y"] + 60)
    text = page.locator(".bh-reading").inner_text()
    assert "BioHash, k = 4" in text
    assert "30.00 to 60.00" in text
    assert "✗ deviates" in text


def test_methods_and_bounds_can_be_switched(show, recorded):
    page = show(ResultsExplorer(recorded))
    marks, toggle = page.locator(".bh-plot .bh-mark"), page.get_by_role("button", name="LSH")
    before = marks.count()
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "false"
    assert marks.count() == before - 6
    page.get_by_role("button", name="All methods").click()
    assert marks.count() == before
    page.get_by_role("button", name="No methods").click()
    assert marks.count() == 0
    page.get_by_role("button", name="All methods").click()
    page.get_by_role("button", name="Tie bounds").click()
    assert page.locator(".bh-plot .bh-whisker").count() == 0


# ---------------------------------------------------------------- JupyterLab


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_kernel_hashes_for_the_retrieval_explorer_and_reads_results(run_in_lab, seen):
    page = run_in_lab("""from pathlib import Path
from IPython.display import display
from biohash_mini.datasets import load
from biohash_mini.hashers import LSH
from biohash_mini.widgets import ResultsExplorer, RetrievalExplorer
task = load("mnist").retrieval_task()
def fit(method, k):
    hasher = LSH(k).fit(task.database)
    return hasher.encode(task.queries), hasher.encode(task.database)
explorer = RetrievalExplorer(task, {("LSH", 8): fit("LSH", 8)}, fit=fit, n_database=100)
explorer.observe(lambda change: Path("k").write_text(str(change.new["k"])), "fresh")
table = ResultsExplorer()
table.observe(lambda change: Path("cell").write_text(str(change.new)), "cell")
display(explorer, table)""")
    page.locator(".bh-results .bh-chart").wait_for(timeout=40_000)
    retrieval = page.locator(".bh-retrieval")
    assert retrieval.locator(".bh-cells i").count() == 8
    retrieval.get_by_label("hash length k").press("ArrowRight")
    until(lambda: seen("k") == "9", 20)
    until(lambda: retrieval.locator(".bh-cells i").count() == 9)
    page.locator(".bh-chart").focus()
    until(lambda: "LSH" in seen("cell"), 20)
    page.get_by_role("button", name="Read results anew").click()
    until(lambda: page.locator(".bh-plot .bh-mark").count() > 0)


# ---------------------------------------------------------------- in the built book


def built(name):
    return BUILD / "html" / name


@pytest.mark.book
@pytest.mark.parametrize("name", ["notebooks/05_mnist.html", "notebooks/06_cifar10.html", "book/report.html"])
def test_the_page_stays_small_alone_and_with_the_figures_that_one_look_loads(name):
    page = built(name).read_text("utf-8")
    sources = {src for src in re.findall(r'src="(\.\./_images/[^"]+)"', page) if ".dark." not in src}
    figures = [built(name).parent / src for src in sources]
    assert len(page) < 1_500_000 and len(page) + sum(figure.stat().st_size for figure in figures) < 2_000_000


@pytest.mark.book
@pytest.mark.parametrize("chapter", ["05_mnist", "06_cifar10"])
def test_retrieval_can_be_explored_in_its_chapters(open_file, chapter):
    widget = open_file(built(f"notebooks/{chapter}.html"), width=1280).locator(".bh-retrieval")
    widget.scroll_into_view_if_needed()
    words = widget.locator(".bh-verdict")
    found = set()
    for method in ("LSH", "BioHash"):
        widget.get_by_label("method").select_option(method)
        for query in (3, 29):
            widget.get_by_role("radio").nth(query).click()
            found.add(words.inner_text())
    assert len(found) > 1
    assert widget.locator(".bh-answers button").count() == TOP


@pytest.mark.book
def test_results_can_be_explored_on_the_report(open_file):
    widget = open_file(built("book/report.html"), width=1280).locator(".bh-results")
    cells = {(c["method"], c["hash_length"]): c for c in report.cells(["cifar10"])}
    widget.get_by_label("experiment").select_option("cifar10")
    widget.locator(".bh-chart").focus()
    assert f"{cells['LSH', 2]['ours']:.2f} ± {cells['LSH', 2]['sd']:.2f}" in widget.locator(".bh-reading").inner_text()


def test_markup_in_a_hand_made_cell_is_shown_and_not_run():
    evil = "</noscript><script>alert(1)</script>"
    cell = dict.fromkeys(FIELDS) | {"experiment": "mnist", "method": "LSH", "hash_length": evil, "verdict": "missing"}
    html = ResultsExplorer([cell]).html()
    assert evil not in html and "&lt;/noscript&gt;&lt;script&gt;" in html
    assert html.count("<script") == html.count("</script>") == 1
