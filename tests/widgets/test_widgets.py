"""The widgets' scripts compute what Python computes, and their pages need nothing but themselves."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from biohash_mini import circle, plasticity

pytest.importorskip("anywidget", reason="the widgets need the extra [widgets]")
from biohash_mini.widgets import CircleExplorer, PlasticityPlayground, TiesExplorer
from biohash_mini.widgets.playground import BATCH, CENTRES, EXTENT, SIDE

WIDGETS = pytest.mark.parametrize("widget", [CircleExplorer, PlasticityPlayground, TiesExplorer])
RULES = pytest.mark.parametrize(
    ("p", "delta", "anti_rank"), [(2.0, 0.0, 2), (1.2, 0.0, 2), (3.5, 0.0, 2), (2.0, 0.4, 2), (1.7, 0.3, 4)]
)


def random_circles(seed=0, n=40):
    rng = np.random.default_rng(seed)
    sizes, sigmas = rng.integers(2, 17, n), 10 ** rng.uniform(-1, 1, n)
    return [(rng.uniform(-np.pi, np.pi, m).tolist(), s) for m, s in zip(sizes, sigmas, strict=True)]


def random_plane(seed, m=9, n=30):
    rng = torch.Generator().manual_seed(seed)
    return (torch.randn(size, 2, generator=rng, dtype=torch.double) for size in (n, m))


# ---- the circle


def test_circle_energy_is_the_closed_form(script):
    cases = random_circles()
    got = script(CircleExplorer, "x.cases.map(([angles, sigma]) => js.energy(angles, sigma))", cases=cases)
    np.testing.assert_allclose(got, [circle.energy(*case) for case in cases], atol=1e-12)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0, 10.0])
def test_circle_optimum_is_the_minimum_of_the_energy(script, sigma):
    got = script(CircleExplorer, "x.sizes.map((m) => js.optimum(m, x.sigma))", sizes=[2, 3, 4, 7, 16], sigma=sigma)
    for angles in got:
        np.testing.assert_allclose(angles, circle.optimal_angles(len(angles), sigma), atol=1e-6)


def test_circle_drift_lowers_the_energy_and_rests_at_the_optimum(script):
    walk = """x.cases.map(([angles, sigma]) => {
        const energies = [js.energy(angles, sigma)];
        for (let i = 0; i < 50; i++) energies.push(js.energy((angles = js.drift(angles, sigma, 0.1)), sigma));
        return energies;
    })"""
    energies = np.array(script(CircleExplorer, walk, cases=random_circles(1)))
    assert (np.diff(energies) < 1e-12).all()
    assert (energies[:, -1] < energies[:, 0]).all()
    best = circle.optimal_angles(6, 0.5)
    np.testing.assert_allclose(script(CircleExplorer, "js.drift(x.best, 0.5, 1)", best=best.tolist()), best, atol=1e-9)


def test_circle_codes_are_the_nearest_units_and_change_at_the_borders(script):
    phi = np.linspace(-3, 3, 25)
    cases = [(sorted(angles), 1 + len(angles) // 3) for angles, _ in random_circles(2, 8)]
    expression = "x.cases.map(([angles, k]) => [x.phi.map((t) => js.code(t, angles, k)), js.borders(angles, k)])"
    got = script(CircleExplorer, expression, phi=phi.tolist(), cases=cases)
    for (angles, k), (codes, borders) in zip(cases, got, strict=True):
        nearest = np.cos(phi[:, None] - np.array(angles)).argsort(1)[:, -k:]
        want = np.zeros_like(codes)
        np.put_along_axis(want, nearest, 1, 1)
        np.testing.assert_array_equal(codes, want)
        np.testing.assert_allclose(borders, circle.code_distribution(angles, 1.0, k).stop, atol=1e-12)


def test_numbers_of_units_do_not_overlap_however_narrow_the_data(script):
    crowd = circle.optimal_angles(12, 0.1)
    rows = np.array(script(CircleExplorer, "js.numberRows(x.angles)", angles=crowd.tolist()))
    radius = 84 - 17 - 11 * rows
    spots = radius[:, None] * np.stack([np.cos(crowd), np.sin(crowd)], axis=1)
    apart = np.linalg.norm(spots[:, None] - spots, axis=2)[~np.eye(12, dtype=bool)]
    assert apart.min() > 9


def test_circle_hamming_distance_counts_differing_bits(script):
    assert script(CircleExplorer, "js.hamming([1, 1, 0, 0], [0, 1, 1, 0])") == 2


# ---- the playground


@RULES
def test_playground_step_is_the_learning_rule(script, p, delta, anti_rank):
    X, W = random_plane(3)
    rule = {"p": p, "delta": delta, "antiRank": anti_rank}
    got = script(PlasticityPlayground, "js.step(x.W, x.X, 0.05, x.rule)", W=W.tolist(), X=X.tolist(), rule=rule)
    plasticity.step_(W, X, 0.05, p=p, delta=delta, anti_rank=anti_rank)
    np.testing.assert_allclose(got, W, atol=1e-12)


def test_playground_step_at_p_one_sees_only_signs(script):
    W = torch.tensor([[2.0, 0.1], [-0.3, 0.4], [0.5, -1.5]], dtype=torch.double)  # no two share a quadrant: no ties
    X, _ = random_plane(6)
    rule = {"p": 1, "delta": 0}
    got = script(PlasticityPlayground, "js.step(x.W, x.X, 0.05, x.rule)", W=W.tolist(), X=X.tolist(), rule=rule)
    plasticity.step_(W, X, 0.05, p=1)
    np.testing.assert_allclose(got, W, atol=1e-12)


@RULES
def test_playground_energy_norms_and_winners_are_those_of_torch(script, p, delta, anti_rank):
    X, W = random_plane(4)
    weight = torch.arange(len(X)) % 10
    points = torch.cat([X, weight[:, None]], 1).tolist()
    rule = {"p": p, "delta": delta, "antiRank": anti_rank}
    expression = (
        "[js.energy(x.points, x.W, x.rule), x.W.map((w) => js.norm(w, x.rule.p)), js.winners(x.points, x.W, x.rule.p)]"
    )
    energy, norms, winners = script(PlasticityPlayground, expression, points=points, W=W.tolist(), rule=rule)
    repeated = X.repeat_interleave(weight, 0)
    want = plasticity.energy(repeated, W, p=p, delta=delta, anti_rank=anti_rank)
    np.testing.assert_allclose(energy, want, atol=1e-12)
    np.testing.assert_allclose(norms, plasticity.row_norms(W, p), atol=1e-12)
    assert winners == plasticity.overlaps(X, W, p).argmax(1).tolist()


def test_playground_starts_and_reads_its_map_like_python(script):
    widget = PlasticityPlayground(p=3, init_norm=0.7, n_units=5, preset="crescent")
    units, cells, lr = script(
        widget,
        "[js.launch(x.start, 0.7, 3), js.cells(x.density, x.extent), js.annealed(0.2, 3, 10)]",
        start=widget.start[:5],
        density=widget.density,
        extent=EXTENT,
    )
    np.testing.assert_allclose(units, widget.weights, atol=1e-12)
    mass = np.array([int(digit) for digit in widget.density])
    np.testing.assert_allclose(cells, np.column_stack([CENTRES, mass])[mass > 0], atol=1e-12)
    assert lr == pytest.approx(plasticity.annealed(0.2, 3, 10))


def test_playground_samples_follow_the_density_in_both_languages(script):
    density = "0" * (SIDE**2 - 3) + "109"  # cells in the lower right corner
    sample = f"js.sample(js.cells(x.density, {EXTENT}), 4000, {2 * EXTENT / SIDE})"
    widget = PlasticityPlayground(preset="painted")
    widget.density = density
    width = 2 * EXTENT / SIDE
    for X in (np.array(script(widget, sample, density=density)), widget._sample(4000, widget._rng).numpy()):
        assert X[:, 1].min() >= -EXTENT
        assert X[:, 1].max() <= -EXTENT + width
        assert (X[:, 0] > EXTENT - width).mean() == pytest.approx(0.9, abs=0.03)
        assert ((X[:, 0] > EXTENT - width) | (X[:, 0] < EXTENT - 2 * width)).all()


def test_playground_takes_real_steps_in_python_when_the_page_asks():
    asked, same = PlasticityPlayground(seed=5), PlasticityPlayground(seed=5)
    asked._on_message(None, {"steps": 3}, [])
    W = torch.tensor(same.weights, dtype=torch.double)
    for t, X in enumerate(same._sample(3 * BATCH, same._rng).split(BATCH)):
        plasticity.step_(W, X, plasticity.annealed(same.learning_rate, t, same.n_steps))
    assert asked.step == 3
    assert asked.weights == W.tolist()
    assert asked.batch == X.tolist()
    asked._on_message(None, {"steps": 10_000}, [])
    assert asked.step == asked.n_steps
    assert plasticity.row_norms(torch.tensor(asked.weights)).mean() == pytest.approx(1, abs=0.01)


def test_playground_without_data_stays_where_it_is():
    widget = PlasticityPlayground(preset="blank")
    before = widget.weights
    widget._on_message(None, {"steps": 3}, [])
    assert widget.weights == before


def test_traits_follow_each_other_in_python():
    explorer = CircleExplorer(n_units=3, hash_length=2, sigma=0.5)
    np.testing.assert_allclose(explorer.optimum, circle.optimal_angles(3, 0.5), atol=1e-6)
    explorer.n_units = 2
    assert explorer.hash_length == 1
    playground = PlasticityPlayground()
    playground.preset = "ring"
    assert playground.density == playground.presets["ring"]


# ---- their pages


@WIDGETS
def test_page_holds_module_and_state_and_asks_for_nothing(widget):
    html = widget().html()
    assert html.count("</script") == html.count("<script") == 1
    payload = json.loads(re.search(r"const { esm, state } = (.*);\n", html)[1])
    assert payload["esm"] == widget()._esm
    assert payload["state"] == widget().state()
    assert set(re.findall(r"https?://[\w./]*", html)) == {"http://www.w3.org/2000/svg"}
    assert len(html) < 60_000


@WIDGETS
def test_page_cannot_be_ended_by_its_data(widget):
    class Hostile(widget):
        def state(self):
            return {"text": "</script><!--<script>"}

    html = Hostile().html()
    assert html.count("</script") == html.count("<script") == 1
    assert "<!--" not in html


@WIDGETS
def test_widget_shows_as_a_view_and_as_a_page_of_its_own(widget):
    instance = widget()
    first, _ = instance._repr_mimebundle_()
    second, _ = instance._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= set(first)
    ids = [re.search(r'id="([^"]*)"', bundle["text/html"])[1] for bundle in (first, second)]
    assert ids[0] != ids[1]


def test_still_pictures_are_computed():
    explorer = CircleExplorer(n_units=4, sigma=2)
    circles = list(ET.fromstring(explorer.picture()).iter("{http://www.w3.org/2000/svg}circle"))
    angles = [np.arctan2(-float(c.get("cy")), float(c.get("cx"))) for c in circles]
    np.testing.assert_allclose(angles, circle.optimal_angles(4, 2), atol=2e-3)
    playground = PlasticityPlayground(n_units=7)
    assert playground.picture() == playground.picture()
    units = [c for c in ET.fromstring(playground.picture()) if c.get("r") == "3.6"]
    norms = [np.hypot(float(c.get("cx")), float(c.get("cy"))) * EXTENT / 100 for c in units]
    np.testing.assert_allclose(norms, np.ones(7), atol=0.05)
