"""What must hold for any input: invariances, and slow oracles over shapes at the edge of what there can be."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from biohash_mini import METHODS, HammingIndex, average_precision, circle, mean_average_precision, tie_bounds
from biohash_mini.codes import SparseCodes
from biohash_mini.plasticity import energy, overlaps, plasticity_update, step_
from tests.helpers import random_codes
from tests.library.hashers.contract import make

VECTORS = [name for name, method in METHODS.items() if not method.takes_images]
some = settings(deadline=None, max_examples=40)
kinds, seeds = st.sampled_from(["sparse", "dense"]), st.integers(0, 1000)
sizes = st.integers(1, 40).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m)))  # m, k: k = 1 and k = m too
counts = st.sampled_from([1, 2, 7, 65])
classes = st.sampled_from([1, 2, 1000])  # all relevant, some, hardly any


# ---------------------------------------------------------------- search and metrics


def duplicated(kind, n, mk, seed):
    """Return n codes, about half of them copies of others."""
    codes = random_codes(kind, n, *mk, seed)
    return codes[np.random.default_rng(seed).integers(0, max(1, n // 2), n)]


@some
@given(kinds, sizes, counts, counts, classes, seeds)
def test_permuting_the_database_permutes_what_is_found_and_leaves_expected_map(kind, mk, n, q, c, seed):
    rng = np.random.default_rng(seed)
    database, queries, order = duplicated(kind, n, mk, seed), random_codes(kind, q, *mk, seed + 1), rng.permutation(n)
    labels, asked = rng.integers(0, c, n), rng.integers(0, c, q)
    far, ids = HammingIndex(database).search(queries, n)
    far_too, ids_too = HammingIndex(database[order]).search(queries, n)
    assert np.array_equal(far, far_too) and np.array_equal(np.sort(order[ids_too]), np.sort(ids))
    assert np.array_equal(np.take_along_axis(queries.hamming(database), order[ids_too], 1), far)
    for at in (None, 1, 5):
        bounds = tie_bounds(queries, database, asked, labels, at)
        assert tie_bounds(queries, database[order], asked, labels[order], at) == pytest.approx(bounds, abs=1e-12)
        assert bounds.worst - 1e-12 <= bounds.expected <= bounds.best + 1e-12


@some
@given(sizes, counts, seeds)
def test_relabelling_units_leaves_distances(mk, n, seed):
    codes, order = random_codes("sparse", n, *mk, seed), np.random.default_rng(seed).permutation(mk[0])
    other = SparseCodes(order[codes.active], mk[0])
    assert np.array_equal(codes.hamming(codes), other.hamming(other))
    assert np.array_equal(HammingIndex(codes).search(codes, n)[1], HammingIndex(other).search(other, n)[1])


@some
@given(counts, st.integers(1, 70), seeds)
def test_average_precision_of_ties_alone_is_that_of_a_random_order(n, at, seed):
    relevant = np.random.default_rng(seed).random(n) < 0.5
    expected = average_precision(np.zeros(n), relevant, at)[0]
    draws = np.random.default_rng(seed).permuted(np.tile(relevant, (2000, 1)), axis=1)
    drawn = average_precision(np.tile(np.arange(n), (2000, 1)), draws, at, "index")
    assert abs(drawn.mean() - expected) <= 5 * drawn.std() / 2000**0.5 + 1e-12
    assert average_precision(np.zeros(n), np.ones(n), at)[0] == pytest.approx(1, abs=1e-12)
    assert average_precision(np.zeros(n), np.zeros(n), at)[0] == 0


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_an_empty_database_is_searched_and_not_scored(kind):
    none, queries = random_codes(kind, 0, 8, 2), random_codes(kind, 3, 8, 2)
    assert HammingIndex(none).search(queries, 5)[1].shape == (3, 0)
    assert HammingIndex(queries).search(none, 5)[1].shape == (0, 3)
    with pytest.raises(ValueError, match="there are no database codes"):
        mean_average_precision(queries, none, np.zeros(3), np.zeros(0))


# ---------------------------------------------------------------- codes


@some
@given(sizes, counts, seeds, st.sampled_from([1e-30, 1.0, 1e30]), st.sampled_from(["float32", "float64"]))
def test_the_units_that_are_on_are_those_of_a_stable_sort(mk, n, seed, scale, dtype):
    (m, k), rng = mk, np.random.default_rng(seed)
    S = torch.from_numpy(rng.integers(-2, 3, (n, m)) * scale).to(getattr(torch, dtype))  # many ties
    want = np.sort(np.argsort(-S.numpy(), axis=1, kind="stable")[:, :k], axis=1)
    assert np.array_equal(SparseCodes.top_k(S, k).active, want)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("method", VECTORS)
@pytest.mark.filterwarnings("ignore:.* bits of DH are the same")  # small whole numbers do not suit it
def test_the_same_numbers_have_the_same_codes_in_any_type(method, name):
    X = torch.randint(0, 100, (60, 12), generator=torch.Generator().manual_seed(0))
    X[:, 3] = 7  # a constant feature
    X[30:] = X[:30]  # every point twice
    codes = make(method, 4).fit(X.float()).encode(X.float())
    assert make(method, 4).fit(X.to(getattr(torch, name))).encode(X.to(getattr(torch, name))) == codes
    assert codes[30:] == codes[:30]


@pytest.mark.parametrize("power", [-20, -3, 5, 20])
@pytest.mark.parametrize("method", VECTORS)
def test_scaling_all_inputs_leaves_the_codes(method, power):
    X = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    if method == "DH" and power > 0:
        X = np.ldexp(X, -power - 1)  # it brings short rows to one length, and leaves long ones as they are
    assert make(method, 4).fit(np.ldexp(X, power)).encode(np.ldexp(X, power)) == make(method, 4).fit(X).encode(X)


# ---------------------------------------------------------------- the plasticity rule


def slow_update(X, W, p, r, delta):
    """Eq. (1), summed sample by sample and unit by unit."""
    out = torch.zeros_like(W)
    for x in X:
        s = torch.stack([(w.abs() ** (p - 2) * w * x).sum() for w in W])
        order = s.argsort(descending=True)
        gains = [(order[0], 1.0)] + ([(order[r - 1], -delta)] if delta else [])
        for unit, g in gains:
            out[unit] += g * (x - s[unit] * W[unit])
    return out


@some
@given(st.sampled_from([1, 2, 9]), st.integers(2, 7), st.sampled_from([1, 5]), st.sampled_from([2.0, 3.0]), seeds)
def test_the_update_is_the_slow_loop_and_follows_relabelled_units_and_rows(n, m, d, p, seed):
    rng = torch.Generator().manual_seed(seed)
    X, W = (torch.randn(rows, d, generator=rng, dtype=torch.float64) for rows in (n, m))
    r, delta = 2 + seed % (m - 1), (0.0, 0.4)[seed % 2]
    update = plasticity_update(X, W, p=p, anti_rank=r, delta=delta)
    torch.testing.assert_close(update, slow_update(X, W, p, r, delta))
    units, rows = torch.randperm(m, generator=rng), torch.randperm(n, generator=rng)
    torch.testing.assert_close(plasticity_update(X[rows], W[units], p=p, anti_rank=r, delta=delta), update[units])
    torch.testing.assert_close(energy(X[rows], W[units], p=p), energy(X, W, p=p))


@some
@given(st.sampled_from(["max", "mean", "implicit"]), st.sampled_from([1e-12, 1.0, 1e12]), seeds)
def test_a_step_on_one_sample_that_is_repeated_is_the_step_on_that_sample(reduction, scale, seed):
    rng = torch.Generator().manual_seed(seed)
    x, W = scale * torch.randn(1, 6, generator=rng), torch.randn(4, 6, generator=rng)
    once, often = W.clone(), W.clone()
    step_(once, x, 0.1 / scale, reduction=reduction)
    step_(often, x.expand(8, 6), 0.1 / scale, reduction=reduction)
    torch.testing.assert_close(once, often, rtol=1e-4, atol=1e-5)
    moved = (once != W).any(1).nonzero().flatten().tolist()
    assert moved in ([], [int(overlaps(x, W).argmax())])


# ---------------------------------------------------------------- the circle

angle_lists = st.lists(st.floats(-20, 20), min_size=1, max_size=6)
widths = st.one_of(st.none(), st.floats(0.05, 50))


@some
@given(angle_lists, widths, seeds)
def test_the_energy_does_not_know_the_order_of_units_nor_mirrors_nor_turns(angles, sigma, seed):
    phi, rng = np.array(angles), np.random.default_rng(seed)
    value = circle.energy(phi, sigma)
    assert -1 - 1e-12 <= value <= 1 + 1e-12
    for other in (rng.permutation(phi), -phi, phi + 2 * np.pi * rng.integers(-3, 4, len(phi)), np.append(phi, phi[0])):
        assert circle.energy(other, sigma) == pytest.approx(value, abs=1e-9)
    if sigma is None:
        assert circle.energy(phi + 1.234) == pytest.approx(circle.energy(phi), abs=1e-9)
    assert circle.energy(np.append(phi, 0.3), sigma) <= value + 1e-9  # one more unit never hurts


@some
@given(angle_lists, widths, seeds)
def test_the_codes_of_the_circle_share_out_all_data(angles, sigma, seed):
    k = 1 + seed % len(angles)
    found = circle.code_distribution(angles, sigma, k)
    assert found.probability.sum() == pytest.approx(1, abs=1e-9) and (found.probability >= 0).all()
    assert found.active.shape[1] == k
