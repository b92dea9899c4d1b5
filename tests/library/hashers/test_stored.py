"""Hashers as files, and hashers that a failure leaves as they were."""

import copy

import numpy as np
import pytest
import torch

from biohash_mini import ITQ, BioConvHash, BioHash, Hasher
from biohash_mini.storage import load_arrays, save_arrays

from .contract import every_method, make


@every_method
def test_what_is_learned_is_what_the_class_says_it_learns(name, X):
    hasher = make(name).fit(X)
    assert set(hasher._learned()) == hasher._learns()


def state_of(hasher):
    return {name: v.clone() if isinstance(v, torch.Tensor) else copy.copy(v) for name, v in vars(hasher).items()}


def same(a, b):
    return a.keys() == b.keys() and all(
        torch.equal(v, b[name]) if isinstance(v, torch.Tensor) else v == b[name] for name, v in a.items()
    )


@every_method
def test_a_refit_that_is_interrupted_at_any_write_leaves_all_as_it_was(name, X, monkeypatch):
    hasher = make(name).fit(X)
    before, codes = state_of(hasher), hasher.encode(X)
    plain, stop_at = type(hasher).__setattr__, 0

    def interrupted(self, attribute, value):
        nonlocal left
        left -= attribute.endswith("_")
        if left < 0:
            raise KeyboardInterrupt
        plain(self, attribute, value)

    monkeypatch.setattr(type(hasher), "__setattr__", interrupted)
    for stop_at in range(4):
        left = stop_at
        with pytest.raises(KeyboardInterrupt):
            hasher.set_params(seed=5).fit(X + 1)
        vars(hasher)["seed"] = 0
        assert same(vars(hasher), before)
    assert hasher.encode(X) == codes


def test_a_refit_forgets_what_only_the_last_fit_learned(X):
    hasher = make("BioConvHash", kernel_sizes=(2, 3)).fit(X)
    assert "filters_3_" in vars(hasher)
    assert "filters_3_" not in vars(hasher.set_params(kernel_sizes=(2,)).fit(X))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_stream_does_not_move_the_synapses_of_a_copy(duplicate, X):
    hasher = BioHash(4).partial_fit(X)
    other = duplicate(hasher)
    before = other.weights_.clone()
    hasher.partial_fit(X)
    assert torch.equal(other.weights_, before) and not torch.equal(hasher.weights_, before)


@every_method
def test_the_digest_knows_a_hasher_after_the_disk_and_from_others(name, X, tmp_path):
    hasher = make(name).fit(X)
    hasher.save(tmp_path / "model")
    assert Hasher.load(tmp_path / "model", device="cpu").digest() == hasher.digest()
    assert make(name).fit(X).digest() == hasher.digest()
    assert hasher.digest() not in {make(name, 5).fit(X).digest(), make(name, seed=1).fit(X).digest()}


def rewrite(path, change):
    """Let ``change`` alter a model file, and seal it anew, as a hostile writer would."""
    arrays, about = load_arrays(path)
    change(arrays, about)
    save_arrays(path, arrays, **about)


HOSTILE = [
    (lambda a, b: b["state"].update(encode=1), "it has encode, which this method does not learn"),
    (lambda a, b: b["state"].update(fit="x", __class__=3), "does not learn"),
    (lambda a, b: a.update(transform=np.zeros(3, np.float32)), "it has transform"),
    (lambda a, b: a.update(spare_=np.zeros(3, np.float32)), "it has spare_"),
    (lambda a, b: b["state"].update(mean_norms_="text"), "mean_norms_ is not finite numbers"),
    (lambda a, b: b["state"].update(mean_norms_=[float("nan")]), "mean_norms_ is not finite numbers"),
    (lambda a, b: b["state"].update(unit_=None), "unit_ is not finite numbers"),
    (lambda a, b: b["state"].update(n_features_in_=10**12), "mean_ has shape"),
    (lambda a, b: b["state"].update(n_features_in_=2.0), "mean_ has shape"),
    (lambda a, b: b["state"].pop("n_features_in_"), "not fitted"),
    (lambda a, b: a.pop("weights_"), "weights_"),
    (lambda a, b: a.update(weights_=np.full_like(a["weights_"], np.nan)), "weights_ is not finite float32"),
    (lambda a, b: a.update(weights_=a["weights_"].astype(np.float64)), "weights_ is not finite float32"),
    (lambda a, b: a.update(weights_=a["weights_"][:, :3].copy()), "does not hold a fitted BioHash"),
    (lambda a, b: a.update(weights_=a["weights_"][0].copy()), "does not hold a fitted BioHash"),
    (lambda a, b: a.update(weights_=a["weights_"][:2].copy()), "between 1 and the number of units 2"),
    (lambda a, b: a.update(mean_=a["mean_"][:3].copy()), "mean_ has shape"),
    (lambda a, b: b["params"].update(hash_length="many"), "hash_length must be"),
    (lambda a, b: b["params"].update(hash_length=10**12), "hash_length must be"),
    (lambda a, b: b["params"].update(surprise=1), "surprise"),
    (lambda a, b: b.update(params=[1]), "does not hold a fitted BioHash"),
    (lambda a, b: b.update(state=None), "does not hold a fitted BioHash"),
    (lambda a, b: b.pop("params"), "params"),
    (lambda a, b: b.update(hasher=["LSH"]), "not Hasher"),
    (lambda a, b: b.update(hasher="Stored"), "not Hasher"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_a_sealed_file_with_hostile_content_is_refused(change, message, X, tmp_path):
    BioHash(4, max_epochs=1).fit(X).save(tmp_path / "model")
    rewrite(tmp_path / "model", change)
    with pytest.raises(ValueError, match=message):
        Hasher.load(tmp_path / "model", device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b: b["state"].update(image_shape_=[1, 10**6, 10**6], n_features_in_=10**12), "synapses have shapes"),
        (lambda a, b: b["state"].update(image_shape_=[4, 5]), "does not hold a fitted BioConvHash"),
        (lambda a, b: b["state"].update(image_shape_=[-1, -4, 5]), "image_shape_ is"),
        (lambda a, b: a.update(filters_2_=a["filters_2_"][:, :3].copy()), "filters_2_ has shape"),
        (lambda a, b: a.update(scale_=a["scale_"][:5].copy()), "synapses have shapes"),
    ],
)
def test_a_sealed_convolution_with_hostile_content_is_refused(change, message, X, tmp_path):
    make("BioConvHash").fit(X).save(tmp_path / "model")
    rewrite(tmp_path / "model", change)
    with pytest.raises(ValueError, match=message):
        BioConvHash.load(tmp_path / "model", device="cpu")


def test_a_model_file_from_before_units_were_stored_still_loads(X, tmp_path):
    hasher = ITQ(4).fit(X)
    hasher.save(tmp_path / "model")
    rewrite(tmp_path / "model", lambda a, b: b["state"].pop("unit_"))
    assert ITQ.load(tmp_path / "model", device="cpu").encode(X) == hasher.encode(X)
