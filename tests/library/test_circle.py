import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from biohash_mini import SparseCodes, circle
from biohash_mini.plasticity import energy, overlaps, row_norms, train

WIDTHS = [0.1, 0.5, 1.0, 2.0, 10.0, None]
TURN = 2 * np.pi

# sigma, arctan sigma, E (m = 2), psi (m = 3), E (m = 3), KL (k = 1), KL (k = 2)
ORACLE = [
    (0.1, 0.0996687, -0.9950372, 0.1993373, -0.9973717, 0.9168870, 2.4150753),
    (0.5, 0.4636476, -0.8977740, 0.9231259, -0.9448020, 0.3018633, 0.7070876),
    (1.0, 0.7853982, -0.7709807, 1.4589312, -0.8834097, 0.1090463, 0.2026596),
    (2.0, 1.1071487, -0.6819420, 1.7967566, -0.8472314, 0.0314265, 0.0445034),
    (10.0, 1.4711277, -0.6386618, 2.0402385, -0.8290317, 0.00135527, 0.00145427),
]


def integral(f, borders=(), start=-np.pi):
    """Return the integral of f over the circle by Gauss's rule, piece by piece between the borders, 0 and ±pi."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    cuts = sorted({start + (b - start) % TURN for b in (*borders, 0, np.pi)} | {start, start + TURN})
    return sum(
        (b - a) / 2 * weights @ np.stack([f(t) for t in (b + a + (b - a) * nodes) / 2]) for a, b in pairwise(cuts)
    )


def midpoints(angles, k=1):
    phi = sorted(angles)
    return [(a + b) / 2 for a, b in zip(phi, (phi + [p + TURN for p in phi])[k:], strict=False)]


def points(phi):
    """Return the points of the circle at these angles, shape (n, 2), float64."""
    return torch.tensor(np.stack([np.cos(phi), np.sin(phi)], axis=-1))


def even_data(n, sigma):
    """Return n angles that fill the density evenly, so that no noise of sampling is left."""
    return circle.quantile((np.arange(n) + 0.5) / n, sigma)


def random_angles(m, seed):
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, m)


# --- the density and its energy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", WIDTHS)
def test_eq_9_the_density_is_normalised_and_its_quantile_inverts_it(sigma):
    """Eq. (9): rho = alpha exp(-|phi| / sigma)."""
    assert integral(lambda t: circle.density(t, sigma)) == pytest.approx(1, abs=1e-12)
    for q in (0.0, 0.03, 0.5, 0.8, 1.0):
        cut = circle.quantile(q, sigma)
        mass = integral(lambda t, cut=cut: circle.density(t, sigma) * (t < cut), [cut])
        assert mass == pytest.approx(q, abs=1e-10)


@pytest.mark.parametrize("sigma", WIDTHS)
@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_eq_8_energy_and_its_gradient_are_the_integrals(m, sigma):
    """Eq. (8): the winner is the nearest unit, and a shift of the borders costs nothing."""
    angles = random_angles(m, seed=m)
    borders = midpoints(angles)

    want = integral(lambda t: -circle.density(t, sigma) * np.cos(t - angles).max(), borders)
    assert circle.energy(angles, sigma) == pytest.approx(want, abs=1e-10)
    winners = np.eye(m)
    want = integral(
        lambda t: circle.density(t, sigma) * np.sin(angles - t) * winners[np.cos(t - angles).argmax()], borders
    )
    np.testing.assert_allclose(circle.energy_gradient(angles, sigma), want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("sigma", [0.3, 1.0, None])
def test_eq_7_energy_on_the_circle_is_the_mean_energy_of_many_data(sigma):
    """Eqs. (7) and (8): a mean over data, as the factor 1/n says, while eq. (3) prints a sum."""
    angles = random_angles(5, seed=0)
    got = energy(points(even_data(200_000, sigma)), points(angles)).item()
    assert got == pytest.approx(circle.energy(angles, sigma), abs=1e-8)


def test_energy_takes_many_arrangements_at_once_in_any_order_and_beyond_a_turn():
    angles = np.stack([random_angles(4, seed) for seed in range(6)])
    want = [circle.energy(a, 0.7) for a in angles]
    np.testing.assert_allclose(circle.energy(angles, 0.7), want, rtol=0, atol=1e-15)
    np.testing.assert_allclose(circle.energy(angles[:, ::-1] + TURN, 0.7), want, rtol=0, atol=1e-14)
    gradients = np.stack([circle.energy_gradient(a, 0.7) for a in angles])
    np.testing.assert_allclose(circle.energy_gradient(angles[:, ::-1], 0.7), gradients[:, ::-1], rtol=0, atol=1e-15)


def test_energy_of_given_angles_is_the_oracle():
    assert circle.energy([-2.5, 0.4, 2.8], 0.7) == pytest.approx(-0.7714086, abs=5e-8)
    assert circle.energy([0.1, 0.2, -3, 1], 2.0) == pytest.approx(-0.7702500, abs=5e-8)


def test_an_infinite_width_and_none_are_the_uniform_density():
    angles = random_angles(4, seed=1)
    assert circle.energy(angles, math.inf) == circle.energy(angles)
    assert circle.energy(angles, 1e7) == pytest.approx(circle.energy(angles), abs=1e-7)
    assert circle.kl_divergence(math.inf) == circle.kl_divergence(None) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan])
def test_a_width_that_is_not_positive_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be positive"):
        circle.energy([0.0], sigma)


# --- where units settle -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLE, ids=[f"sigma={row[0]}" for row in ORACLE])
def test_two_and_three_units_are_the_oracle(row):
    sigma, arctan, E2, psi, E3, kl1, kl2 = row
    two, three = circle.optimal_angles(2, sigma), circle.optimal_angles(3, sigma)
    np.testing.assert_allclose(two, [-arctan, arctan], atol=5e-8)
    np.testing.assert_allclose(three, [-psi, 0, psi], atol=5e-8)
    got = [circle.energy(two, sigma), circle.energy(three, sigma), *(circle.kl_divergence(sigma, k) for k in (1, 2))]
    np.testing.assert_allclose(got, [E2, E3, kl1, kl2], atol=5.1e-8)


@pytest.mark.parametrize(("m", "want"), [(2, -0.6366198), (3, -0.8269933), (4, -0.9003163), (8, -0.9744954)])
def test_uniform_data_space_units_evenly(m, want):
    angles = circle.optimal_angles(m)
    np.testing.assert_allclose(np.diff(angles), TURN / m)
    assert circle.energy(angles) == pytest.approx(-m / np.pi * np.sin(np.pi / m), abs=1e-14)
    assert circle.energy(angles) == pytest.approx(want, abs=5e-8)
    uneven = angles + np.linspace(0, 0.1, m) ** 2
    assert circle.energy(uneven) > circle.energy(angles) == pytest.approx(circle.energy(angles + 0.3), abs=1e-14)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 3.0, 100.0])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 33])
def test_optimal_angles_are_stationary_mirrored_and_have_no_way_down(m, sigma):
    angles = circle.optimal_angles(m, sigma)
    assert np.abs(circle.energy_gradient(angles, sigma)).max() < 1e-12
    np.testing.assert_allclose(angles, -angles[::-1], atol=1e-12)
    assert np.linalg.eigvalsh(circle._hessian(angles, sigma)).min() > -1e-10
    rng = np.random.default_rng(m)
    for size in (1e-3, 0.1, 1.0):
        others = angles + size * sigma * rng.standard_normal((50, m))
        assert circle.energy(others, sigma).min() > circle.energy(angles, sigma) - 1e-12


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("m", [2, 3])
def test_the_search_for_many_units_finds_the_exact_two_and_three(m, sigma):
    np.testing.assert_allclose(circle._mirrored_minimum(m, sigma), circle.optimal_angles(m, sigma), atol=1e-10)


def centred(phi, sigma):
    """Return ascending units moved to the mean direction of their sectors (Lloyd's step), shape (..., m)."""
    phi, _ = circle._ascending(phi)
    _, cosine, sine = circle._sectors(circle._borders(phi), sigma)
    return np.arctan2(sine, cosine)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_no_start_ends_below_the_optimum(m, sigma):
    phi = np.random.default_rng(m).uniform(-np.pi, np.pi, (30, m))
    for _ in range(200):
        phi = centred(phi, sigma)
    E, best = circle.energy(phi, sigma), circle.energy(circle.optimal_angles(m, sigma), sigma)
    assert best - 1e-12 < E.min() < best + 1e-3


def test_the_hessian_is_the_derivative_of_the_gradient():
    angles, h = np.sort(random_angles(5, seed=3)), 1e-6
    up, down = (np.stack([circle.energy_gradient(angles + s * h * e, 0.8) for e in np.eye(5)]) for s in (1, -1))
    np.testing.assert_allclose((up - down) / (2 * h), circle._hessian(angles, 0.8), atol=1e-8)


@pytest.mark.parametrize("m", [2, 4, 8])
def test_an_even_number_of_units_has_one_flat_direction_and_an_odd_number_none(m):
    flat = np.linalg.eigvalsh(circle._hessian(circle.optimal_angles(m, 1.0), 1.0))[0]
    steep = np.linalg.eigvalsh(circle._hessian(circle.optimal_angles(m + 1, 1.0), 1.0))[0]
    assert abs(flat) < 1e-12 and steep > 1e-3


def test_an_unreachable_number_of_units_is_refused():
    with pytest.raises(ValueError, match="n_units must be an integer from 1 to 10000, got 0"):
        circle.optimal_angles(0)


# --- codes --------------------------------------------------------------------------------------------------------


def grid_codes(phi, angles, k):
    """Return the codes of data at phi by the package's own winner-take-all, shape (n, k)."""
    return SparseCodes.top_k(overlaps(points(phi), points(np.asarray(angles))), k)


@pytest.mark.parametrize("sigma", [0.6, None])
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_each_code_is_one_arc_and_the_arcs_are_those_of_winner_take_all(m, sigma):
    angles = random_angles(m, seed=10 + m)
    for k in range(1, m + 1):
        codes = circle.code_distribution(angles, sigma, k)
        assert len(codes.active) == (m if k < m else 1)
        assert codes.probability.sum() == pytest.approx(1, abs=1e-14)
        np.testing.assert_allclose((codes.stop - codes.start).sum(), TURN)
        for active, start, stop, p in zip(*codes, strict=True):
            inside = grid_codes(np.linspace(start, stop, 9)[1:-1], angles, k).active
            assert (np.sort(inside, 1) == np.sort(active)).all()
            mass = integral(lambda t, a=start, b=stop: circle.density(t, sigma) * (a < t < b), [start, stop], start)
            assert p == pytest.approx(mass, abs=1e-10)


def test_units_at_the_same_angle_leave_an_empty_arc():
    codes = circle.code_distribution([0.5, 0.5, 2.0], 1.0, 1)
    assert (codes.probability >= 0).all() and codes.probability.sum() == pytest.approx(1)
    assert np.isfinite(circle.kl_divergence(1.0, 1, angles=[0.5, 0.5, 2.0]))


@pytest.mark.parametrize("k", [0, 4])
def test_a_hash_length_beyond_the_units_is_refused(k):
    for call in (
        lambda: circle.code_distribution([0.0, 1.0, 2.0], None, k),
        lambda: circle.kl_divergence(1.0, k),
        lambda: circle.false_negative_rate(0.1, 3, k),
        lambda: circle.expected_hamming(0.1, 3, k),
    ):
        with pytest.raises(ValueError, match=f"between 1 and the number of units 3, got {k}"):
            call()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (6, 2), (6, 5)])
