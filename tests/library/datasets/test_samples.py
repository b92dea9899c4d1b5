import numpy as np
import pytest

from biohash_mini.datasets import FEATURES, load, nearest, sample_per_class
from biohash_mini.datasets.decoders import encode_words
from biohash_mini.datasets.samples import FOLDER, add_up, read_sample, take_differences, write_sample
from biohash_mini.datasets.sources import SPECS
from biohash_mini.storage import digest

from .conftest import full


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "image_shape"),
    [
        ("mnist", (11_000, 784), np.uint8, (1, 28, 28)),
        ("cifar10", (3_000, 3_072), np.uint8, (3, 32, 32)),
        ("glove", (12_000, 100), np.float16, None),
        ("glove-100d", (12_000, 100), np.float16, None),
        ("sentences", (3_000, 256), np.float16, None),
    ],
)
def test_mini_sample_has_its_shape_and_checksum(name, shape, dtype, image_shape):
    data = load(name, "mini")
    assert (data.X.shape, data.X.dtype, data.image_shape, len(data)) == (shape, dtype, image_shape, shape[0])
    named = {"labels": data.labels} if data.words is None else {"words": encode_words(data.words.tolist())}
    assert digest({"X": data.X, **named}) == data.sha256 == SPECS[name].sample_sha256


@pytest.mark.parametrize(
    ("name", "classes", "per_class"), [("mnist", 10, 1_100), ("cifar10", 10, 300), ("sentences", 4, 750)]
)
def test_mini_classes_are_balanced(name, classes, per_class):
    assert np.bincount(load(name).labels).tolist() == [per_class] * classes


def test_mini_words_are_frequent_distinct_and_real(glove):
    assert glove.words[:5].tolist() == ["the", ",", ".", "of", "to"]
    assert len(set(glove.words.tolist())) == len(glove) == 12_000
    ids = nearest(glove.vectors(np.flatnonzero(glove.words == "monday")), glove.vectors(), 4, metric="cosine")
    assert set(glove.words[ids[0]]) <= {"monday", "tuesday", "wednesday", "thursday", "friday", "sunday"}


def test_colour_images_are_flattened_channel_first():
    images = load("cifar10").vectors(slice(0, 100)).reshape(-1, 3, 32, 32)
    steps = [np.abs(np.diff(images, axis=axis)).mean() for axis in (-1, -2)]
    assert max(steps) < 0.07  # neighbours in a channel are alike; read channel-last, the mean step exceeds 0.13


def test_samples_are_small():
    sizes = {path.name: path.stat().st_size for path in FOLDER.glob("*.npz")}
    assert {"mnist.npz", "cifar10.npz", "glove.npz"} <= set(sizes)
    assert max(sizes.values()) < 12e6 and sum(sizes.values()) < 16e6


def test_differences_of_colours_lose_nothing():
    X = np.random.default_rng(0).integers(0, 256, (5, 3_072), dtype=np.uint8)
    np.testing.assert_array_equal(add_up(take_differences(X)), X)


@pytest.mark.parametrize("name", FEATURES)
def test_the_sample_of_features_has_the_rows_of_the_sample_of_images(name):
    data, images = load(name), load("cifar10")
    assert data.X.shape == (3_000, 256) and data.X.dtype == np.float16 and data.layer == "alexnet pooled, 224 px"
    np.testing.assert_array_equal(data.labels, images.labels)
    assert digest({"X": data.X, "labels": data.labels}) == data.sha256
    task, pixels = data.retrieval_task(seed=0), images.retrieval_task(seed=0)
    np.testing.assert_array_equal(task.query_ids, pixels.query_ids)  # so that pictures can be shown
    assert task.image_shape is None and len(task.database) == 2_500


def test_mini_words_are_the_first_of_the_full_data():
    whole, mini = full("glove-100d"), load("glove")
    np.testing.assert_array_equal(mini.X, whole.X[:12_000])
    np.testing.assert_array_equal(mini.words, whole.words[:12_000])


@pytest.mark.parametrize(("name", "classes"), [("mnist", 10), ("cifar10", 10), ("sentences", 4)])
def test_mini_rows_come_from_the_full_data(name, classes):
    whole, mini = full(name), load(name)
    rows = sample_per_class(whole.labels, len(mini) // classes, seed=0)
    np.testing.assert_array_equal(mini.X, whole.X[rows])
    np.testing.assert_array_equal(mini.labels, whole.labels[rows])


def test_a_broken_archive_is_refused_wherever_it_is_cut(tmp_path):
    write_sample(tmp_path / "x.npz", {"X": np.arange(500, dtype=np.uint8).reshape(5, 100)})
    whole = (tmp_path / "x.npz").read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "x.npz").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"x\.npz is not an intact npz file"):
            read_sample(tmp_path / "x.npz")
    (tmp_path / "x.npz").write_bytes(whole[:40] + bytes(20) + whole[60:])
    with pytest.raises(ValueError):
        read_sample(tmp_path / "x.npz")


def test_an_archive_that_unpacks_to_too_much_is_refused_unread(tmp_path, monkeypatch):
    write_sample(tmp_path / "x.npz", {"X": np.zeros((5, 1000), np.uint8)})
    monkeypatch.setattr("biohash_mini.datasets.samples.LARGEST", 1000)
    with pytest.raises(ValueError, match=r"unpacks to 5,\d+ bytes, more than the 1,000"):
        read_sample(tmp_path / "x.npz")


def test_objects_in_an_archive_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_sample(tmp_path / "x.npz")
