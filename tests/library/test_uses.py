"""What codes are used for beside neighbours, against cases worked by hand."""

import numpy as np
import pytest

from biohash_mini.codes import SparseCodes
from biohash_mini.uses import AssociativeReadout, FlyBloomFilter, augment_items, augment_queries


def codes(*active, n_units=4):
    return SparseCodes(np.array(active), n_units)


def test_items_are_lifted_to_the_sphere_by_what_they_lack_in_length():
    lifted = augment_items(np.array([[3.0, 4.0], [0.0, 3.0], [0.0, 0.0]]))
    np.testing.assert_allclose(lifted, [[0.6, 0.8, 0], [0, 0.6, 0.8], [0, 0, 1]], atol=1e-7)
    assert lifted.dtype == np.float32


def test_queries_get_length_one_and_a_zero_behind():
    assert augment_queries(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == pytest.approx(
        np.array([[0.6, 0.8, 0], [0, 0, 0]])
    )


def test_the_angle_ranks_as_the_inner_product_does():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(50, 6)) * rng.exponential(size=(50, 1)), rng.normal(size=(8, 6))
    cosines = augment_queries(Q) @ augment_items(X).T
    most, lengths = np.linalg.norm(X, axis=1).max(), np.linalg.norm(Q, axis=1)[:, None]
    np.testing.assert_allclose(cosines, Q @ X.T / (most * lengths), atol=1e-6)


@pytest.mark.parametrize("X", [np.zeros((2, 3)), np.full((1, 3), np.nan), np.zeros((0, 3))])
def test_items_without_a_largest_norm_are_refused(X):
    with pytest.raises(ValueError, match="norm"):
        augment_items(X)


def test_a_class_scores_by_how_often_the_units_were_its_own():
    model = AssociativeReadout(smoothing=1).learn(codes([0, 1], [0, 2], [2, 3]), [0, 0, 1])
    assert model.counts_.tolist() == [[2, 1, 1, 0], [0, 0, 1, 1]]
    # n_c k / m is 1 and 0.5: gamma of units 0 and 3 is log(3/2), log(1/2) and log(1/1.5), log(2/1.5)
    want = [np.log(3 / 2) + np.log(1 / 2), np.log(1 / 1.5) + np.log(2 / 1.5)]
    np.testing.assert_allclose(model.scores(codes([0, 3])), [want])
    assert model.predict(codes([0, 1], [2, 3])).tolist() == [0, 1]


def test_one_class_after_the_other_is_as_good_as_all_at_once():
    rng = np.random.default_rng(1)
    C = SparseCodes(np.argsort(rng.random((60, 20)), axis=1)[:, :4], 20)
    labels = rng.integers(0, 3, 60)
    together, apart = AssociativeReadout().learn(C, labels), AssociativeReadout()
    for c in (1, 0, 2):
        apart.learn(C[labels == c], labels[labels == c])
    assert np.array_equal(together.counts_, apart.counts_)
    assert np.array_equal(together.scores(C), apart.scores(C))


def test_a_class_never_seen_is_never_predicted():
    model = AssociativeReadout().learn(codes([0, 1]), [2])
    assert np.isneginf(model.scores(codes([2, 3]))[0, :2]).all() and model.predict(codes([2, 3])).tolist() == [2]


def test_a_filter_that_forgets_nothing_is_a_bloom_filter():
    fly = FlyBloomFilter().store(codes([0, 1], [0, 2]))
    assert fly.novelty(codes([0, 1], [1, 3], [0, 3])).tolist() == [0, 0.5, 0.5]


def test_each_sighting_takes_a_share_of_the_novelty():
    fly = FlyBloomFilter(decay=0.5)
    assert fly.novelty(codes([0, 1])).tolist() == [1]
    fly.store(codes([0, 1])).store(codes([0, 2]))
    assert fly.novelty(codes([0, 3], [1, 2])).tolist() == [(0.25 + 1) / 2, 0.5]


@pytest.mark.parametrize(
    "make", [lambda: FlyBloomFilter(0), lambda: FlyBloomFilter(1.1), lambda: AssociativeReadout(0)]
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match=r"decay|smoothing"):
        make()


def test_codes_of_other_units_are_refused():
    other = codes([0, 1], n_units=5)
    with pytest.raises(ValueError, match="units"):
        FlyBloomFilter().store(codes([0, 1])).store(other)
    with pytest.raises(ValueError, match="units"):
        AssociativeReadout().learn(codes([0, 1]), [0]).learn(other, [0])
    with pytest.raises(ValueError, match="labels"):
        AssociativeReadout().learn(codes([0, 1]), [0, 1])
