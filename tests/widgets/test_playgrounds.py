"""The tSNE explorer and the shadow playground: scripts that agree with torch, pages that react, kernels that answer."""

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest

from biohash_mini.reproduction.embedding import embed, neighbour_purity
from biohash_mini.reproduction.protocols import shadow
from biohash_mini.search import HammingIndex
from book.build import BUILD

from .browser import luminance, until
from .samples import digits, photographs

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from PIL import Image

from biohash_mini.widgets import ShadowPlayground, TsneExplorer
from biohash_mini.widgets.packing import pack, sheet
from biohash_mini.widgets.shadow import STRENGTHS
from biohash_mini.widgets.tsne import follow, in_square

CLASSES = "airplane car bird cat deer dog frog horse ship truck".split()


@cache
def explorer():
    return TsneExplorer(*digits(), hash_lengths=(2, 4, 16))


@cache
def playground():
    return ShadowPlayground(*photographs(), [3, 0, 8], hash_length=6, n_database=60, names=CLASSES)


WIDGETS = pytest.mark.parametrize("make", [explorer, playground])


# ---- packing


def test_packed_arrays_and_images_come_back():
    assert np.frombuffer(base64.b64decode(pack(np.array([-2, 300], ">i2"))), "<i2").tolist() == [-2, 300]
    images = np.random.default_rng(0).integers(256, size=(3, 3, 4, 5)) / 255
    for columns, (row, column) in {2: (1, 0), 3: (0, 2)}.items():
        page = Image.open(io.BytesIO(base64.b64decode(sheet(images, columns).split(",")[1])))
        third = np.array(page)[4 * row :, 5 * column :][:4, :5]
        np.testing.assert_array_equal(third, np.round(255 * images[2]).transpose(1, 2, 0))
    assert sheet(images, 2, quality=60).startswith("data:image/webp;base64,")


# ---- the mathematics of the tSNE explorer


def test_the_page_has_the_points_and_the_neighbours_of_python(script):
    widget, (_, _, labels) = explorer(), digits()
    expression = "x.maps.map(js.places).map((P) => [P, P.map((_, i) => js.alike(P, x.labels, i, 10) / 10)])"
    found = script(widget, expression, maps=[widget.maps[k] for k in ("2", "16")], labels=labels.tolist())
    for k, (points, shares) in zip(("2", "16"), found, strict=True):
        np.testing.assert_allclose(points, in_square(widget._maps[int(k)]), atol=2e-5)
        assert np.mean(shares) == pytest.approx(neighbour_purity(np.array(points), labels), abs=2e-3)
        assert np.mean(shares) == pytest.approx(widget.purity[k], abs=1e-2)  # rounding may swap near neighbours


def test_nearest_points_are_sorted_and_exclude_the_point(script):
    points = [[0, 0], [0.5, 0], [0, 0.2], [-0.1, 0]]
    assert script(TsneExplorer, "js.nearest(x.points, 0, 2)", points=points) == [3, 2]


def test_a_move_begins_and_ends_at_the_maps(script):
    A, B = np.random.default_rng(0).normal(size=(2, 5, 2))
    found = script(TsneExplorer, "[0, 0.5, 1].map((t) => js.between(x.A, x.B, t))", A=A.tolist(), B=B.tolist())
    np.testing.assert_allclose(found, [A, (A + B) / 2, B])


def test_arrow_keys_go_to_the_nearest_point_of_a_direction(script):
    points = [[0, 0], [0.3, 0.1], [0.2, -0.9], [-0.5, 0.4]]
    expression = "[[1, 0], [0, -1], [-1, 0], [0, 1]].map((d) => js.toward(x.points, 0, d))"
    assert script(TsneExplorer, expression, points=points) == [1, 2, 3, 0]  # nothing is above


