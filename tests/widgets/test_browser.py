"""The widgets in a real browser: alone on a page with the network closed, and in JupyterLab with a kernel."""

import re

import pytest

from .browser import luminance, until

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from biohash_mini.widgets import CircleExplorer, PlasticityPlayground, TiesExplorer

WIDGETS = pytest.mark.parametrize("widget", [CircleExplorer, PlasticityPlayground, TiesExplorer])
SPACER = '<div style="height: 3000px"></div>'


def steps(page):
    """Return the number of steps that the playground says it has taken."""
    return int(re.search(r"step (\d+)", page.locator(".bh-verdict").inner_text())[1])


# ---- every widget


@WIDGETS
@pytest.mark.parametrize("width", [340, 820])
def test_widget_fits_the_screen(show, widget, width):
    page = show(widget(), width=width)
    page.locator(".bh-right").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for control in page.locator(".bh :is(button, select, input, .bh-slider)").all():
        box = control.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width


@WIDGETS
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("by_theme", [False, True])
def test_widget_is_readable_in_light_and_dark(show, widget, dark, by_theme):
    system = dark != by_theme  # the page's theme wins over the system's
    head = f'<html data-theme="{"dark" if dark else "light"}">' if by_theme else "<html>"
    page = show(widget(), head=head, color_scheme="dark" if system else "light")
    page.locator(".bh-right").wait_for()
    ink, paper = luminance(page, ".bh", "color"), luminance(page, ".bh", "backgroundColor")
    assert (ink > paper + 300) if dark else (ink < paper - 300)


@WIDGETS
def test_every_control_has_a_name_and_takes_the_focus(show, widget):
    page = show(widget())
    names = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        focus = "el => el.closest('.bh') && (el.ariaLabel || el.textContent)"
        names.add(page.evaluate(f"({focus})(document.activeElement)"))
    controls = page.locator(".bh :is(button, select, input, [tabindex])")
    assert len(names - {None}) == controls.count()
    assert "" not in names


@WIDGETS
def test_widget_without_scripts_is_a_picture_and_a_sentence(show, widget):
    page = show(widget(), java_script_enabled=False)
    picture = page.locator("noscript svg")
    assert picture.bounding_box()["width"] > 200
    assert widget.sentence in page.locator("noscript").inner_text()


def test_two_widgets_on_a_page_are_independent(show):
    page = show(CircleExplorer(n_units=3), CircleExplorer(n_units=5), PlasticityPlayground())
    first, second = page.locator(".bh-circle").all()
    first.get_by_label("units, m").fill("9")
    assert first.locator(".bh-units text").count() == 9
    assert second.locator(".bh-units text").count() == 5
    page.get_by_role("button", name="Step").click()
    assert steps(page.locator(".bh-playground")) == 1


# ---- the circle explorer


def test_circle_slider_changes_the_picture_and_units_reach_the_optimum(show):
    page = show(CircleExplorer(n_units=3, hash_length=1))
    density = page.locator(".bh-density")
    before = density.get_attribute("d")
    page.get_by_label("width, σ").fill("0.3")
    assert density.get_attribute("d") != before
    page.get_by_label("units, m").fill("4")
    assert page.locator(".bh-units text").count() == page.locator(".bh-goals path").count() == 4
    now, lowest = page.locator(".bh-head b"), page.locator(".bh-trace .bh-bottom")
    until(lambda: lowest.inner_text() == f"lowest possible {now.inner_text()}")


def test_circle_points_move_by_keys_mouse_and_touch(show):
    page = show(CircleExplorer(points=[0.1, -1.5]), has_touch=True)
    pin = page.get_by_role("slider", name="data point A")
    box = page.locator(".bh-stage").bounding_box()
    middle, reach = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), box["width"] * 108 / 252
    right, top, left = ((middle[0] + x * reach, middle[1] + y * reach) for x, y in [(1, 0), (0, -1), (-1, 0)])

    def angle():
        return int(pin.get_attribute("aria-valuenow"))

    pin.focus()
    page.keyboard.press("ArrowUp")
    assert angle() == 8
    page.keyboard.press("Home")
    assert angle() == 0
    page.mouse.move(*right)
    page.mouse.down()
    page.mouse.move(*top, steps=3)
    page.mouse.up()
    assert angle() == 90
    finger = page.context.new_cdp_session(page)
    for kind, spots in [("touchStart", [top]), ("touchMove", [left]), ("touchEnd", [])]:
        points = [{"x": x, "y": y} for x, y in spots]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    until(lambda: abs(angle()) == 180)


def test_circle_shows_codes_and_their_distance(show):
    page = show(CircleExplorer(n_units=8, hash_length=3, points=[0.0, 3.1]))
    bits = [[bit.inner_text() for bit in row.locator("i").all()] for row in page.locator(".bh-bits").all()]
    assert [row.count("1") for row in bits[:2]] == [3, 3]
    distance = sum(a != b for a, b in zip(*bits[:2], strict=True))
    assert f"Hamming distance {distance}" in page.locator(".bh-verdict").inner_text()
    page.get_by_role("slider", name="data point B").press("Home")
    assert "Hamming distance 0" in page.locator(".bh-verdict").inner_text()