def test_both_divergences_are_their_integrals(m, k, sigma, reverse):
    for angles in (circle.optimal_angles(m, sigma), random_angles(m, seed=m)):
        _, start, stop, p = circle.code_distribution(angles, sigma, k)
        height = p / (stop - start)

        def integrand(t, start=start, stop=stop, height=height):
            q = height[np.searchsorted(stop, t)]
            rho = circle.density(t, sigma)
            return q * np.log(q / rho) if reverse else rho * np.log(rho / q)

        got = circle.kl_divergence(sigma, k, angles=angles, reverse=reverse)
        assert got == pytest.approx(integral(integrand, stop, start[0]), abs=1e-10)
    assert circle.kl_divergence(sigma, k, m, reverse=reverse) > 0


def exact_pairs(theta, m, k):
    """Return P(codes differ) and the mean Hamming distance, exact: both change only where a border is crossed."""
    angles = circle.optimal_angles(m)
    stop = circle.code_distribution(angles, None, k).stop
    cuts = np.unique(np.concatenate([stop, stop - theta]) % TURN)
    cuts = np.append(cuts, cuts[0] + TURN)
    middle, width = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) / TURN
    x, y = (grid_codes(phi, angles, k).to_matrix().toarray() for phi in (middle, middle + theta))
    distance = (x != y).sum(1)
    return width @ (distance > 0), width @ distance


