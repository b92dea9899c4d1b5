import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from biohash_mini import ITQ, LSH, BioHash, DenseFly, FlyHash, NaiveBioHash, PCAHash, SpectralHash, WTAHash
from biohash_mini.datasets import load
from biohash_mini.metrics import mean_average_precision
from biohash_mini.plasticity import default_passes, step_


@pytest.mark.parametrize(
    ("hasher", "message"),
    [
        (BioHash(4, activity=0), r"activity must lie in \(0, 1\], got 0"),
        (BioHash(4, activity=1.5), r"activity must lie in \(0, 1\], got 1.5"),
        (DenseFly(4, activity=-1), r"activity must lie in \(0, 1\]"),
        (FlyHash(201), "at most the number of units 200, got 201"),
        (WTAHash(4, window=21), r"window must lie in \[2, 20\], got 21"),
        (FlyHash(4, fan_in=0), r"fan_in must lie in \(0, 1\]"),
        (PCAHash(21), "at most the number of features 20, got 21"),
        (BioHash(4, delta=0.1, anti_rank=1), "anti_rank must lie between 2 and the number of units 80, got 1"),
        (BioHash(4, delta=0.1, anti_rank=81), "anti_rank must lie"),
        (BioHash(4, p=0.5), "p must be at least 1"),
        (BioHash(4, max_epochs=0), "max_epochs must be at least 1"),
        (SpectralHash(4, percentile=60), "percentile"),
        (LSH(4, device="abacus"), "torch device"),
        (LSH(4, device="meta"), "not available"),
    ],
)
def test_impossible_parameters_are_refused(hasher, message, X):
    with pytest.raises(ValueError, match=message):
        hasher.fit(X)


def test_flyhash_of_zeros_is_the_first_units():
    assert FlyHash(3).fit(np.ones((2, 10))).encode(np.zeros((1, 10))).active.tolist() == [[0, 1, 2]]


def test_wta_hash_names_the_largest_input_of_each_window():
    hasher = WTAHash(2, window=3).fit(np.ones((4, 5)))
    hasher.weights_ = torch.eye(5)[[0, 1, 2, 4, 3, 0]]
    assert hasher.encode([[5, 7, 6, 9, 8]]).active.tolist() == [[1, 4]]
    assert hasher.encode(np.zeros((1, 5))).active.tolist() == [[0, 3]]  # the first of equal inputs


def test_wta_hash_sees_the_order_of_the_inputs_alone(X):
    hasher = WTAHash(8, window=5).fit(X)
    assert hasher.encode(np.exp(X)) == hasher.encode(X)


def test_the_hash_length_may_equal_the_number_of_units(X):
    assert BioHash(6, activity=1.0).fit(X).encode(X[:1]).active.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_lsh_bits_differ_in_proportion_to_the_angle():
    angle = 0.7
    X = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    codes = LSH(20_000, center=False).fit(X).encode(X)
    assert codes.hamming(codes)[0, 1] / 20_000 == pytest.approx(angle / np.pi, abs=0.01)


def test_every_kenyon_cell_reads_a_tenth_of_the_inputs(X):
    weights = FlyHash(4).fit(X).weights_
    assert weights.shape == (200, 20) and set(weights.sum(1).tolist()) == {2.0}
    assert weights.sum(0).min() > 0


def test_principal_components_are_scikit_learns(X):
    want = PCA(4).fit(X).transform(X) > 0
    got = PCAHash(4).fit(X).transform(X)
    agreement = (got == want).mean(0)
    assert (np.maximum(agreement, 1 - agreement) == 1).all()  # an axis has no sign


def test_itq_rotates_and_lowers_the_quantisation_error(X):
    def error(hasher):
        V = torch.from_numpy(X) - hasher.mean_
        return (torch.sign(V @ hasher.weights_.T) - V @ hasher.weights_.T).square().mean()

    start, end = ITQ(8, n_iterations=0).fit(X), ITQ(8).fit(X)
    assert error(end) < 0.98 * error(start)
    torch.testing.assert_close(end.weights_ @ end.weights_.T, torch.eye(8), rtol=0, atol=1e-5)