def test_chance_is_the_purity_of_random_labels(script):
    labels = [0] * 30 + [1] * 10
    same = np.equal.outer(labels, labels)
    want = (same.sum() - 40) / (40 * 39)
    assert script(TsneExplorer, "js.chance(x.labels)", labels=labels) == pytest.approx(want)


# ---- its maps


def test_a_map_that_follows_another_stays_near_it():
    layer, X, _ = digits()
    start, codes = embed(layer.encode(X), 0), layer.encode(X)

    def moved(xy):
        return np.linalg.norm(in_square(xy) - in_square(start), axis=1).mean()

    assert moved(follow(codes, start)) < 0.5 * moved(embed(codes, 1))


def test_maps_between_are_made_when_asked_for():
    widget = TsneExplorer(*digits(), hash_lengths=(2, 16))
    assert set(widget.maps) == set(widget.purity) == {"2", "16"}
    assert {2, 3, 4, 16} <= set(widget.stops)
    assert widget.purity["2"] > 0.3  # by chance it would be 0.1
    widget.hash_length = 4
    assert set(widget.maps) == set(widget.purity) == {"2", "4", "16"}
    assert len(widget.maps["4"]) == len(widget.maps["2"])
    assert digits()[0].hash_length == 4  # the layer itself is left alone


# ---- the mathematics of the shadow playground


def test_the_shadow_begins_at_the_row_where_python_begins_it(script):
    areas = [round(0.01 * a, 2) for a in range(101)]
    rows = [int(shadow(np.ones((1, 1, 32, 1)), 0.5, a).sum(dtype=float) * 2 - 32) for a in areas]
    assert script(ShadowPlayground, "x.areas.map((a) => js.firstDark(a, 32))", areas=areas) == rows


@pytest.mark.parametrize(("name", "enough"), [("BioHash", 0.99), ("BioConvHash", 1)])
def test_the_page_reads_the_codes_of_torch(script, name, enough):
    widget = playground()
    about = {"strengths": STRENGTHS, "height": 32, "m": 40, "k": 6}
    cases = [(q, s, a) for q in range(3) for s in STRENGTHS[::3] for a in (0.0, 0.2, 0.5, 0.8, 1.0)]
    expression = "x.cases.map(([q, s, a]) => js.reader(x.table, x.about)(q, s, js.firstDark(a, 32)))"
    found = script(widget, expression, cases=cases, about=about, table=widget.tables[name])
    want = [widget._encode(name, shadow(widget._queries[[q]], s, a)).active[0] for q, s, a in cases]
    assert (np.array(found) == np.array(want)).all(1).mean() >= enough  # 16 bits may swap two units


def test_the_page_ranks_as_the_index_does(script):
    widget = playground()
    codes = widget._codes["BioHash"]
    expression = "x.queries.map((code) => js.nearest(code, js.unpack(x.codes), 10))"
    found = script(widget, expression, queries=codes.active[:5].tolist(), codes=widget.tables["BioHash"]["database"])
    distances, ids = HammingIndex(codes).search(codes[:5], top=10)
    np.testing.assert_array_equal(np.array(found)[..., 0], ids)
    np.testing.assert_array_equal(2 * (6 - np.array(found)[..., 1]), distances)
    assert widget.ranking("BioHash", widget._queries[0]).shape == (10,)


def test_units_are_kept_lost_or_new(script):
    want = {"kept": [3, 7], "lost": [1], "fresh": [8]}
    assert script(ShadowPlayground, "js.compare([1, 3, 7], [3, 7, 8])") == want


def test_python_hashes_what_is_on_show():
    widget = ShadowPlayground(*photographs(), [3, 0, 8], hash_length=6, n_database=60)
    widget.query, widget.strength, widget.area = 1, 0.37, 0.61
    dark = shadow(widget._queries[[1]], 0.37, 0.61)
    assert widget.answer["codes"]["BioConvHash"] == widget._encode("BioConvHash", dark).active[0].tolist()
    assert (widget.answer["query"], widget.answer["strength"], widget.answer["area"]) == (1, 0.37, 0.61)
    assert widget.names == [str(c) for c in range(10)]
    assert photographs()[0]["BioHash"].hash_length == 1  # the hashers themselves are left alone