@pytest.mark.parametrize(("m", "k"), [(m, k) for m in (2, 3, 4, 7, 8) for k in range(1, m + 1)])
def test_false_negatives_and_mean_distance_are_those_of_real_codes(m, k):
    for theta in (0.0, 0.1, 0.7, 1.3, 2.2, 3.0, np.pi):
        differ, distance = exact_pairs(theta, m, k)
        assert circle.false_negative_rate(theta, m, k) == pytest.approx(differ, abs=1e-10)
        assert circle.expected_hamming(theta, m, k) == pytest.approx(distance, abs=1e-10)


def test_an_angle_between_data_is_at_most_pi():
    with pytest.raises(ValueError, match="from 0 to pi"):
        circle.false_negative_rate([0.1, 3.2], 8)


# --- many units ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0, None])
def test_many_units_have_the_cube_root_of_the_density(sigma):
    m = 200
    gaps, phi = np.diff(circle.optimal_angles(m, sigma)), circle.optimal_angles(m, sigma)
    local = 1 / (m * gaps)
    np.testing.assert_allclose(local, circle.unit_density((phi[1:] + phi[:-1]) / 2, sigma), rtol=0.02)
    power = circle.density(phi, sigma) ** (1 / 3)
    ratio = power / circle.unit_density(phi, sigma)
    np.testing.assert_allclose(ratio, ratio[0])
    assert integral(lambda t: circle.unit_density(t, sigma)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, None])
