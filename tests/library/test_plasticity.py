from functools import partial

import pytest
import torch

from biohash_mini import BioHash, load
from biohash_mini.plasticity import (
    anneal,
    annealed,
    energy,
    overlaps,
    plasticity_update,
    rank_gain,
    row_norms,
    step_,
    train,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def test_update_pulls_the_winner_and_pushes_the_second_rank():
    W = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    x = torch.tensor([[0.8, 0.6]])  # overlaps 0.8, 0.6, -0.8
    # winner: x - 0.8 W_1;  second: -0.5 (x - 0.6 W_2)
    want = torch.tensor([[0.0, 0.6], [-0.4, 0.0], [0.0, 0.0]])
    torch.testing.assert_close(plasticity_update(x, W, delta=0.5), want)


@pytest.mark.parametrize("r", [2, 3, 5])
def test_the_anti_hebbian_rank_is_counted_from_one(r):
    S = torch.tensor([[5.0, 1.0, 4.0, 2.0, 3.0]])
    by_rank = [0, 2, 4, 3, 1]
    want = torch.zeros(1, 5)
    want[0, by_rank[0]], want[0, by_rank[r - 1]] = 1, -0.4
    assert torch.equal(rank_gain(S, r, 0.4), want)


def slow_update(X, W, p, r, delta):
    """Eq. (1) read aloud: one sample and one unit at a time."""
    out = torch.zeros_like(W)
    for x in X:
        a = torch.stack([sum(abs(w) ** (p - 2) * w * v for w, v in zip(row, x, strict=True)) for row in W])
        ranked = sorted(range(len(W)), key=lambda u: -a[u])
        for unit, gain in ((ranked[0], 1.0), (ranked[r - 1], -delta)):
            out[unit] += gain * (x - a[unit] * W[unit])
    return out


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize(("r", "delta"), [(2, 0.0), (2, 0.3), (4, 0.3), (3, -0.2)])
def test_batched_update_is_the_slow_loop(p, r, delta):
    X, W = torch.randn(9, 5, generator=rng()), torch.randn(6, 5, generator=rng(1))
    want = slow_update(X, W, p, r, delta)
    torch.testing.assert_close(plasticity_update(X, W, p=p, anti_rank=r, delta=delta), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize(("m", "r", "delta"), [(3, 2, 0.0), (3, 3, 0.4), (50, 2, 0.4), (50, 7, 0.0), (1, 2, 0.0)])
def test_a_step_is_the_update_scaled_by_its_largest_entry(p, m, r, delta):
    X, W = torch.randn(40, 8, generator=rng()), torch.randn(m, 8, generator=rng(1))
    update = plasticity_update(X, W, p=p, anti_rank=r, delta=delta)
    want = W + 0.02 * update / update.abs().max()
    step_(W, X, 0.02, p=p, anti_rank=r, delta=delta)
    torch.testing.assert_close(W, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("m", "r", "delta"), [(3, 2, 0.0), (3, 3, 0.4), (50, 7, 0.4)])
def test_a_mean_step_is_the_update_per_sample_that_moved_the_unit(m, r, delta):
    X, W = torch.randn(40, 8, generator=rng()), torch.randn(m, 8, generator=rng(1))
    moved = rank_gain(overlaps(X, W), r, delta).count_nonzero(0).clamp(min=1)
    want = W + 0.02 * plasticity_update(X, W, anti_rank=r, delta=delta) / moved[:, None]
    step_(W, X, 0.02, anti_rank=r, delta=delta, reduction="mean")
    torch.testing.assert_close(W, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["max", "mean", "implicit"])
def test_a_unit_without_a_sample_stays_where_it_is(reduction):
    X, W = torch.randn(40, 8, generator=rng()), torch.randn(20, 8, generator=rng(1))
    still = rank_gain(overlaps(X, W)).count_nonzero(0) == 0
    before = W.clone()
    step_(W, X, 0.02, reduction=reduction)
    assert still.any() and torch.equal(W[still], before[still]) and (W[~still] != before[~still]).any()


@pytest.mark.parametrize("reduction", ["max", "mean"])
def test_a_step_on_zeros_moves_nothing(reduction):
    W = torch.randn(4, 3, generator=rng())
    before = W.clone()
    step_(W, torch.zeros(5, 3), 0.02, reduction=reduction)
    assert torch.equal(W, before)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_a_small_full_batch_step_lowers_the_energy_on_the_unit_sphere(p, delta):
    X, W = torch.randn(60, 4, generator=rng()).double(), torch.randn(5, 4, generator=rng(1)).double()
    W /= row_norms(W, p)[:, None]
    kwargs = {"p": p, "anti_rank": 2, "delta": delta}
    moved = W + 1e-5 * plasticity_update(X, W, **kwargs)
    assert energy(X, moved, **kwargs) < energy(X, W, **kwargs)


def test_energy_of_aligned_units_is_minus_the_mean_norm_of_the_data():
    X = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    torch.testing.assert_close(energy(X, torch.tensor([[7.0, 0.0], [0.0, 0.5]])), torch.tensor(-3.5))


def test_overlaps_with_p_two_are_dot_products_and_with_p_one_signed_sums():
    X, W = torch.randn(4, 6, generator=rng()), torch.randn(3, 6, generator=rng(1))
    torch.testing.assert_close(overlaps(X, W, 2.0), X @ W.T)
    torch.testing.assert_close(overlaps(X, W, 1.0), X @ W.sign().T)


def test_the_learning_rate_falls_linearly_and_never_reaches_zero():
    assert [annealed(0.02, t, 4) for t in range(4)] == pytest.approx([0.02, 0.015, 0.01, 0.005])


def test_training_stops_at_the_norm_and_units_reach_the_unit_sphere():
    X = torch.randn(2000, 10, generator=rng())
    W = torch.randn(12, 10, generator=rng(1))
    history = train(X, W, norm_tol=1.06, rng=rng(2))
    assert row_norms(W).mean() < 1.06 < torch.tensor([e.mean_norm for e in history[:-1]]).min()
    assert history[-1].number == len(history) < 100


def test_training_runs_the_whole_schedule_without_a_tolerance():
    X, W = torch.randn(200, 5, generator=rng()), torch.randn(4, 5, generator=rng(1))
    assert len(train(X, W, norm_tol=0, max_epochs=7, rng=rng(2))) == 7


def test_training_ends_after_the_epoch_at_which_it_is_told_to():
    X, W = torch.randn(200, 5, generator=rng()), torch.randn(4, 5, generator=rng(1))
    told = []
    history = train(X, W, norm_tol=0, rng=rng(2), progress=lambda epoch: told.append(epoch) or epoch.number == 3)
    assert history == told
    assert [epoch.number for epoch in told] == [1, 2, 3]


def test_training_that_diverges_says_what_to_do():
    X, W = torch.randn(200, 5, generator=rng()), torch.randn(4, 5, generator=rng(1))
    with pytest.raises(ValueError, match=r"training diverges: lower the learning_rate, 1e\+30"):
        train(X, W, learning_rate=1e30, rng=rng(2))


def test_training_in_which_all_synapses_vanish_says_so():
    X = load("mnist").vectors(slice(0, 300))
    for learn in (BioHash(4, p=50).fit, BioHash(4, p=50).partial_fit):  # overlaps of 3 to the 49th power
        with pytest.raises(ValueError, match="training diverges: lower the learning_rate"):
            learn(X)


@pytest.mark.parametrize("reduction", ["max", "mean", "implicit"])
def test_a_step_on_no_rows_moves_nothing(reduction):
    W = torch.randn(4, 5, generator=rng())
    moved = W.clone()
    step_(moved, torch.zeros(0, 5), 0.1, delta=0.3, reduction=reduction)
    assert torch.equal(moved, W)


def test_a_rank_or_reduction_that_there_is_not_is_refused():
    X, W = torch.ones(2, 5), torch.eye(4, 5)
    for rank in (1, 0, 5):
        for use in (partial(step_, W, X, 0.1), partial(plasticity_update, X, W)):
            with pytest.raises(ValueError, match=f"anti_rank must lie between 2 and the number of units 4, got {rank}"):
                use(delta=0.3, anti_rank=rank)
    with pytest.raises(ValueError, match="reduction must be one of max, mean, implicit, got 'sum'"):
        step_(W, X, 0.1, reduction="sum")
    assert torch.equal(W, torch.eye(4, 5))


def test_training_recovers_well_separated_directions():
    centres = torch.eye(8)
    X = centres.repeat(100, 1) + 0.05 * torch.randn(800, 8, generator=rng())
    W = torch.randn(24, 8, generator=rng(1))
    assert (centres @ (W / row_norms(W)[:, None]).T).max(1).values.min() < 0.7
    train(X, W, norm_tol=0, max_epochs=60, rng=rng(2))
    assert (centres @ W.T).max(1).values.min() > 0.95


@pytest.mark.parametrize(("r", "delta"), [(2, 0.0), (3, 0.4)])
def test_the_implicit_step_ends_where_the_mean_step_would_go_from(r, delta):
    X, W = torch.randn(40, 8, generator=rng()), torch.randn(6, 8, generator=rng(1))
    S, before = overlaps(X, W), W.clone()
    g = rank_gain(S, r, delta)
    count = g.count_nonzero(0).clamp(min=1)[:, None]
    step_(W, X, 0.3, anti_rank=r, delta=delta, reduction="implicit")
    x, s = g.T @ X / count, ((g * S).sum(0)[:, None] / count).clamp(min=0)
    torch.testing.assert_close(W, before + 0.3 * (x - s * W), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_an_implicit_step_diverges_at_no_scale(scale):
    X, W = scale * torch.randn(500, 8, generator=rng()), torch.randn(12, 8, generator=rng(1))
    for rows in X.split(20):
        step_(W, rows, 10.0, reduction="implicit")
    assert W.isfinite().all() and row_norms(W).max() < 50


@pytest.mark.parametrize("reduction", ["max", "mean", "implicit"])
def test_synapses_on_inputs_that_never_vary_vanish_and_do_not_fade(reduction):
    X, W = torch.randn(400, 8, generator=rng()), torch.randn(4, 8, generator=rng(1))
    X[:, 5:] = 0
    train(X, W, reduction=reduction, learning_rate=0.2, max_epochs=60, batch_size=20, norm_tol=0.0, rng=rng())
    faint = W.abs() < 1e-30
    assert not W[faint].any() and row_norms(W[:, :5]).min() > 0.5
    assert reduction == "max" or faint[:, 5:].all()  # the max step shrinks by little


def test_a_smooth_rate_falls_within_an_epoch():
    rates = []
    anneal(
        lambda rows, lr: rates.append(lr),
        lambda: 2.0,
        30,
        learning_rate=1.0,
        max_epochs=2,
        batch_size=10,
        norm_tol=0.0,
        smooth=True,
        rng=rng(),
    )
    assert rates == pytest.approx([1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
