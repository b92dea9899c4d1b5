"""Text that looks like a script is shown and not run, in every widget, under the policy of the book's pages."""

import pytest

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from biohash_mini.widgets import (
    CircleExplorer,
    PlasticityPlayground,
    ResultsExplorer,
    RetrievalExplorer,
    ShadowPlayground,
    TsneExplorer,
)
from biohash_mini.widgets.explorer import FIELDS
from book._ext.policy import META

from .samples import digits, photographs

EVIL = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
NAMES = [f"{EVIL}{i}" for i in range(10)]


def results_explorer():
    cell = dict.fromkeys(FIELDS) | {"experiment": "mnist", "method": EVIL, "hash_length": 2, "verdict": EVIL}
    return ResultsExplorer([cell | {"paper": 12.0, "ours": 13.0, "reason": EVIL}])


def retrieval_explorer():
    hashers, task = photographs()
    codes = {(EVIL, 1): tuple(hashers["BioHash"].encode(X) for X in (task.queries, task.database))}
    return RetrievalExplorer(task, codes, names=NAMES, n_queries=10, n_database=60)


def shadow_playground():
    hashers, task = photographs()
    return ShadowPlayground({EVIL: hashers["BioHash"]}, task, [3, 0, 8], hash_length=6, n_database=60, names=NAMES)


def tsne_explorer():
    layer, X, labels = digits()
    return TsneExplorer(layer, X, labels, hash_lengths=(2, 4), names=NAMES)


#: Every widget, and whether it shows texts that it is given.
WIDGETS = {
    CircleExplorer: (CircleExplorer, False),
    PlasticityPlayground: (PlasticityPlayground, False),
    ResultsExplorer: (results_explorer, True),
    RetrievalExplorer: (retrieval_explorer, True),
    ShadowPlayground: (shadow_playground, True),
    TsneExplorer: (tsne_explorer, True),
}


@pytest.mark.parametrize("kind", WIDGETS, ids=lambda kind: kind.__name__)
def test_a_label_with_a_script_is_shown_and_not_run_and_the_policy_lets_the_widget_work(kind, show):
    make, texts = WIDGETS[kind]
    page = show(make(), head=f"<html><head>{META}</head>")
    page.wait_for_function("document.querySelector('.bh :is(button, select, input)')")
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None
    assert page.locator("img[src=x]").count() == 0
    if texts:
        assert "</script>" in page.locator("body").inner_text() or "</script>" in page.evaluate(
            "[...document.querySelectorAll('.bh *')].map((e) => [e.ariaLabel, e.textContent, e.title].join()).join()"
        )


def test_the_policy_forbids_what_the_book_does_not_need(browser, tmp_path):
    code = "window.blocked = []; addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective))"
    html = f"<!doctype html><html><head>{META}</head><body><script>{code}</script></body></html>"
    (tmp_path / "page.html").write_text(html)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate("new Image().src = 'https://example.invalid/x.png'; fetch('https://example.invalid/').catch(() => 0)")
    page.wait_for_function("blocked.length == 2")
    assert sorted(page.evaluate("blocked")) == ["connect-src", "img-src"]
    page.close()
