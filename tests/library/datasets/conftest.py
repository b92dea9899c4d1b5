"""Data at hand, data made up, and folders with nothing in them."""

import numpy as np
import pytest

from biohash_mini.datasets import data_path, load
from biohash_mini.datasets.sources import SPECS

MNIST_COUNTS = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]


@pytest.fixture(scope="session")
def mnist():
    return load("mnist")


@pytest.fixture(scope="session")
def glove():
    return load("glove")


@pytest.fixture
def nothing_at_hand(tmp_path, monkeypatch):
    """An empty cache and no folder of given data."""
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)


def full(name):
    """Return the whole data set, or skip the test."""
    if data_path(name) is None:
        pytest.skip(f"the full {name} is not on this machine; `biohash data fetch {name}` obtains it")
    return load(name, "full")


def idx(array):
    """Return an array of bytes as an idx file."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def tiny():
    """The four raw files of a small MNIST, and the arrays in them."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, 28, 28), np.uint8), np.arange(12, dtype=np.uint8) % 2
    files = idx(images[:9]), idx(labels[:9]), idx(images[9:]), idx(labels[9:])
    raw = dict(zip(SPECS["mnist"].members, files, strict=True))
    return raw, {"X": images.reshape(12, 784), "labels": labels}
