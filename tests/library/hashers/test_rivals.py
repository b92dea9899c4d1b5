import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from sklearn.linear_model import Ridge
from torch.nn.functional import cosine_similarity, normalize

from biohash_mini import DH, LSH, UHBNN, GreedyHash, SOLHash, mean_average_precision
from biohash_mini.codes import SparseCodes
from biohash_mini.datasets import load
from biohash_mini.hashers.autoencoder import best_bits, bnn_loss, decoder
from biohash_mini.hashers.deep import dh_loss
from biohash_mini.hashers.greedy import StraightThroughSign, greedy_loss
from biohash_mini.hashers.lifting import best_step, corner, lifting_gradient, lifting_loss


@pytest.mark.parametrize(
    ("hasher", "message"),
    [
        (GreedyHash(4, momentum=1.0), r"momentum must lie in \[0, 1\), got 1.0"),
        (GreedyHash(4, batch_size=1), "batch_size must be at least 2, for pairs, got 1"),
        (GreedyHash(4, penalty=-1), "penalty must not be negative, got -1"),
        (DH(4, hidden=(3, 0)), r"hidden must be two widths of at least 1, got \(3, 0\)"),
        (DH(4, spread=-1), "spread must not be negative, got -1"),
        (UHBNN(4, n_rounds=-1), "n_rounds must not be negative, got -1"),
        (UHBNN(4, balance=-1), "balance must not be negative, got -1"),
        (SOLHash(4, fan_in=0), r"fan_in must lie in \(0, 1\], got 0"),
        (SOLHash(4, activity=2), r"activity must lie in \(0, 1\], got 2"),
        (SOLHash(4, n_steps=0), "n_steps must be at least 1, got 0"),
    ],
)
def test_impossible_parameters_are_refused(hasher, message, X):
    with pytest.raises(ValueError, match=message):
        hasher.fit(X)


def test_the_gradient_passes_the_sign_unchanged():
    H = torch.tensor([[0.3, -2.0, 0.0]], requires_grad=True)
    B = StraightThroughSign.apply(H)
    assert B.tolist() == [[1.0, -1.0, -1.0]]
    B.backward(torch.tensor([[5.0, 6.0, 7.0]]))
    assert H.grad.tolist() == [[5.0, 6.0, 7.0]]


def test_the_greedy_loss_is_its_definition_pair_by_pair():
    rng = torch.Generator().manual_seed(0)
    X, H = (torch.randn(6, size, generator=rng, dtype=torch.float64) for size in (5, 3))
    B = H.sign()
    gaps = [
        (cosine_similarity(B[i], B[j], 0) - cosine_similarity(X[i], X[j], 0)) ** 2
        for i in range(6)
        for j in range(6)
        if i != j
    ]
    want = sum(gaps) / 30 + 0.2 * sum((abs(h) - 1).abs() ** 3 for h in H.flatten()) / 18
    torch.testing.assert_close(greedy_loss(X, H, 0.2), want, rtol=1e-10, atol=0)


def test_the_greedy_gradient_is_that_of_the_loss_with_the_codes_as_variables():
    rng = torch.Generator().manual_seed(1)
    X, H = (torch.randn(6, size, generator=rng, dtype=torch.float64) for size in (5, 3))
    U, B, H = normalize(X), H.sign().requires_grad_(), H.requires_grad_()
    V = normalize(B)
    ((V @ V.T - U @ U.T).square().sum() / 30).backward()
    greedy_loss(X, H, 0.2).backward()
    cubic = 0.2 * 3 * (H.abs() - 1).square() * (H.abs() - 1).sign() * H.sign() / H.numel()
    torch.testing.assert_close(H.grad, B.grad + cubic.detach(), rtol=1e-10, atol=1e-12)


def test_greedy_training_lowers_the_loss_and_draws_activations_to_one():
    X = load("mnist").vectors(slice(600))
    first, last = (GreedyHash(8, max_epochs=epochs).fit(X) for epochs in (1, 20))
    assert last.losses_[-1] < 0.8 * first.losses_[0]
    H = last._activations(torch.from_numpy(X) - last.mean_)
    assert (H.abs() - 1).abs().mean() < 0.6
    assert last.bias_.shape == (8,)