def test_codes_longer_than_the_layer_are_refused():
    with pytest.raises(ValueError, match="41 to 256 units, got 40"):
        ShadowPlayground(*photographs(), [0], hash_length=41)


# ---- their pages


@WIDGETS
def test_page_holds_module_and_state_and_asks_for_nothing(make):
    html = make().html()
    assert html.count("</script") == html.count("<script") == 1
    payload = json.loads(re.search(r"const { esm, state } = (.*);\n", html)[1])
    assert payload["esm"] == make()._esm
    assert payload["state"].keys() == make().state().keys()
    assert set(re.findall(r"https?://[\w./]*", html)) == {"http://www.w3.org/2000/svg"}
    assert ET.fromstring(make().picture()).get("viewBox")


@WIDGETS
@pytest.mark.parametrize("width", [340, 820])
def test_widget_fits_the_screen(show, make, width):
    page = show(make(), width=width)
    page.locator(".bh-right").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for control in page.locator(".bh :is(button, input, .bh-slider, .bh-stamp)").all():
        box = control.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width


@WIDGETS
@pytest.mark.parametrize("dark", [False, True])
def test_widget_is_readable_in_light_and_dark(show, make, dark):
    page = show(make(), head=f'<html data-theme="{"dark" if dark else "light"}">')
    page.locator(".bh-right").wait_for()
    ink, paper = (luminance(page, ".bh", part) for part in ("color", "backgroundColor"))
    assert (ink > paper + 300) if dark else (ink < paper - 300)


@WIDGETS
def test_every_control_has_a_name_and_takes_the_focus(show, make):
    page = show(make())
    page.locator(".bh-right").wait_for()
    names = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        focus = "el => el.closest('.bh') && (el.ariaLabel || el.textContent)"
        names.add(page.evaluate(f"({focus})(document.activeElement)"))
    controls = page.locator(".bh :is(button, input, [tabindex])")
    assert len(names - {None}) == controls.count()
    assert "" not in names
    assert not page.locator(".bh [role=img]:not([aria-label]):not([aria-hidden])").count()


@WIDGETS
def test_widget_without_scripts_is_a_picture_and_a_sentence(show, make):
    page = show(make(), java_script_enabled=False)
    assert page.locator("noscript svg").bounding_box()["width"] > 200
    assert make().sentence in page.locator("noscript").inner_text()


# ---- the tSNE explorer in a browser


def spots(page):
    return page.locator(".bh-map text").evaluate_all(
        "all => all.map((t) => [+t.getAttribute('x'), +t.getAttribute('y')])"
    )


def test_points_travel_to_the_next_map_and_the_purity_follows(show):
    page, widget = show(explorer()), explorer()
    number, knob = page.locator(".bh-number"), page.get_by_label("units on, k")
    want = {k: pytest.approx(100 * share, abs=0.06) for k, share in widget.purity.items()}
    assert float(number.inner_text().rstrip("%")) == want["2"]
    before = spots(page)
    knob.press("ArrowRight")
    assert knob.get_attribute("aria-valuetext") == "4 of 40 units, activity 10%"
    assert float(number.inner_text().rstrip("%")) == want["4"]
    until(lambda: spots(page) != before)
    end = in_square(widget._maps[4])[np.argsort(widget._labels, kind="stable")] * [100, -100]
    until(lambda: np.allclose(spots(page), end, atol=0.02), 30)