def test_the_energy_of_many_units_approaches_its_limit_as_the_fourth_power(sigma):
    gaps = [circle.energy(circle.optimal_angles(m, sigma), sigma) - circle.many_unit_energy(m, sigma) for m in (20, 40)]
    assert abs(gaps[0]) < 1e-4
    assert gaps[0] / gaps[1] == pytest.approx(16, rel=0.05)


# --- the printed equations, and what goes wrong where they are misprinted -------------------------------------------


def printed_energy_of_two(phi_1, phi_2, sigma):
    """Eq. (10) as printed."""
    alpha = 1 / (2 * sigma * (1 - np.exp(-np.pi / sigma)))
    factor = alpha * sigma * (1 + np.exp(-np.pi / sigma)) / (1 + sigma**2)
    return -factor * (np.cos(phi_1) + sigma * np.sin(phi_1) + np.cos(phi_2) - sigma * np.sin(phi_2))


@pytest.mark.parametrize("sigma", [0.3, 0.7, 2.0])
def test_eq_10_as_printed_holds_for_mirrored_units_only(sigma):
    """Eq. (10): right for phi_2 = -phi_1 and phi_1 > 0; elsewhere too high, for it gives each unit a fixed half."""
    for phi in (0.2, 1.0, 2.9):
        assert printed_energy_of_two(phi, -phi, sigma) == pytest.approx(circle.energy([phi, -phi], sigma), abs=1e-12)
        assert printed_energy_of_two(-phi, phi, sigma) > circle.energy([phi, -phi], sigma) + 0.01
    phi = np.stack([random_angles(2, seed) for seed in range(200)])
    excess = printed_energy_of_two(*phi.T, sigma) - circle.energy(phi, sigma)
    assert excess.min() > -1e-12 and (excess > 0.01).mean() > 0.9
    assert printed_energy_of_two(0.3, 1.9, 0.7) == pytest.approx(-0.0606, abs=5e-5)
    assert circle.energy([0.3, 1.9], 0.7) == pytest.approx(-0.7352, abs=5e-5)


@pytest.mark.parametrize("sigma", [0.01, 0.5, 1.0, 3.0, 1e4])
def test_eq_11_as_printed_is_the_minimum_for_two_units(sigma):
    """Eq. (11): ±arctan(sigma); about sigma when small, a right angle when large."""
    angles = np.arctan(sigma) * np.array([1, -1])
    assert np.abs(circle.energy_gradient(angles, sigma)).max() < 1e-14
    want = -1 / np.tanh(np.pi / (2 * sigma)) / np.sqrt(1 + sigma**2)
    assert circle.energy(angles, sigma) == pytest.approx(want, abs=1e-13)
    assert np.abs(circle.energy_gradient(sigma * np.array([1, -1]), sigma)).max() > 1e-7  # not at ±sigma


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 2.0, 10.0])
def test_eq_16_as_printed_holds_the_outer_angle(sigma):
    """Eq. (16), with both limits of the text: 2 sigma (exactly 2 arctan sigma) and 2 pi / 3."""
    psi = circle.outer_angle(sigma)
    far = (sigma * np.cos(psi) - np.sin(psi)) * np.exp(-np.pi / sigma)
    near = (sigma * np.cos(psi / 2) - np.sin(psi / 2)) * np.exp(-psi / (2 * sigma))
    assert far + near == pytest.approx(0, abs=1e-14)
    assert circle.outer_angle(0.01) == pytest.approx(2 * np.arctan(0.01), abs=1e-14)
    assert circle.outer_angle() == pytest.approx(TURN / 3, abs=1e-14)
    assert circle.outer_angle(1e6) == pytest.approx(TURN / 3, abs=1e-5)