def test_spectral_hash_spends_its_bits_on_the_slowest_waves():
    X = np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 3), -1).reshape(-1, 3) * [10, 4, 1]
    hasher = SpectralHash(3, percentile=0).fit(X)
    # widths 20, 8, 2: the three slowest waves are n = 1, 2 on the first axis and n = 1 on the second
    assert (hasher.omega_ * 20 / np.pi).tolist() == pytest.approx([1, 2, 2.5])
    assert hasher.weights_.abs().argmax(1).tolist() == [0, 0, 1]


def test_naive_biohash_has_as_many_units_as_bits(X):
    assert NaiveBioHash(5).fit(X).weights_.shape == (5, 20)


def test_a_stream_is_learned_in_order_and_centred_by_all_it_has_shown(X):
    hasher = BioHash(4, batch_size=50)
    for part in np.split(X, [70, 200]):
        hasher.partial_fit(part)
    torch.testing.assert_close(hasher.mean_, torch.from_numpy(X).mean(0))
    assert hasher.n_samples_seen_ == 300
    once = BioHash(4, batch_size=50).partial_fit(X)
    rows = torch.from_numpy(X) - once.mean_
    W = once._initial_weights(rows, torch.Generator().manual_seed(0))
    for part in rows.split(50):
        step_(W, part, once._rate(rows), reduction="implicit")
    assert torch.equal(once.weights_, W)
    with pytest.raises(ValueError, match="is expecting 20 features as input"):
        hasher.partial_fit(X[:, :3])


def test_a_stream_may_go_on_after_a_fit(X):
    hasher = BioHash(4, max_epochs=2).fit(X)
    before = hasher.weights_.clone()
    assert hasher.partial_fit(X).n_samples_seen_ == 600
    assert not torch.equal(hasher.weights_, before)


def test_learning_beats_chance_and_random_projections_by_far_on_real_digits():
    task = load("mnist").retrieval_task(seed=0)

    def score(hasher):
        hasher.fit(task.database)
        codes = hasher.encode(task.queries), hasher.encode(task.database)
        return mean_average_precision(*codes, task.query_labels, task.database_labels)

    assert score(BioHash(8)) > 0.45
    assert score(LSH(8)) < 0.25
    assert 0.18 < score(FlyHash(8)) < 0.3


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_default_serves_any_scale_and_leaves_no_unit_unused(scale):
    X = load("mnist").vectors(np.arange(3000))
    hasher = BioHash(8).fit(scale * X)
    codes = hasher.encode(scale * X)
    assert hasher.mean_norms_[-1] < 1.15
    assert len(np.unique(codes.active)) == hasher.n_units
    assert codes == BioHash(8).fit(scale * X).encode(scale * X)


@pytest.mark.parametrize(("n", "m", "passes"), [(69_000, 40, 4), (50_000, 1_600, 3), (50_000, 12_800, 2), (10, 400, 2)])
def test_units_that_have_few_rows_each_learn_for_fewer_passes(n, m, passes):
    assert default_passes(n, m) == passes


def test_the_default_takes_those_passes_and_one_may_ask_for_others(X):
    assert len(BioHash(1, activity=1 / 5).fit(X).mean_norms_) == 4
    assert len(BioHash(4).fit(X).mean_norms_) == 2
    assert len(BioHash(4, max_epochs=7).fit(X).mean_norms_) == 7


def test_units_start_on_rows_of_the_data_and_at_random_where_there_are_too_few(X):
    hasher = BioHash(40, activity=0.1, start="rows", init_norm=5.0)
    rows = torch.from_numpy(X - X.mean(0))
    W = hasher._initial_weights(rows, torch.Generator().manual_seed(0))
    torch.testing.assert_close(W.norm(dim=1), torch.full((400,), 5.0))
    cosine = (W / 5) @ (rows / rows.norm(dim=1, keepdim=True)).T
    on_rows = cosine.max(1).values > 0.999
    assert on_rows[:300].all() and len(cosine[:300].argmax(1).unique()) == 300 and not on_rows[300:].any()


def test_a_stream_that_starts_with_one_row_starts_in_random_directions():
    hasher = BioHash(4, start="rows").partial_fit(np.ones((1, 20)))
    assert (hasher.weights_.norm(dim=1) > 0).all() and len(hasher.weights_.unique(dim=0)) == 80
