import inspect

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from biohash_mini import LSH, METHODS, BioHash, Hasher
from biohash_mini.codes import DenseCodes, SparseCodes

from .contract import every_method, make

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available() + ["mps"] * torch.backends.mps.is_available()


@every_method
def test_equal_seeds_give_equal_codes_and_other_seeds_other_codes(name, X):
    codes = make(name, seed=1).fit(X).encode(X)
    assert make(name, seed=1).fit(X).encode(X) == codes
    if name not in ("PCAHash", "SH", "DH"):  # the order of the data hardly moves DH in a few passes
        assert make(name, seed=2).fit(X).encode(X) != codes


@every_method
def test_codes_have_the_length_and_kind_of_the_method(name, X):
    hasher = make(name).fit(X)
    codes = hasher.encode(X)
    assert len(codes) == 300 and codes.n_units == hasher.n_units
    assert isinstance(codes, SparseCodes if hasher.sparse_codes else DenseCodes)
    assert codes.array.shape[1] == (4 if hasher.sparse_codes else -(-hasher.n_units // 8))


@every_method
def test_one_layer_has_codes_of_every_length_or_says_that_it_has_not(name, X):
    hasher = make(name).fit(X)
    if not hasher.free_length:
        with pytest.raises(ValueError, match=r"has codes of hash_length 4 only, got \[3\]"):
            hasher.encode(X, 3)
        return
    lengths = hasher.encode_lengths(X, (1, 4, 7))
    assert {k: hasher.encode(X, k) for k in lengths} == lengths and lengths[4] == hasher.encode(X)
    assert [set(a) < set(b) for a, b in zip(lengths[1].active, lengths[4].active, strict=True)] == [True] * 300
    with pytest.raises(ValueError, match="between 1 and the number of units"):
        hasher.encode(X, hasher.n_units + 1)


@every_method
def test_fitting_and_encoding_in_stages_is_fitting_and_encoding(name, X):
    whole = make(name).fit(X)
    first = make(name).fit_features(X)
    features = first.features(X)
    apart = make(name).share_features(first).fit_layer(features)
    assert apart.encode_features(features, [4])[4] == whole.encode(X)


@every_method
def test_a_callback_sees_every_pass_and_may_end_the_training(name, X):
    seen = []
    hasher = make(name).fit(X, callback=lambda number, value: seen.append((number, value)) or number == 2)
    assert [number for number, _ in seen] in ([1, 2], [1], [])  # passes, few passes, no passes
    assert all(np.isfinite(value) for _, value in seen)
    learned = [v for v in (getattr(hasher, "mean_norms_", None), getattr(hasher, "losses_", None)) if v]
    assert not seen or len(learned[0]) == len(seen)
    assert bool(seen) == ("max_epochs" in hasher.get_params() or "n_rounds" in hasher.get_params())


@every_method
def test_scikit_learn_clones_chains_and_sets_parameters(name, X):
    hasher = clone(make(name, 5, seed=3).set_params(hash_length=4))
    assert hasher.get_params()["seed"] == 3 and hasher.get_params()["hash_length"] == 4
    assert not hasattr(hasher, "weights_")
    labels = X[:, 0] > 1
    model = make_pipeline(StandardScaler(), make(name, 8), LogisticRegression()).fit(X, labels)
    assert model.score(X, labels) > 0.5
    matrix = hasher.fit_transform(X)
    assert np.array_equal(np.unique(matrix.toarray() if hasher.sparse_codes else matrix), [0, 1])


@every_method
def test_columns_have_names_and_frames_are_made_of_dense_codes(name, X):
    hasher = make(name).fit(X)
    names = hasher.get_feature_names_out()
    assert len(names) == hasher.n_units and names[0] == f"{METHODS[name].__name__.lower()}0"
    tags = hasher.__sklearn_tags__()
    assert tags.transformer_tags.preserves_dtype == [] and not tags.input_tags.sparse
    if not hasher.sparse_codes:
        frame = hasher.set_output(transform="pandas").transform(X)
        assert list(frame.columns) == list(names) and len(frame) == 300


@every_method
def test_the_constructor_only_stores_and_its_repr_rebuilds(name):
    method = METHODS[name]
    assert set(method().get_params()) == set(inspect.signature(method).parameters)
    assert repr(eval(repr(method(7, seed=5)), {method.__name__: method})) == repr(method(7, seed=5))
    method(hash_length=-1)  # judged by fit, not here


@every_method
def test_a_saved_hasher_encodes_as_before(name, X, tmp_path):
    hasher, method = make(name).fit(X), METHODS[name]
    hasher.save(tmp_path / "model.safetensors")
    for cls in (method, Hasher):
        loaded = cls.load(tmp_path / "model.safetensors", device="cpu")
        assert type(loaded) is method and loaded.encode(X) == hasher.encode(X)
    other = LSH if method is not LSH else BioHash
    with pytest.raises(ValueError, match=f"holds {method.__name__}, not {other.__name__}"):
        other.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize("device", DEVICES)
@every_method
def test_every_device_gives_nearly_the_same_codes(name, device, X):
    hasher = make(name, device=device).fit(X)
    assert hasher.weights_.device.type == device
    same = hasher.transform(X) != make(name, device="cpu").fit(X).transform(X)
    assert same.sum() <= 0.02 * np.prod(same.shape)


@every_method
def test_any_real_layout_of_the_same_numbers_gives_the_same_codes(name):
    X = np.random.default_rng(0).integers(0, 9, size=(120, 20))
    want = make(name).fit(X.astype(np.float32)).encode(X.astype(np.float32))
    readonly = X.astype(np.float32)
    readonly.flags.writeable = False
    layouts = [X, X.astype(np.uint8), X.astype(np.float16), np.asfortranarray(X), np.repeat(X, 2, 0)[::2], readonly]
    layouts += [torch.from_numpy(X), torch.from_numpy(X).double().T.contiguous().T, X.tolist(), X.reshape(-1, 1, 4, 5)]
    for same in layouts:
        assert make(name).fit(same).encode(same) == want
    assert np.array_equal(readonly, X)
    assert make(name).fit(readonly).encode(readonly[::-1][:1]) == want[-1:]  # one row, and numpy lets it run backwards


@every_method
def test_a_mapped_file_gives_the_codes_of_its_rows(name, X, tmp_path, monkeypatch):
    monkeypatch.setattr("biohash_mini.hashers.base._BLOCK", 1000)  # several blocks
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    hasher = make(name).fit(X)
    assert hasher.encode(mapped) == hasher.encode(X)
    torch.testing.assert_close(make(name).fit(mapped).weights_, hasher.weights_, rtol=1e-4, atol=1e-4)


def broken(X, row, value):
    X = X.copy()
    X[row, 3] = value
    return X


BAD = [
    (lambda X: broken(X, 5, np.nan), r"X\[5, 3\] is NaN"),
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


@every_method
def test_bad_rows_are_refused_and_nothing_learned_is_lost(name, X):
    hasher = make(name).fit(X)
    codes = hasher.encode(X)
    for spoil, message in BAD:
        for call in (hasher.fit, hasher.encode, getattr(hasher, "partial_fit", hasher.fit)):
            with pytest.raises(ValueError, match=message):
                call(spoil(X))
    assert hasher.encode(X) == codes


@every_method
def test_other_features_and_unfitted_use_are_refused(name, X):
    with pytest.raises(NotFittedError, match="call fit first"):
        make(name).encode(X)
    with pytest.raises(NotFittedError, match="call fit first"):
        make(name).save("nowhere")
    with pytest.raises(ValueError, match=f"7 features, but {METHODS[name].__name__} is expecting 20 features"):
        make(name).fit(X).encode(X[:, :7])


@every_method
@pytest.mark.parametrize("hash_length", [0, -3, 2.5, "4"])
def test_impossible_hash_lengths_are_refused(name, hash_length, X):
    with pytest.raises(ValueError, match="hash_length must be an integer of at least 1"):
        make(name, hash_length).fit(X)


@every_method
def test_rows_of_zeros_have_a_code_and_the_same_one(name, X):
    codes = make(name).fit(np.vstack([X, np.zeros_like(X)])).encode(np.zeros((3, 20)))
    assert codes[0] == codes[1] == codes[2]
    if not METHODS[name].takes_images:  # blank images have no patch to learn from
        make(name).fit(np.zeros_like(X)).encode(X)  # constant data teach nothing, but break nothing


@every_method
def test_no_weight_is_a_denormal_number_after_long_training_on_inputs_that_never_vary(name, X):
    X = np.where(np.arange(20) < 12, X, 0).astype(np.float32)
    hasher = make(name)
    for passes in {"max_epochs", "filter_epochs"} & set(hasher.get_params()):
        hasher.set_params(**{passes: 300})
    learned = [v for v in vars(hasher.fit(X)).values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    assert learned and not any(((v != 0) & (v.abs() < torch.finfo(v.dtype).tiny)).any() for v in learned)