def test_a_point_shows_its_image_on_hover_and_by_keys(show):
    page = show(explorer(), reduced_motion="reduce")
    words, box = page.locator(".bh-card p"), page.locator(".bh-map").bounding_box()
    x, y = spots(page)[-1]  # a nine
    page.mouse.move(box["x"] + box["width"] * (x + 106) / 212, box["y"] + box["height"] * (y + 106) / 212)
    until(lambda: "This is a 9" in words.inner_text())
    assert page.locator(".bh-ten .bh-stamp").count() == page.locator(".bh-near line").count() == 10
    ring = page.locator(".bh-ring")
    before = ring.get_attribute("cx"), ring.get_attribute("cy")
    page.locator(".bh-map").focus()
    for key in ("ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    assert (ring.get_attribute("cx"), ring.get_attribute("cy")) != before
    same = page.locator(".bh-ten .bh-same").count()
    assert f"{same} are" in words.inner_text()


def test_one_class_or_several_can_be_singled_out(show):
    page = show(explorer())
    three, nine = (page.get_by_role("button", name=f"show class {name}") for name in (3, 9))
    three.click()
    assert three.get_attribute("aria-pressed") == "true"
    assert page.locator(".bh-map g.bh-faint").count() == 9
    nine.click()
    assert page.locator(".bh-map g.bh-faint").count() == 8
    three.click()
    nine.click()
    assert page.locator(".bh-map g.bh-faint").count() == 0


def test_the_chart_of_purity_has_ticks(show):
    words = show(explorer()).locator(".bh-curve text").all_text_contents()
    assert {"0%", "50%", "100%"} <= set(words)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_playing_visits_every_map_and_stops(show, motion):
    page = show(explorer(), reduced_motion=motion)
    page.get_by_role("button", name="Play").click()
    assert page.get_by_role("button", name="Pause").is_visible()
    until(lambda: page.get_by_label("units on, k").input_value() == "2", 40)
    page.get_by_role("button", name="Play").wait_for(timeout=40_000)


# ---- the shadow playground in a browser


def verdicts(page):
    return [int(text.split()[0]) for text in page.locator(".bh-shadow section .bh-head > b + b").all_inner_texts()]


def test_sliders_change_codes_and_answers_and_the_light_stays(show):
    page, widget = show(playground()), playground()
    lit, dark = page.locator(".bh-strip").nth(0), page.locator(".bh-strip").nth(1)
    before = lit.inner_html()
    page.get_by_label("light in the shade").fill("0.1")
    page.get_by_label("area in the shade").fill("0.5")
    image = widget._queries[[0]]
    kept = [
        len(np.intersect1d(*(widget._encode(name, A).active[0] for A in (image, shadow(image, 0.1, 0.5)))))
        for name in widget.tables
    ]
    assert verdicts(page) == kept
    assert page.locator(".bh-kept").count() - 1 == sum(kept)  # and one in the legend
    assert lit.inner_html() == before != dark.inner_html()
    assert page.locator(".bh-shade").evaluate("el => [el.style.top, el.style.opacity]") == ["50%", "0.9"]
    page.get_by_role("button", name="No shadow").click()
    assert verdicts(page) == [6, 6]
    assert dark.inner_html() == lit.inner_html()
    page.get_by_role("button", name="The paper's shadow").click()
    assert page.get_by_label("area in the shade").input_value() == "0.8"


def test_a_shadow_comes_back_by_whatever_the_reader_moves(show):
    page = show(playground())
    light, area = page.get_by_label("light in the shade"), page.get_by_label("area in the shade")
    page.get_by_role("button", name="No shadow").click()
    light.fill("0.5")
    assert area.input_value() == "0.8"
    light.fill("1")
    area.fill("0.4")
    assert (light.input_value(), area.input_value()) == ("0.3", "0.4")


def test_the_mean_over_all_queries_stands_beside_the_example(show):
    widget, (_, task) = playground(), photographs()
    images = task.queries.reshape(-1, *task.image_shape)
    rankings = [widget.ranking("BioHash", image) for image in images]
    right = [(np.array(widget.database_labels)[r] == c).sum() for r, c in zip(rankings, task.query_labels, strict=True)]
    assert widget.means["BioHash"]["light"] == pytest.approx(np.mean(right))
    dark = shadow(images)
    codes = [[widget._encode("BioHash", A).active[i] for A in (images, dark)] for i in range(len(images))]
    assert widget.means["BioHash"]["kept"] == pytest.approx(np.mean([len(np.intersect1d(*pair)) for pair in codes]))
    assert f"All {len(images)} queries" in show(widget).locator(".bh-mean").first.inner_text()


def test_answers_carry_their_class(show):
    page, widget = show(playground()), playground()
    items = widget.ranking("BioHash", widget._queries[0])
    labels, truth = np.array(widget.database_labels)[items], widget.query_labels[0]
    tiles = page.locator(".bh-strip").first.locator(".bh-stamp")
    assert [name.split(",")[0] for name in tiles.evaluate_all("all => all.map((t) => t.ariaLabel)")] == [
        CLASSES[c] for c in labels
    ]
    assert page.locator(".bh-strip").first.locator(".bh-same").count() == (labels == truth).sum()


def test_another_photograph_and_the_edge_by_mouse_and_keys(show):
    page = show(playground())
    choices = page.locator(".bh-choices button")
    choices.nth(2).press("Enter")
    assert [c.get_attribute("aria-pressed") for c in choices.all()] == ["false", "false", "true"]
    box = page.locator(".bh-photo").bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + 0.75 * box["height"], steps=4)
    page.mouse.up()
    area = page.get_by_label("area in the shade")
    assert float(area.input_value()) == pytest.approx(0.25, abs=0.02)
    area.press("End")
    assert page.locator(".bh-shade").evaluate("el => el.style.top") == "0%"


