import pytest
import torch

from biohash_mini.hashers.convolution.byte_layer import ByteSynapses
from biohash_mini.hashers.convolution.maps import ByteFeatures
from biohash_mini.hashers.convolution.sparse_layer import LazySynapses, level_products
from biohash_mini.plasticity import step_, train


def bytes_with_gaps(n, d, seed=0):
    """Levels of which most are zero, and a scale for each feature."""
    rng = torch.Generator().manual_seed(seed)
    levels = torch.randint(1, 256, (n, d), generator=rng) * (torch.rand(n, d, generator=rng) < 0.2)
    return levels.to(torch.uint8), 0.01 * (0.5 + torch.rand(d, generator=rng))


@pytest.mark.parametrize("reduction", ["mean", "implicit"])
@pytest.mark.parametrize("rate", [0.02, 0.5, 3.0])  # the last turns units round
def test_steps_are_those_of_the_rule(rate, reduction):
    levels, scale = bytes_with_gaps(60, 300)
    features = ByteFeatures(levels, scale)
    W = torch.randn(7, 300, generator=torch.Generator().manual_seed(1))
    lazy = LazySynapses(W, features, reduction == "implicit")
    for rows in torch.arange(60).split(20):
        step_(W, features[rows], rate / 10, reduction=reduction)
        lazy.step_(rows, rate / 10)
    torch.testing.assert_close(lazy.weights(), W, rtol=1e-4, atol=1e-4)


def test_a_unit_that_wins_for_long_is_multiplied_out():
    levels, scale = bytes_with_gaps(400, 50)
    features = ByteFeatures(levels, scale)
    W = torch.randn(2, 50, generator=torch.Generator().manual_seed(1))
    lazy = LazySynapses(W, features)
    faintest, multiplied_out = 1.0, 0
    for _ in range(20):
        for rows in torch.arange(400).split(10):
            before = lazy.alpha.copy()
            step_(W, features[rows], 0.1, reduction="mean")
            lazy.step_(rows, 0.1)
            faintest = min(faintest, abs(lazy.alpha).min())
            multiplied_out += (abs(lazy.alpha) > 1e3 * abs(before)).sum()
    assert 1e-6 <= faintest and multiplied_out > 0
    torch.testing.assert_close(lazy.weights(), W, rtol=1e-3, atol=1e-3)


def test_weights_can_be_taken_in_the_middle():
    levels, scale = bytes_with_gaps(40, 300)
    features = ByteFeatures(levels, scale)
    W = torch.randn(7, 300, generator=torch.Generator().manual_seed(1))
    once, twice = LazySynapses(W, features), LazySynapses(W, features)
    for rows in torch.arange(40).split(20):
        once.step_(rows, 0.05)
        twice.step_(rows, 0.05)
        twice.weights()
    torch.testing.assert_close(once.weights(), twice.weights(), rtol=1e-4, atol=1e-5)


def clustered_bytes(n, d, clusters):
    """Levels of rows that are like one of a few, and a scale for each feature."""
    levels, scale = bytes_with_gaps(n, d)
    kept, (kinds, _) = (
        torch.rand(n, d, generator=torch.Generator().manual_seed(2)) < 0.8,
        bytes_with_gaps(clusters, d, 1),
    )
    return torch.where(kept, kinds[torch.arange(n) % clusters], levels), scale


@pytest.mark.parametrize("reduction", ["mean", "implicit"])
@pytest.mark.parametrize("rate", [0.002, 0.01])
def test_steps_whose_winners_are_found_by_bytes_are_those_of_the_rule(rate, reduction):
    features = ByteFeatures(*clustered_bytes(300, 2000, 7))
    W = 3 * torch.nn.functional.normalize(features[torch.arange(7)])
    brief = ByteSynapses(W.clone(), features, reduction == "implicit")
    for rows in torch.arange(300).split(50):
        step_(W, features[rows], rate, reduction=reduction)
        brief.step_(rows, rate)
    torch.testing.assert_close(brief.weights(), W, rtol=1e-3, atol=1e-4)


def test_products_of_bytes_are_off_by_one_in_a_hundred_of_the_overlap_of_unrelated_vectors():
    levels, scale = bytes_with_gaps(50, 5000)
    features = ByteFeatures(levels, scale)
    W = torch.randn(9, 5000, generator=torch.Generator().manual_seed(1))
    S = features[torch.arange(50)] @ W.T
    assert (ByteSynapses(W, features).overlaps(levels) - S).norm() / S.norm() < 0.02


def test_first_synapses_are_left_alone():
    levels, scale = bytes_with_gaps(20, 30)
    W = torch.randn(3, 30, generator=torch.Generator().manual_seed(1))
    before = W.clone()
    LazySynapses(W, ByteFeatures(levels, scale)).step_(torch.arange(20), 0.1)
    torch.testing.assert_close(W, before, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 300, 7), (30, 1000, 600)])
def test_products_with_bytes_are_dense_products(shape):
    n, d, m = shape
    levels, scale = bytes_with_gaps(n, d)
    V = torch.randn(d, m, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(level_products(levels, scale, V), levels * scale @ V, rtol=1e-4, atol=1e-4)


def test_a_layer_learns_what_dense_training_learns():
    levels, scale = bytes_with_gaps(500, 200)
    features = ByteFeatures(levels, scale)
    W = torch.randn(5, 200, generator=torch.Generator().manual_seed(1))
    lazy = LazySynapses(W, features)
    rng = torch.Generator().manual_seed(0)
    train(features, W, reduction="mean", learning_rate=0.02, max_epochs=1, norm_tol=0, batch_size=50, rng=rng)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(0))
    for rows in order.split(50):
        lazy.step_(rows, 0.02)
    torch.testing.assert_close(lazy.weights(), W, rtol=1e-3, atol=1e-3)