def test_circle_rests_while_out_of_view_and_drifts_when_seen(show):
    page = show(CircleExplorer(), before=SPACER)
    trace, first = page.locator(".bh-line"), page.locator(".bh-units circle").first
    page.wait_for_timeout(300)
    before = first.get_attribute("cx")
    page.wait_for_timeout(300)
    assert first.get_attribute("cx") == before
    page.locator(".bh").scroll_into_view_if_needed()
    until(lambda: first.get_attribute("cx") != before)
    until(lambda: len(trace.get_attribute("points").split()) > 3)


def test_circle_does_not_move_for_readers_who_want_no_motion(show):
    page = show(CircleExplorer(), reduced_motion="reduce")
    now, lowest = page.locator(".bh-head b"), page.locator(".bh-trace .bh-bottom")
    page.get_by_role("button", name="Scatter units").click()
    assert lowest.inner_text() == f"lowest possible {now.inner_text()}"


# ---- the playground


def test_playground_plays_pauses_steps_and_resets(show):
    page = show(PlasticityPlayground())
    units = page.locator(".bh-particles")
    before = units.inner_html()
    page.get_by_role("button", name="Step").click()
    assert steps(page) == 1
    assert units.inner_html() != before
    page.get_by_role("button", name="Play").click()
    until(lambda: steps(page) > 10)
    page.get_by_role("button", name="Pause").click()
    paused = steps(page)
    page.wait_for_timeout(200)
    assert steps(page) == paused
    page.get_by_role("button", name="Reset").click()
    assert steps(page) == 0
    assert units.inner_html() == before


def test_playground_small_norms_leave_dead_units_and_large_ones_do_not(show):
    page = show(PlasticityPlayground(init_norm=0.2), reduced_motion="reduce")
    page.get_by_role("button", name="Play").click()
    dead = page.locator(".bh-dead")
    few = dead.count()
    assert few >= 5
    assert f"{few} of 12 units dead" in page.locator(".bh-verdict").inner_text()
    page.get_by_label("initial norm").fill("2")
    page.get_by_role("button", name="Play").click()
    assert steps(page) == 400
    assert dead.count() <= 2


def test_playground_takes_paint_from_mouse_and_keys(show):
    page = show(PlasticityPlayground(preset="blank"))
    status, chosen = page.locator(".bh-verdict"), page.get_by_label("data", exact=True)
    assert "no data" in status.inner_text()
    page.locator(".bh-map").click()
    assert chosen.input_value() == "painted"
    assert steps(page) == 0
    page.get_by_role("button", name="Erase").click()
    page.locator(".bh-map").click()
    assert "no data" in status.inner_text()
    page.get_by_role("button", name="Paint").click()
    page.locator(".bh-map").focus()
    for key in ["ArrowLeft", "ArrowUp", "Space"]:
        page.keyboard.press(key)
    assert "step 0" in status.inner_text()
    chosen.select_option("ring")
    page.get_by_role("button", name="Step").click()
    assert steps(page) == 1


def test_playground_sliders_change_the_picture(show):
    page = show(PlasticityPlayground())
    sphere = page.locator(".bh-sphere")
    before = sphere.get_attribute("d")
    page.get_by_label("norm order p").fill("4")
    assert sphere.get_attribute("d") != before
    page.get_by_label("units m").fill("30")
    assert page.locator(".bh-particles > *").count() == 30


# ---- JupyterLab


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_widgets_drive_and_are_driven_by_a_kernel_in_jupyterlab(run_in_lab, seen):
    page = run_in_lab("""from pathlib import Path
from IPython.display import display
from biohash_mini.widgets import CircleExplorer, PlasticityPlayground, TiesExplorer
explorer, playground = CircleExplorer(), PlasticityPlayground()
explorer.observe(lambda change: Path("units").write_text(str(len(explorer.optimum))), "optimum")
playground.observe(lambda change: Path("step").write_text(str(change.new)), "step")
playground.observe(lambda change: setattr(explorer, "sigma", 2.0), "step")
display(explorer, playground)""")
    page.locator(".bh-playground .bh-right").wait_for(timeout=40_000)
    page.get_by_label("units, m").fill("9")
    until(lambda: seen("units") == "9", 20)
    until(lambda: page.locator(".bh-goals path").count() == 9)
    page.get_by_role("slider", name="data point A").press("Home")
    assert page.get_by_role("slider", name="data point A").get_attribute("aria-valuenow") == "0"
    page.locator(".bh-playground").get_by_role("button", name="Step").click()
    until(lambda: seen("step") == "1", 20)
    until(lambda: "step 1 of 400 by torch" in page.locator(".bh-playground .bh-verdict").inner_text())
    assert page.locator(".bh-circle .bh-slider b").first.inner_text() == "2.00"  # Python moved that slider
    page.locator(".bh-playground").get_by_role("button", name="Play").click()
    until(lambda: steps(page.locator(".bh-playground")) > 20, 20)
