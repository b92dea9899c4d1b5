"""Data of any size: what float32 cannot hold is scaled or refused, never hashed wrongly in silence."""

import numpy as np
import pytest
import torch

from biohash_mini import DH, LSH, METHODS, BioConvHash, BioHash, FlyHash
from biohash_mini.datasets import load
from biohash_mini.inputs import unit_of

from .contract import every_method, make

FINE = [
    "LSH",
    "PCAHash",
    "FlyHash",
    "SH",
    "ITQ",
    "NaiveBioHash",
    "BioHash",
    "DenseFly",
    "WTAHash",
    "DH",
    "GreedyHash",
    "SOLHash",
]


@pytest.mark.parametrize("power", [-120, -75, 66, 124])
@pytest.mark.parametrize("name", [*FINE, "UH-BNN", "BioConvHash"])
def test_data_of_extreme_size_have_the_codes_of_ordinary_ones(name, power, X):
    X = X / np.float32(8)  # so that the largest power still fits
    want = make(name).fit(X).encode(X)
    scaled = np.ldexp(X, power)
    hasher = make(name).fit(scaled)
    differ = (hasher.transform(scaled) != want.to_matrix()).mean()
    if name == "BioConvHash":  # its blank patches have a fixed size
        assert hasher.unit_ != 1 and np.isfinite(hasher.mean_norms_).all()
    else:
        assert differ <= (0.05 if name in ("DH", "UH-BNN") else 0.02)  # the unit is a power of two: few near ties move


def test_the_unit_is_a_power_of_two_and_one_for_all_ordinary_sizes():
    assert [unit_of(s) for s in (0.0, 1e-9, 1e-3, 1.0, 255.0, 1e9)] == [1.0] * 6
    for span in (1e-44, 1e-22, 1e20, 3e38):
        unit = unit_of(span)
        assert unit == 2.0 ** np.round(np.log2(unit)) and 1e-7 < span * unit < 10


@every_method
def test_a_row_out_of_reach_of_the_fit_is_refused_by_its_number(name, X):
    hasher = make(name).fit(X)
    far = X[:4].copy()
    far[2] = 3e38
    with pytest.raises(ValueError, match=r"X\[2\] lies too far from the rows of the fit"):
        hasher.encode(far)


@every_method
def test_a_constant_column_too_large_to_average_is_refused(name, X):
    if METHODS[name].takes_images or not make(name).center:
        pytest.skip("does not average its inputs")
    with pytest.raises(ValueError, match="mean of its rows is not finite"):
        make(name).fit(np.hstack([X, np.full((300, 1), 3e38, np.float32)]))


@pytest.mark.parametrize("factor", ["unit rows", 0.3, 1e-6])
def test_deep_hashing_of_short_rows_has_no_constant_bit(factor):
    X = load("mnist").vectors(slice(0, 2000))
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if factor == "unit rows" else np.float32(factor) * X
    bits = DH(16, max_epochs=10).fit(X).transform(X)
    assert not np.isin(bits.mean(0), (0, 1)).any() and len(np.unique(bits, axis=0)) > 500


def test_deep_hashing_leaves_rows_of_ordinary_length_as_they_are():
    X = load("mnist").vectors(slice(0, 500))
    assert DH(4, max_epochs=1).fit(X).scale_ == 1.0
    assert DH(4, max_epochs=1).fit(X / 4).scale_ == 0.25


def test_deep_hashing_warns_of_bits_that_are_the_same_for_all_rows(X):
    with pytest.warns(UserWarning, match=r"8 of 8 bits of DH are the same for the first 300 rows: raise the spread"):
        DH(8, spread=0, orthogonality=0, weight_decay=100.0, learning_rate=0.1).fit(X)


def test_one_image_and_images_without_features_divide_nothing_by_zero(X):
    hasher = make("BioConvHash").fit(X[:1])
    assert hasher.encode(X).n_units == hasher.n_units and np.isfinite(hasher.mean_norms_).all()


@every_method
def test_a_row_alone_has_the_code_it_has_in_a_batch(name):
    X = load("mnist").vectors(slice(0, 300))
    given = {"image_shape": (1, 28, 28)} if METHODS[name] is BioConvHash else {}
    hasher = make(name, 8, **given).fit(X)
    codes = hasher.encode(X)
    for few in (1, 2, 3, 7):
        assert all(hasher.encode(X[i : i + few]) == codes[i : i + few] for i in range(0, 300, 23))


@every_method
def test_a_row_has_the_same_activations_wherever_it_stands_in_a_batch(name, X):
    if name == "BioConvHash":
        pytest.skip("its layer adds the terms of each row by itself")
    hasher = make(name, hash_length=3).fit(X)  # 3 units, or few more: libraries add those of every other row otherwise
    S = hasher._activations(torch.from_numpy(X[:1]).expand(1000, -1).contiguous())
    assert all((S[:n] == S[0]).all() for n in (16, 17, 33, 1000))


def test_rows_that_lose_what_tells_them_apart_are_warned_of(X):
    flat = X[:, :1] + np.zeros_like(X)  # every row a direction and its opposite: one order of the inputs
    with pytest.warns(UserWarning, match="WTAHash gives the first 100 rows of X, which differ, one code"):
        make("WTAHash", center=False).fit(flat)


def test_flyhash_of_each_of_many_rows_is_its_code_in_a_batch():
    X = load("mnist").vectors(slice(0, 400))
    hasher = FlyHash(16).fit(X)
    codes = hasher.encode(X)
    assert [i for i in range(400) if hasher.encode(X[i : i + 1]) != codes[i : i + 1]] == []


def test_a_stream_that_diverges_raises_and_leaves_the_hasher_as_it_was(X):
    given = {"reduction": "mean", "learning_rate": 1e9, "batch_size": 10}
    with pytest.raises(ValueError, match="training diverges: lower the learning_rate, 1000000000"):
        BioHash(4, **given).partial_fit(X)
    hasher = BioHash(4).partial_fit(X)
    before, seen = hasher.weights_.clone(), hasher.n_samples_seen_
    with pytest.raises(ValueError, match="training diverges"):
        hasher.set_params(**given).partial_fit(X)
    assert torch.equal(hasher.weights_, before) and hasher.n_samples_seen_ == seen


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_a_stream_of_extreme_size_is_learned_like_an_ordinary_one(factor, X):
    hasher = BioHash(4)
    for part in np.split(np.float32(factor) * X, 3):
        hasher.partial_fit(part)
    assert hasher.unit_ != 1 and 0.5 < hasher.mean_norms_[0] < 3 and np.isfinite(hasher.mean_.numpy()).all()


def test_a_mapped_file_of_extreme_size_gives_the_codes_of_its_rows(X, tmp_path, monkeypatch):
    monkeypatch.setattr("biohash_mini.inputs._BLOCK", 1000)  # several blocks
    for factor in (1e-30, 1e30):
        np.save(tmp_path / "rows.npy", np.float32(factor) * X)
        mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
        hasher = BioHash(4).fit(mapped)
        torch.testing.assert_close(hasher.weights_, BioHash(4).fit(np.array(mapped)).weights_, rtol=1e-4, atol=1e-4)
        assert LSH(4).fit(mapped).encode(mapped) == LSH(4).fit(np.array(mapped)).encode(np.array(mapped))
