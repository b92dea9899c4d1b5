"""Parameters are checked as data are: a value of another kind or out of range is named, with what is allowed."""

import inspect

import numpy as np
import pytest

from biohash_mini import DH, ITQ, LSH, METHODS, UHBNN, BioConvHash, BioHash, FlyHash, GreedyHash, Hasher
from biohash_mini.hashers.ranges import RANGES

from .contract import every_method, make

ELSEWHERE = {"hidden", "kernel_sizes", "image_shape"}  # sequences, which their methods check

REFUSED = [
    (LSH, "seed", ["1", None, 1.5, True, 1 << 64, -(1 << 63) - 1], "seed must"),
    (LSH, "center", ["yes", 1, None, 0.0], "center must be True or False"),
    (LSH, "hash_length", [True, None, np.float32(3), 1 << 40], "hash_length must be"),
    (LSH, "device", [None, 3], "device must be a text"),
    (BioHash, "norm_tol", [np.nan, -1, "1"], "norm_tol must"),
    (BioHash, "init_std", [0, -1.0, np.inf, None], "init_std must"),
    (BioHash, "learning_rate", [0, np.nan, np.inf, "fast"], "learning_rate must"),
    (BioHash, "delta", [np.nan, None, "0.1", [0.1]], "delta must be a finite number"),
    (BioHash, "p", [np.inf, None, 0.9], "p must be"),
    (BioHash, "activity", ["5%", None, np.nan, 0, 1.1], "activity must"),
    (BioHash, "max_epochs", [1.5, "2", 0], "max_epochs must be"),
    (BioHash, "batch_size", [0, 2.5, None], "batch_size must be"),
    (BioHash, "reduction", ["sum", None, 2], "reduction must be max, mean or implicit"),
    (BioHash, "anti_rank", [2.0, None], "anti_rank must be an integer"),
    (BioHash, "verbose", ["no", 2], "verbose must be True or False"),
    (DH, "max_epochs", [None], "max_epochs must be an integer"),
    (DH, "hidden", [5, (3,), (3.0, 4), "ab"], "hidden must be two widths of at least 1"),
    (GreedyHash, "max_epochs", [None], "max_epochs must be an integer"),
    (ITQ, "n_iterations", [-1, 2.5, None], "n_iterations must"),
    (UHBNN, "n_iterations", [0, -1], "n_iterations must"),
    (FlyHash, "expansion", [np.inf, 0, None], "expansion must"),
    (BioConvHash, "filter_learning_rate", [0, -1, np.nan, "1"], "filter_learning_rate must"),
    (BioConvHash, "learning_rate", [0, np.inf], "learning_rate must"),
    (BioConvHash, "filter_epochs", [0, 1.5], "filter_epochs must"),
    (BioConvHash, "kernel_sizes", [3, (0,), (2.5,), ()], "kernel_sizes must"),
    (BioConvHash, "delta", [(0.1, 0.1, 0.1), (np.nan, 0.1), "ab"], "delta must be"),
    (BioConvHash, "anti_rank", [1, 501], "anti_rank must lie between 2 and the number of filters 500"),
    (BioConvHash, "image_shape", [(4, 5), (1, 0, 5), 20], "image_shape must be channels, height and width"),
]


@pytest.mark.parametrize(("method", "name", "values", "message"), REFUSED)
def test_a_parameter_of_another_kind_or_range_is_refused_with_its_value(method, name, values, message, X):
    for value in values:
        with pytest.raises(ValueError, match=message):
            method(**{name: value}).fit(X)


@every_method
def test_every_parameter_has_a_declared_range(name):
    assert set(METHODS[name]().get_params()) <= set(RANGES) | ELSEWHERE


@every_method
def test_every_default_is_in_its_range(name):
    METHODS[name]()._check_params()


@every_method
def test_numpy_scalars_serve_as_parameters_and_are_saved(name, X, tmp_path):
    plain = make(name).get_params()
    kinds = {bool: np.bool_, int: np.int64, float: np.float64}
    given = {key: kinds[type(v)](v) if type(v) in kinds else v for key, v in plain.items()}
    hasher = METHODS[name](**given).fit(X)
    assert hasher.get_params()["seed"] is given["seed"]
    hasher.save(tmp_path / "model.safetensors")
    loaded = Hasher.load(tmp_path / "model.safetensors", device="cpu")
    assert loaded.encode(X) == hasher.encode(X) == make(name).fit(X).encode(X)
    assert {type(v) for v in loaded.get_params().values()} <= {bool, int, float, str, list, type(None)}


@pytest.mark.parametrize(
    "hasher",
    [
        LSH(10**9),
        BioHash(16, activity=1e-300),
        BioHash(16, activity=5e-324),
        FlyHash(4, expansion=1e300),
        BioConvHash(4, n_filters=10**9, image_shape=(1, 4, 5), kernel_sizes=(2,), pool=2),
    ],
)
def test_what_no_machine_could_hold_is_refused_before_memory_is_asked_for(hasher, X):
    with pytest.raises(ValueError, match="weights"):
        hasher.fit(X)


def test_a_new_parameter_cannot_forget_its_range():
    documented = {name for method in METHODS.values() for name in inspect.signature(method).parameters}
    assert set(RANGES) <= documented  # and none is declared that nobody has
