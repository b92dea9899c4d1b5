import inspect

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from biohash_mini import ITQ, LSH, BioHash, DenseFly, FlyHash, Hasher, NaiveBioHash, PCAHash, SpectralHash
from biohash_mini.codes import DenseCodes, SparseCodes
from biohash_mini.datasets import load
from biohash_mini.metrics import mean_average_precision
from biohash_mini.plasticity import step_

METHODS = [LSH, PCAHash, ITQ, SpectralHash, FlyHash, DenseFly, NaiveBioHash, BioHash]
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available() + ["mps"] * torch.backends.mps.is_available()
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32) + 1


@every_method
def test_equal_seeds_give_equal_codes_and_other_seeds_other_codes(method, X):
    codes = method(4, seed=1).fit(X).encode(X)
    assert method(4, seed=1).fit(X).encode(X) == codes
    if method not in (PCAHash, SpectralHash):
        assert method(4, seed=2).fit(X).encode(X) != codes


@every_method
def test_codes_have_the_length_and_kind_of_the_method(method, X):
    hasher = method(4).fit(X)
    codes = hasher.encode(X)
    m = {FlyHash: 200, BioHash: 80, DenseFly: 80}.get(method, 4)
    assert (len(codes), codes.n_units) == (300, m)
    assert isinstance(codes, SparseCodes if method.sparse_codes else DenseCodes)
    if method.sparse_codes:
        assert codes.active.shape == (300, 4)


@every_method
def test_scikit_learn_clones_chains_and_sets_parameters(method, X):
    hasher = clone(method(5, seed=3).set_params(hash_length=4))
    assert hasher.get_params()["seed"] == 3 and hasher.get_params()["hash_length"] == 4
    assert not hasattr(hasher, "weights_")
    labels = X[:, 0] > 1
    model = make_pipeline(StandardScaler(), method(8), LogisticRegression()).fit(X, labels)
    assert model.score(X, labels) > 0.5
    matrix = hasher.fit_transform(X)
    assert np.array_equal(np.unique(matrix.toarray() if method.sparse_codes else matrix), [0, 1])


@every_method
def test_the_constructor_only_stores_and_its_repr_rebuilds(method):
    names = inspect.signature(method).parameters
    assert set(method().get_params()) == set(names)
    assert repr(eval(repr(method(7, seed=5)))) == repr(method(7, seed=5))
    method(hash_length=-1)  # judged by fit, not here


@every_method
def test_a_saved_hasher_encodes_as_before(method, X, tmp_path):
    hasher = method(4).fit(X)
    hasher.save(tmp_path / "model.safetensors")
    for cls in (method, Hasher):
        loaded = cls.load(tmp_path / "model.safetensors", device="cpu")
        assert type(loaded) is method and loaded.encode(X) == hasher.encode(X)
    other = LSH if method is not LSH else BioHash
    with pytest.raises(ValueError, match=f"holds {method.__name__}, not {other.__name__}"):
        other.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize("device", DEVICES)
@every_method
def test_every_device_gives_nearly_the_same_codes(method, device, X):
    hasher = method(4, device=device).fit(X)
    assert hasher.weights_.device.type == device
    same = hasher.transform(X) != method(4, device="cpu").fit(X).transform(X)
    assert same.sum() <= 0.02 * np.prod(same.shape)


@every_method
def test_any_real_layout_of_the_same_numbers_gives_the_same_codes(method):
    X = np.random.default_rng(0).integers(0, 9, size=(120, 20))
    want = method(4).fit(X.astype(np.float32)).encode(X.astype(np.float32))
    readonly = X.astype(np.float32)
    readonly.flags.writeable = False
    layouts = [X, X.astype(np.uint8), X.astype(np.float16), np.asfortranarray(X), np.repeat(X, 2, 0)[::2], readonly]
    for same in [*layouts, torch.from_numpy(X), torch.from_numpy(X).double().T.contiguous().T, X.tolist()]:
        assert method(4).fit(same).encode(same) == want
    assert np.array_equal(readonly, X)


def broken(X, row, value):
    X = X.copy()
    X[row, 3] = value
    return X


BAD = [
    (lambda X: broken(X, 5, np.nan), r"X\[5, 3\] is nan"),
    (lambda X: broken(X, 2, np.inf), r"X\[2, 3\] is inf"),
    (lambda X: broken(X.astype(np.float64), 2, 1e300), r"X\[2, 3\] is inf"),
    (lambda X: X[:0], r"got \(0, 20\)"),
    (lambda X: X[:, :0], r"got \(300, 0\)"),
    (lambda X: X[0], r"got \(20,\)"),
    (lambda X: X.astype(str), "real numbers"),
    (lambda X: X.astype(complex), "real numbers"),
    (lambda X: torch.from_numpy(X).to(torch.complex64), "real numbers"),
    (lambda X: csr_array(X), "scipy sparse"),
]


@pytest.mark.parametrize(("spoil", "message"), BAD)
@every_method
def test_bad_rows_are_refused_and_nothing_learned_is_lost(method, spoil, message, X):
    hasher = method(4).fit(X)
    codes = hasher.encode(X)
    for call in (hasher.fit, hasher.encode, getattr(hasher, "partial_fit", hasher.fit)):
        with pytest.raises(ValueError, match=message):
            call(spoil(X))
    assert hasher.encode(X) == codes


@every_method
def test_other_features_and_unfitted_use_are_refused(method, X):
    with pytest.raises(NotFittedError, match="call fit first"):
        method().encode(X)
    with pytest.raises(NotFittedError, match="call fit first"):
        method().save("nowhere")
    with pytest.raises(ValueError, match=f"7 features, but {method.__name__} was fitted with 20"):
        method(4).fit(X).encode(X[:, :7])


@every_method
@pytest.mark.parametrize("hash_length", [0, -3, 2.5, "4"])
def test_impossible_hash_lengths_are_refused(method, hash_length, X):
    with pytest.raises(ValueError, match="hash_length must be an integer of at least 1"):
        method(hash_length).fit(X)


@pytest.mark.parametrize(
    ("hasher", "message"),
    [
        (BioHash(4, activity=0), r"activity must lie in \(0, 1\], got 0"),
        (BioHash(4, activity=1.5), r"activity must lie in \(0, 1\], got 1.5"),
        (DenseFly(4, activity=-1), r"activity must lie in \(0, 1\]"),
        (FlyHash(201), "at most the number of units 200, got 201"),
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


@every_method
def test_rows_of_zeros_have_a_code_and_the_same_one(method, X):
    codes = method(4).fit(np.vstack([X, np.zeros_like(X)])).encode(np.zeros((3, 20)))
    assert codes[0] == codes[1] == codes[2]
    method(4).fit(np.zeros_like(X)).encode(X)  # constant data teach nothing, but break nothing


def test_flyhash_of_zeros_is_the_first_units():
    assert FlyHash(3).fit(np.ones((2, 10))).encode(np.zeros((1, 10))).active.tolist() == [[0, 1, 2]]


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
    W = BioHash(4)._initial_weights(torch.from_numpy(X), torch.Generator().manual_seed(0))
    for rows in (torch.from_numpy(X) - once.mean_).split(50):
        step_(W, rows, 2e-2)
    assert torch.equal(once.weights_, W)
    with pytest.raises(ValueError, match="the stream began with 20"):
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