def test_a_greedy_batch_of_one_row_is_passed_over():
    X = np.random.default_rng(0).normal(size=(5, 4))
    assert np.isfinite(GreedyHash(2, batch_size=2, max_epochs=2).fit(X).losses_).all()
    assert GreedyHash(2).fit(X[:1]).losses_[0] == 0


@pytest.fixture(scope="module")
def lift():
    """Return relaxed codes Z (n, m), unit vectors U (n, d) and k, float64."""
    rng = torch.Generator().manual_seed(0)
    U = normalize(torch.randn(30, 7, generator=rng, dtype=torch.float64))
    Z = sum(0.5 * corner(torch.rand(30, 12, generator=rng, dtype=torch.float64), 3) for _ in range(2))
    return Z, U, 3


def test_a_corner_solves_the_linear_program(lift):
    Z, U, k = lift
    gradient = lifting_gradient(Z, U, k).numpy()
    for slope, corners in zip(gradient, corner(torch.from_numpy(gradient), k).numpy(), strict=True):
        solved = linprog(slope, A_eq=np.ones((1, len(slope))), b_eq=[k], bounds=(0, 1))
        assert corners.sum() == k and slope @ corners == pytest.approx(solved.fun)


def test_the_lifting_loss_needs_no_matrix_of_pairs(lift):
    Z, U, k = lift
    Z = Z.clone().requires_grad_()
    pairs = (Z @ Z.T - k * U @ U.T).square().sum()
    pairs.backward()
    assert lifting_loss(Z, U, k) == pytest.approx(pairs.item(), rel=1e-12)
    torch.testing.assert_close(lifting_gradient(Z.detach(), U, k), Z.grad, rtol=1e-10, atol=1e-12)


def test_codes_of_minus_and_plus_one_pose_the_same_problem(lift):
    Z, U, k = lift
    m, Y = Z.shape[1], 2 * Z - 1
    T = m - 4 * k + 4 * k * U @ U.T
    assert (T - Y @ Y.T).square().sum().item() == pytest.approx(16 * lifting_loss(Z, U, k), rel=1e-12)
    torch.testing.assert_close(Y.sum(1), torch.full((30,), 2.0 * k - m, dtype=torch.float64))


def test_the_step_is_the_best_on_its_line(lift):
    Z, U, k = lift
    D = corner(lifting_gradient(Z, U, k), k) - Z
    t, change = best_step(Z, D, U, k)
    grid = [lifting_loss(Z + s * D, U, k) for s in np.linspace(0, 1, 501)]
    assert 0 < t <= 1 and lifting_loss(Z + t * D, U, k) <= min(grid) + 1e-9
    assert change == pytest.approx(lifting_loss(Z + t * D, U, k) - lifting_loss(Z, U, k), rel=1e-9)
    assert best_step(Z, torch.zeros_like(Z), U, k) == (0, 0)


def test_frank_wolfe_descends_inside_the_constraints(X):
    hasher = SOLHash(3, activity=0.1, fan_in=0.25, n_samples=200).fit(X)
    for losses in (hasher.losses_, hasher.operator_losses_):
        assert (np.diff(losses) < 1e-4 * losses[0]).all() and losses[-1] < losses[0]
    assert hasher.losses_[-1] < 0.7 * hasher.losses_[0]
    W = hasher.weights_
    assert W.shape == (30, 20) and -1 - 1e-5 < W.min() and W.max() < 1 + 1e-5
    torch.testing.assert_close(W.sum(1), torch.full((30,), 2.0 * 5 - 20), rtol=0, atol=1e-4)


def test_the_operator_loss_is_its_definition(X):
    hasher = SOLHash(3, activity=0.1, n_samples=50, n_steps=1)
    U = normalize(torch.from_numpy(X[:50] - X.mean(0)))
    Z = corner(torch.rand(50, 30, generator=torch.Generator().manual_seed(0)), 3)
    V, losses = hasher._operator(Z, U, bar=type("Bar", (), {"update": lambda self: None})())
    want = (2 * Z - 1 - U @ (2 * V - 1).T).square().sum().item() / 50
    assert losses[-1] == pytest.approx(want, rel=1e-4)