def printed_divergence(sigma, psi, k):
    """Eqs. (17) and (18) as printed."""
    e, half = np.exp(-np.pi / sigma), psi / (2 * sigma)
    first = -(sigma - (np.pi + sigma) * e) / (sigma * (1 - e))
    if k == 1:
        inner, outer = 1 - np.exp(-half), np.exp(-half) - e
    else:
        inner, outer = e * (-1 + np.exp(half)), 1 - np.exp(half - np.pi / sigma)
    return (
        first
        - inner / (1 - e) * np.log(2 * sigma * inner / psi)
        - outer / (1 - e) * np.log(sigma * outer / (np.pi - psi / 2))
    )


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 2.0, 10.0])
def test_eqs_17_and_18_as_printed_are_the_divergence_from_data_to_codes(sigma, k):
    """Eqs. (17) and (18): right, if codes are spread evenly over their arcs; the other direction differs."""
    printed = printed_divergence(sigma, circle.outer_angle(sigma), k)
    assert circle.kl_divergence(sigma, k) == pytest.approx(printed, abs=1e-10)
    assert abs(circle.kl_divergence(sigma, k, reverse=True) / printed - 1) > 1e-5


def test_both_divergences_vanish_for_smooth_data_whatever_the_units():
    """Supplement, after eq. (18): "the distributions match exactly" in the limit holds for any arrangement."""
    for k in (1, 2):
        assert circle.kl_divergence(1e3, k) * 72e6 / np.pi**2 == pytest.approx(1, rel=1e-3)
    assert circle.kl_divergence(1e3, 1, angles=[0.3]) < 1e-6
    assert circle.kl_divergence(1e3, 1, angles=[0.3, 0.31, 2.0]) < 1e-6


def test_both_divergences_grow_without_bound_for_narrow_data():
    sigma, keep = 0.01, 1 - 1 / np.e
    one = -1 - keep * np.log(keep) + (1 + np.log(np.pi / sigma)) / np.e
    assert circle.kl_divergence(sigma, 1) == pytest.approx(one, abs=0.01)
    assert circle.kl_divergence(sigma, 2) == pytest.approx(-1 + np.log(np.pi / sigma), abs=0.01)


@pytest.mark.parametrize("m", [2, 3, 8])
def test_false_negatives_as_printed_have_their_first_case_reversed(m):
    """Supplement, the probability P of false negatives: its first case must read theta <= 2 pi / m.

    As printed, "m theta / 2 pi for theta >= 2 pi / m" exceeds one, and near pairs have no value at all.
    """
    near, far = 0.5 * TURN / m, min(1.5 * TURN / m, np.pi)
    assert exact_pairs(near, m, 1)[0] == pytest.approx(circle.false_negative_rate(near, m)) == m * near / TURN == 0.5
    assert exact_pairs(far, m, 1)[0] == pytest.approx(circle.false_negative_rate(far, m)) == 1
    assert m == 2 or m * far / TURN > 1.4


def test_false_negatives_depend_on_the_angle_and_not_on_its_cosine():
    """Supplement, the same place: theta is called a cosine similarity, and is the angle."""
    theta, m = 0.3, 8
    differ, _ = exact_pairs(theta, m, 1)
    assert differ == pytest.approx(m * theta / TURN) != pytest.approx(min(1, m * np.cos(theta) / TURN), abs=0.1)


def test_the_printed_hash_length_of_one_is_no_restriction():
    """Supplement, the same place: "assuming k = 1"; every k < m gives the same probability."""
    theta = np.linspace(0, np.pi, 50)
    for k in range(2, 8):
        assert (circle.false_negative_rate(theta, 8, k) == circle.false_negative_rate(theta, 8, 1)).all()


