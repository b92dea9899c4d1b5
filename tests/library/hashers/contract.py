"""What the tests of all methods share: data, and a small version of each registered method."""

import numpy as np
import pytest

from biohash_mini import METHODS

#: Parameters that make a method quick, and fit for data of few features; the contract holds from the first steps on.
_QUICK = {
    "BioConvHash": {
        "image_shape": (1, 4, 5),
        "kernel_sizes": (2,),
        "n_filters": 12,
        "channel_winners": 3,
        "pool": 2,
        "stride": 1,
        "n_patches": 500,
        "filter_epochs": 2,
        "max_epochs": 5,
    },
    "DH": {"max_epochs": 5},
    "GreedyHash": {"max_epochs": 5},
    "UH-BNN": {"n_iterations": 50},
    "WTAHash": {"window": 2},
}

every_method = pytest.mark.parametrize("name", list(METHODS))


def make(name, hash_length=4, **given):
    """Return an unfitted hasher of a registered method."""
    return METHODS[name](hash_length, **{**_QUICK.get(name, {}), **given})


def rows():
    """Return data, shape (300, 20), which are also images of 4 × 5 pixels."""
    return np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32) + 1
