import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from biohash_mini import POSH
from biohash_mini.hashers.orthogonal import nearest_orthogonal
from biohash_mini.reproduction.critics import (
    cells,
    directions,
    distances,
    evenness,
    found_by,
    intrinsic_dimension,
    two_nearest,
)


@pytest.mark.parametrize("D", [1, 2, 5])
def test_both_estimates_find_the_dimension_of_a_ball_in_a_larger_space(D):
    rng = np.random.default_rng(0)
    flat = np.hstack([rng.normal(size=(3000, D)) * 0.05, np.ones((3000, 1))])
    turned = flat @ np.linalg.qr(rng.normal(size=(12, 12)))[0][: D + 1]
    U = normalize(torch.from_numpy(turned))
    r = distances(U[:1000], U, 21)[:, 1:]
    assert abs(intrinsic_dimension(r) / D - 1) < 0.15
    assert abs(two_nearest(r) / D - 1) < 0.15


def test_found_by_counts_the_true_neighbours_among_the_first_answers():
    ids, truth = np.array([[3, 1, 2], [0, 5, 4]]), np.array([[1, 2], [5, 9]])
    assert found_by(ids, truth).tolist() == [0, 0.5, 0.75]


def test_cells_count_what_a_unit_wins_and_how_far_it_is():
    U = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    p, s = cells(U, torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    assert p.tolist() == pytest.approx([1 / 3, 2 / 3]) and s.tolist() == pytest.approx([0, 0.1])


def test_units_that_share_evenly_have_no_spread():
    angle = torch.arange(1000) * (2 * torch.pi / 1000) + 0.001
    U = torch.stack([angle.cos(), angle.sin()], 1)
    even = evenness(U, U[::100] + U[99::100])
    assert even["use"] < 0.02 and even["shares"] < 0.02


def test_directions_leave_out_rows_that_are_the_mean():
    assert len(directions(np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 3.0]]))) == 2


@pytest.mark.parametrize("m", [8, 40])
def test_synapses_of_posh_are_orthonormal_in_rows_or_else_in_columns(m):
    X = np.random.default_rng(0).normal(size=(200, 20)).astype(np.float32)
    W = POSH(2, activity=2 / m).fit(X).weights_
    gram = W @ W.T if m <= 20 else W.T @ W
    torch.testing.assert_close(gram, torch.eye(len(gram)), rtol=1e-4, atol=1e-5)


def test_no_other_orthogonal_matrix_is_nearer():
    rng = torch.Generator().manual_seed(0)
    A = torch.randn(5, 9, generator=rng)
    best = (nearest_orthogonal(A) * A).sum()
    others = [(torch.linalg.qr(torch.randn(9, 5, generator=rng)).Q.T * A).sum() for _ in range(50)]
    assert best > max(others)