def test_data_between_two_neighbours_share_a_code_for_even_gaps_only():
    """Sec. 2.2, panel B: "exactly identical hash codes" for k = 2 needs units at equal gaps."""
    even = np.full(8, TURN / 8)
    uneven = even * [1, 1, 1, 1.3, 1, 0.9, 0.9, 0.9]
    for gaps, alike in ((even, True), (uneven, False)):
        angles = np.cumsum(gaps)
        codes = np.sort(grid_codes(np.linspace(angles[2], angles[3], 12)[1:-1], angles, 2).active, 1)
        assert (codes == codes[0]).all() == alike


def test_the_density_of_units_is_not_that_of_the_data():
    """Sec. 2.2: "density is high where the data density is high" is so, but only as the cube root."""
    phi = circle.optimal_angles(200, 1.0)
    log_units, log_data = -np.log(np.diff(phi)), np.log(circle.density((phi[1:] + phi[:-1]) / 2, 1.0))
    assert np.polyfit(log_data, log_units, 1)[0] == pytest.approx(1 / 3, abs=0.002)


# --- the learning rule itself ---------------------------------------------------------------------------------------


def learned(X, m, seed, **settings):
    """Return units trained by the package's rule from m random data of norm 3, with norms that have reached one."""
    rng = torch.Generator().manual_seed(seed)
    W = 3 * X[torch.randperm(len(X), generator=rng)[:m]]
    train(X, W, norm_tol=0, rng=rng, **({"learning_rate": 0.03, "max_epochs": 40} | settings))
    assert (row_norms(W) - 1).abs().max() < 0.01
    return W


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("m", "tolerance"), [(2, 0.03), (3, 0.03), (8, 0.08)])
def test_stochastic_training_lands_on_the_optimum(m, tolerance, sigma):
    """Mirrored pairs are compared: to move the border at zero costs next to nothing if m is even."""
    X = points(even_data(4000, sigma))
    W = learned(X, m, seed=0)
    angles, best = np.sort(torch.atan2(W[:, 1], W[:, 0]).numpy()), circle.optimal_angles(m, sigma)
    np.testing.assert_allclose((angles - angles[::-1]) / 2, best, atol=tolerance)
    assert circle.energy(angles, sigma) - circle.energy(best, sigma) < 1e-3


@pytest.mark.parametrize("m", [2, 3, 8])
def test_stochastic_training_on_uniform_data_spaces_units_evenly(m):
    W = learned(points(even_data(4000, None)), m, seed=0)
    angles = np.sort(torch.atan2(W[:, 1], W[:, 0]).numpy())
    np.testing.assert_allclose(np.diff(angles), TURN / m, atol=0.04)
    assert circle.energy(angles) + m / np.pi * np.sin(np.pi / m) < 1e-3


def best_energy(X, m, starts=8):
    """Return the lowest energy of m unit directions by spherical k-means from random data, full batch."""
    lowest = np.inf
    for seed in range(starts):
        W = X[torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))[:m]]
        for _ in range(60):
            winner = overlaps(X, W / row_norms(W)[:, None]).argmax(1)
            W = torch.zeros(m, X.shape[1], dtype=X.dtype).index_add_(0, winner, X)
            W[row_norms(W) == 0] = X[0]
        lowest = min(lowest, energy(X, W / row_norms(W)[:, None]).item())
    return lowest


def peaks(centres, n, spread):
    """Return n data of a mixture of equal normal peaks, shape (n, d)."""
    rng = np.random.default_rng(0)
    centres = np.asarray(centres)
    return torch.tensor(
        centres[rng.integers(len(centres), size=n)] + spread * rng.standard_normal((n, centres.shape[1]))
    )


@pytest.mark.parametrize("m", [4, 8])
def test_training_in_the_plane_lands_on_the_optimum_of_a_density_with_several_peaks(m):
    X = peaks([[2, 0], [0, 1], [-1.5, 1.5], [-1, -2]], 4000, 0.4)
    assert energy(X, learned(X, m, seed=0)).item() < 0.995 * best_energy(X, m)


@pytest.mark.parametrize("m", [5, 12])
def test_training_on_the_sphere_lands_near_the_optimum_of_a_density_with_several_peaks(m):
    X = peaks([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, 0], [-1, 1, -1]], 4000, 0.3)
    X = X / row_norms(X)[:, None]
    assert energy(X, learned(X, m, seed=0)).item() < 0.995 * best_energy(X, m)
