"""Stages before a hasher: gradients of images, and units that are wired by firing together."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from biohash_mini import BioHash, load, mean_average_precision
from biohash_mini.wiring import Wiring, gradients


def rings(n=400, height=0.4):
    """Return two parallel rings, and on which of them a row lies; across a ring it is further than between the two."""
    rng = np.random.default_rng(0)
    angle, side = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    X = np.stack([np.cos(angle), np.sin(angle), height * (2 * side - 1)], 1)
    return (X + rng.normal(scale=0.02, size=X.shape)).astype(np.float32), side


def test_a_ramp_votes_for_its_direction_alone():
    ramp = np.tile(np.arange(8, dtype=np.float32), (8, 1))
    across, down = ramp[None, None], ramp.T[None, None]
    for images, direction in ((across, 0), (down, 2), (-across, 4), (-down, 6)):
        part = gradients(images, cell=4, directions=8).reshape(8, -1)
        assert part[direction].min() > 0.9 and np.delete(part, direction, 0).max() < 1e-3


def test_a_direction_between_two_is_shared_and_a_flat_image_votes_for_none():
    y, x = np.mgrid[:8, :8].astype(np.float32)
    slope = (np.cos(np.pi / 8) * x + np.sin(np.pi / 8) * y)[None, None]
    part = gradients(slope).reshape(8, -1)[:, 0]
    assert part[0] == pytest.approx(part[1], rel=0.1) and part[2:].max() < 1e-3
    assert not gradients(np.ones((2, 3, 8, 8))).any()


def test_brightness_does_not_move_the_gradients_and_contrast_hardly():
    X = load("mnist").vectors(slice(0, 20)).reshape(-1, 1, 28, 28)
    F = gradients(X)
    assert F.shape == (20, 6 * 6 * 8) and F.dtype == np.float32
    np.testing.assert_allclose(gradients(X + 1), F, atol=1e-3)
    assert np.linalg.norm(gradients(2 * X) - F) < 0.1 * np.linalg.norm(F)  # 2 X - X is as long as X


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": np.ones((2, 64))}, r"shape \(n, c, h, w\), got \(2, 64\)"),
        ({"cell": 5}, "cell must be an integer from 1 to 4, got 5"),
        ({"directions": 1}, "directions must be an integer of at least 2, got 1"),
    ],
)
def test_what_has_no_gradients_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        gradients(**{"images": np.ones((2, 1, 8, 8)), **given})


def test_chains_of_neighbours_come_close_and_other_chains_do_not():
    X, side = rings()
    F = Wiring(60, winners=3, modes=2).fit_transform(X)
    alike = F @ F.T
    same = side[:, None] == side
    assert alike[same].mean() > 0.8 > alike[~same].mean() + 0.5
    nearest = np.argsort(-alike, axis=1)[:, 1:150]
    assert (side[nearest] == side[:, None]).mean() > 0.95
    in_space = np.argsort(((X[:, None] - X) ** 2).sum(2), axis=1)[:, 1:150]
    assert (side[in_space] == side[:, None]).mean() < 0.9


def test_patterns_fade_in_their_order_and_new_rows_are_read_as_those_of_the_fit():
    X, _ = rings()
    wiring = Wiring(50, winners=3, modes=8).fit(X)
    rates = wiring.rates_.numpy()
    assert (np.diff(rates) <= 1e-6).all() and rates[0] == pytest.approx(1, abs=1e-4)
    F = wiring.transform(X)
    assert F.shape == (400, 8) and F.dtype == np.float32
    assert np.linalg.norm(F, axis=1) == pytest.approx(np.ones(400), abs=1e-5)
    np.testing.assert_allclose(wiring.transform(X[:7]), F[:7], atol=1e-5)
    np.testing.assert_allclose(clone(wiring).fit(X).transform(X), F, atol=1e-4)


def test_few_rows_have_few_landmarks_and_wrong_numbers_are_refused():
    X, _ = rings(n=40)
    assert Wiring(2000).fit_transform(X).shape == (40, 10)  # a landmark for every four rows
    with pytest.raises(ValueError, match="modes must be an integer of at least 1, got 0"):
        Wiring(modes=0).fit(X)


def test_before_biohash_it_gains_ten_points_on_digits_at_equal_bits():
    task = load("mnist").retrieval_task(seed=0)
    truth = task.query_labels, task.database_labels
    scores = []
    for stages in ([], [Wiring(500)]):
        before = make_pipeline(*stages, "passthrough").fit(task.database)
        hasher = BioHash(8).fit(X := before.transform(task.database))
        codes = hasher.encode(X)
        assert codes.n_units == 160
        scores.append(mean_average_precision(hasher.encode(before.transform(task.queries)), codes, *truth))
    assert scores[1] > scores[0] + 0.1