def test_solhash_learns_from_as_many_rows_as_it_is_told(X):
    codes = SOLHash(4).fit(X).encode(X)
    assert isinstance(codes, SparseCodes) and codes.active.shape == (300, 4) and codes.n_units == 80
    assert SOLHash(4, n_samples=10_000).fit(X).encode(X) == SOLHash(4, n_samples=300).fit(X).encode(X)
    assert SOLHash(4, n_samples=50).fit(X).encode(X) != codes


def test_losses_of_networks_equal_their_formulas_term_by_term():
    draw = torch.Generator().manual_seed(0)
    H, W = torch.randn(7, 3, generator=draw), torch.randn(3, 5, generator=draw)
    B = torch.where(torch.randn(7, 3, generator=draw) > 0, 1.0, -1.0)
    own = sum(((1 if h > 0 else -1) - h) ** 2 for h in H.flatten()) / 7
    vary = sum((H[i] - H.mean(0)).square().sum() for i in range(7)) / 7
    rotate = sum((W[i] @ W[j] - float(i == j)) ** 2 for i in range(3) for j in range(3))
    torch.testing.assert_close(dh_loss(H, [W, W], 0.3, 0.2), own / 2 - 0.3 * vary / 2 + 0.2 * rotate)
    near = sum((H[i] - B[i]).square().sum() for i in range(7)) / 7
    gram = sum(((H[:, i] * H[:, j]).mean() - float(i == j)) ** 2 for i in range(3) for j in range(3))
    terms = 0.3 * near + 0.2 * gram + 0.1 * H.mean(0).square().sum()
    torch.testing.assert_close(bnn_loss(H, B, 0.3, 0.2, 0.1), terms / 2)


def test_the_decoder_is_a_ridge_regression():
    draw = torch.Generator().manual_seed(0)
    X, B = torch.randn(50, 6, generator=draw), torch.where(torch.randn(50, 3, generator=draw) > 0, 1.0, -1.0)
    ridge = Ridge(alpha=50 * 0.1).fit(B.numpy(), X.numpy())
    D, c = decoder(B, X, 0.1)
    np.testing.assert_allclose(D, ridge.coef_.T, atol=1e-5)
    np.testing.assert_allclose(c, ridge.intercept_, atol=1e-5)


def test_no_single_flip_improves_the_best_bits():
    draw = torch.Generator().manual_seed(0)
    X, H, D = (torch.randn(shape, generator=draw) for shape in ((40, 6), (40, 4), (4, 6)))

    def objective(B):
        return (X - B @ D).square().sum(1) + 0.5 * (H - B).square().sum(1)

    first = torch.where(H > 0, 1.0, -1.0)
    B = best_bits(first, X, H, D, 0.5)
    assert (B.abs() == 1).all() and (objective(B) <= objective(first) + 1e-5).all()
    assert (objective(B) < objective(first) - 1e-3).any()
    for bit in range(4):
        flipped = B.clone()
        flipped[:, bit] *= -1
        assert (objective(B) <= objective(flipped) + 1e-5).all()


def test_networks_start_as_principal_components_and_learn(X):
    first, last = (DH(4, max_epochs=epochs).fit(X) for epochs in (1, 10))
    assert last.losses_[-1] < last.losses_[0] and first.hidden is None
    assert last.weights1_.shape == (48, X.shape[1]) and last.weights_.shape == (4, 18)
    rounds = UHBNN(4, n_rounds=2, n_iterations=20).fit(X)
    assert rounds.losses_[-1] < rounds.losses_[0] and len(rounds.losses_) == 3
    np.testing.assert_array_equal(  # the range of the data does not matter
        rounds.transform(X), UHBNN(4, n_rounds=2, n_iterations=20).fit(8 * np.asarray(X)).transform(8 * np.asarray(X))
    )


def test_rivals_beat_random_projections_by_far_on_real_digits():
    task = load("mnist").retrieval_task(seed=0)
    rows = slice(0, 3000)

    def score(hasher):
        hasher.fit(task.database[rows])
        codes = hasher.encode(task.queries), hasher.encode(task.database[rows])
        return mean_average_precision(*codes, task.query_labels, task.database_labels[rows])

    rivals = DH(8, max_epochs=10), UHBNN(8, n_iterations=20), GreedyHash(8), SOLHash(8, n_samples=1000)
    assert min(map(score, rivals)) > score(LSH(8)) + 0.07