# ---- JupyterLab


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kernels_answer_in_jupyterlab(run_in_lab, seen):
    page = run_in_lab("""from pathlib import Path
from IPython.display import display
from tests.widgets.samples import digits, photographs
from biohash_mini.widgets import ShadowPlayground, TsneExplorer
explorer = TsneExplorer(*digits(), hash_lengths=(2, 16))
playground = ShadowPlayground(*photographs(), [3, 0], hash_length=6, n_database=60)
explorer.observe(lambda change: Path("maps").write_text(",".join(explorer.maps)), "maps")
playground.observe(lambda change: Path("answer").write_text(str(change.new["strength"])), "answer")
display(explorer, playground)""")
    page.locator(".bh-shadow .bh-right").wait_for(timeout=120_000)
    knob = page.get_by_label("units on, k")
    knob.fill("1")  # k = 3, which no page carries
    until(lambda: seen("maps") == "16,2,3", 60)
    until(lambda: "%" in page.locator(".bh-number").inner_text(), 20)
    page.get_by_label("light in the shade").fill("0.37")
    until(lambda: seen("answer") == "0.37", 30)
    assert "torch hashes" in page.locator(".bh-shadow .bh-hint").inner_text()


# ---- the built book


@pytest.mark.book
def test_the_tsne_explorer_moves_in_its_chapter(open_file):
    file = BUILD / "html" / "notebooks" / "07_sparsity.html"
    widget = open_file(file, width=1280).locator(".bh-tsne")
    widget.scroll_into_view_if_needed()
    before = widget.locator(".bh-number").inner_text()
    widget.get_by_label("units on, k").fill("5")
    assert widget.locator(".bh-number").inner_text() != before
    assert file.stat().st_size < 1_500_000


@pytest.mark.book
def test_the_shadow_playground_works_in_its_chapter(open_file):
    file = BUILD / "html" / "notebooks" / "11_shadows.html"
    widget = open_file(file, width=1280).locator(".bh-shadow")
    widget.scroll_into_view_if_needed()
    pixels, patches = verdicts(widget.page)
    assert pixels < patches
    widget.get_by_role("button", name="No shadow").click()
    assert len(set(verdicts(widget.page))) == 1
    assert file.stat().st_size < 1_500_000
