from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from biohash_mini import datasets
from biohash_mini.datasets import Task, load, nearest, sample_per_class, sources, tasks
from biohash_mini.datasets.samples import FOLDER, read_sample
from biohash_mini.storage import digest, save_arrays

from .conftest import MNIST_COUNTS
from .pictures import rows

# --- loading


def test_a_damaged_sample_is_refused(monkeypatch):
    damaged = read_sample(FOLDER / "mnist.npz")
    damaged["X"][0, 0] ^= 1
    monkeypatch.setattr(tasks, "read_sample", lambda path: damaged)
    with pytest.raises(ValueError, match=r"mnist\.npz is damaged"):
        load("mnist")


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'imagenet'; choose one of mnist, cifar10, glove, glove-100d"):
        load("imagenet")
    with pytest.raises(ValueError, match="'medium'; choose one of mini, full"):
        load("mnist", "medium")


def test_vectors_scale_pixels_and_keep_words(mnist, glove):
    V = mnist.vectors(slice(0, 50))
    assert V.dtype == np.float32 and V.min() == 0 and V.max() == 1
    np.testing.assert_allclose(V * 255, mnist.X[:50], rtol=1e-6)
    np.testing.assert_array_equal(glove.vectors([3, 1]), glove.X[[3, 1]].astype(np.float32))


# --- features


@pytest.mark.usefixtures("nothing_at_hand")
def test_fc7_is_preferred_to_the_convolutions_and_both_say_what_they_are(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="`biohash features alexnet`"):
        load("cifar10-alexnet", "full")
    for layer in ("pooled", "fc7"):
        about = {"network": "alexnet", "layer": layer, "side": 112}
        save_arrays(sources.cache_path(f"cifar10-alexnet-{layer}"), rows(), **about)
        data = load("cifar10-alexnet", "full")
        assert data.layer == f"alexnet {layer}, 112 px" and data.sha256 == digest(rows())
        assert datasets.fetch("cifar10-alexnet") == datasets.data_path("cifar10-alexnet")
        assert datasets.verify("cifar10-alexnet") == data.sha256
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path / "given"))
    save_arrays(tmp_path / "given" / "cifar10-alexnet-pooled.safetensors", rows(), **about | {"side": 64})
    assert load("cifar10-alexnet", "full").layer.endswith("64 px")  # the given folder comes first


@pytest.mark.usefixtures("nothing_at_hand")
def test_maps_are_pooled_when_only_they_were_extracted():
    maps = np.random.default_rng(0).random((40, 256, 4)).astype(np.float16)
    about = {"network": "alexnet", "layer": "pool5", "side": 95}
    arrays = {**rows(), "X": maps.reshape(40, -1)}
    save_arrays(sources.cache_path("cifar10-alexnet-pool5"), arrays, **about)
    pooled, flat = load("cifar10-alexnet", "full"), load("cifar10-alexnet", "full", pool=False)
    np.testing.assert_allclose(pooled.X, maps.astype(np.float32).mean(2), rtol=1e-3)
    np.testing.assert_array_equal(flat.X, arrays["X"])
    assert (pooled.layer, flat.layer) == ("alexnet pooled, 95 px", "alexnet pool5, 95 px")
    assert pooled.sha256 == flat.sha256 == digest(arrays)


@pytest.mark.usefixtures("nothing_at_hand")
def test_damaged_features_are_refused_rather_than_replaced_by_others():
    about = {"network": "alexnet", "layer": "pooled", "side": 224}
    save_arrays(sources.cache_path("cifar10-alexnet-pooled"), rows(), **about)
    sources.cache_path("cifar10-alexnet-fc7").write_bytes(b"half a file")
    for function in (lambda name: load(name, "full"), datasets.verify):
        with pytest.raises(ValueError, match="truncated"):
            function("cifar10-alexnet")


@pytest.mark.usefixtures("nothing_at_hand")
def test_full_features_take_the_queries_of_the_paper():
    about = {"network": "vgg16", "layer": "pooled", "side": 112}
    save_arrays(sources.cache_path("cifar10-vgg16-pooled"), rows(11_000, 2), **about)
    task = load("cifar10-vgg16", "full").retrieval_task()
    assert (len(task.queries), len(task.database)) == (10_000, 1_000)


# --- tasks


def test_retrieval_task_splits_the_rows(mnist):
    task = mnist.retrieval_task(seed=3)
    assert task.database.shape == (10_000, 784) and task.queries.shape == (1_000, 784)
    assert np.bincount(task.query_labels).tolist() == [100] * 10
    both = np.concatenate([task.database_ids, task.query_ids])
    assert np.array_equal(np.sort(both), np.arange(11_000))  # disjoint and complete
    np.testing.assert_array_equal(task.queries, mnist.vectors(task.query_ids))
    np.testing.assert_array_equal(task.database_labels, mnist.labels[task.database_ids])
    assert task.train is task.database and task.image_shape == (1, 28, 28) and task.sha256 == mnist.sha256


def test_cifar10_mini_task_keeps_2500_rows():
    task = load("cifar10").retrieval_task()
    assert (len(task.database), len(task.queries)) == (2_500, 500)


def test_tasks_depend_on_the_seed_only(mnist, glove):
    for make in (mnist.retrieval_task, glove.word_task):
        first, again, other = make(seed=1), make(seed=1), make(seed=2)
        assert np.array_equal(first.query_ids, again.query_ids) and not np.array_equal(first.query_ids, other.query_ids)
        np.testing.assert_array_equal(first.database, again.database)


def test_paper_sizes_follow_from_the_class_counts():
    labels = np.repeat(np.arange(10, dtype=np.uint8), MNIST_COUNTS)
    full = datasets.Dataset("mnist", "full", np.zeros((70_000, 1), np.uint8), "", labels)
    task = full.retrieval_task()
    assert (len(task.database), len(task.queries)) == (69_000, 1_000)
    validation = task.validation()
    assert (len(validation.database), len(validation.queries)) == (68_000, 1_000)


def test_cifar10_takes_1000_queries_per_class():
    labels = np.repeat(np.arange(10, dtype=np.uint8), 6_000)
    task = datasets.Dataset("cifar10", "full", np.zeros((60_000, 1), np.uint8), "", labels).retrieval_task()
    assert (len(task.database), len(task.queries), len(task.validation().database)) == (50_000, 10_000, 49_000)


def test_validation_never_touches_the_queries(mnist):
    task = mnist.retrieval_task()
    validation = task.validation(per_class=100, seed=5)
    assert np.bincount(validation.query_labels).tolist() == [100] * 10
    parts = [task.query_ids, validation.query_ids, validation.database_ids]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(11_000))
    np.testing.assert_array_equal(validation.queries, mnist.vectors(validation.query_ids))
    assert validation.train is validation.database


def test_validation_of_a_bare_task_numbers_its_rows():
    labels = np.repeat([0, 1], 5)
    X = np.arange(10, dtype=np.float32)[:, None]
    validation = Task(X, X, labels, labels).validation(per_class=2)
    np.testing.assert_array_equal(validation.queries[:, 0], validation.query_ids)


@pytest.mark.parametrize("count", [0, -1, 1_100, 5_000])
def test_a_class_must_keep_a_row(mnist, count):
    with pytest.raises(ValueError, match="per class must be an integer from 1 to 1099"):
        mnist.retrieval_task(queries_per_class=count)


def test_sampling_allows_the_largest_count_that_leaves_a_row():
    assert sample_per_class(np.array([0, 0, 1, 1, 1]), 1, seed=0).shape == (2,)
    with pytest.raises(ValueError, match="rows per class must be an integer from 1 to 1, got 2"):
        sample_per_class(np.array([0, 0, 1, 1, 1]), 2, seed=0)


def test_word_task_searches_a_subset_with_itself(glove):
    task = glove.word_task(seed=0)
    assert task.database.shape == task.queries.shape == (2_400, 100) and task.train.shape == (9_600, 100)
    assert task.database_labels is None and task.query_labels is None
    np.testing.assert_array_equal(task.database, task.queries)
    rest = np.delete(np.arange(12_000), task.database_ids)
    np.testing.assert_array_equal(task.train, glove.vectors(rest))


def test_word_task_takes_the_papers_share_of_50000_words():
    words = datasets.Dataset(
        "glove", "full", np.zeros((50_000, 2), np.float16), "", words=np.arange(50_000).astype(str)
    )
    task = words.word_task()
    assert (len(task.database), len(task.train)) == (10_000, 40_000)


def test_tasks_say_what_they_need(glove):
    with pytest.raises(ValueError, match="use word_task"):
        glove.retrieval_task()
    with pytest.raises(ValueError, match="needs labels"):
        glove.word_task().validation()
    for size in (0, 12_000):
        with pytest.raises(ValueError, match="size must be an integer from 1 to 11999"):
            glove.word_task(size=size)


def test_data_sets_and_tasks_are_frozen(mnist):
    with pytest.raises(FrozenInstanceError):
        mnist.name = "other"
    with pytest.raises(FrozenInstanceError):
        mnist.retrieval_task().train = None


# --- true neighbours


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("q", "n", "top"), [(7, 50, 10), (1_030, 40, 40), (1, 1, 1)])
def test_nearest_equals_a_loop(metric, q, n, top):
    rng = np.random.default_rng(0)
    Q, X = rng.normal(size=(q, 5)), rng.normal(size=(n, 5))
    before = X.copy()
    ids = nearest(Q, X, top, metric=metric)
    assert ids.shape == (q, top) and ids.dtype == np.int64
    for i, query in enumerate(Q):
        if metric == "euclidean":
            distances = ((X - query) ** 2).sum(1)
        else:
            distances = -(X @ query) / np.linalg.norm(X, axis=1)
        np.testing.assert_allclose(distances[ids[i]], np.sort(distances)[:top], rtol=1e-4, atol=1e-5)  # float32 ties
        assert len(set(ids[i])) == top
    np.testing.assert_array_equal(X, before)


def test_nearest_of_a_database_row_is_itself(glove):
    X = glove.vectors(slice(0, 300))
    for metric in ("euclidean", "cosine"):
        np.testing.assert_array_equal(nearest(X, X, 1, metric=metric)[:, 0], np.arange(300))


def test_nearest_refuses_what_it_cannot_do():
    X = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="euclidean or cosine"):
        nearest(X, X, 1, metric="manhattan")
    for top in (0, 4):
        with pytest.raises(ValueError, match="top must be an integer from 1 to 3"):
            nearest(X, X, top)
    assert nearest(X[:0], X, 2).shape == (0, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_nearest_refuses_what_is_not_finite_in_float32(metric, value):
    X = np.random.default_rng(0).normal(size=(9, 4))
    bad = X.copy()
    bad[3, 1] = value
    for pair in ((bad, X), (X, bad)):
        with pytest.raises(ValueError, match="must be finite in float32"):
            nearest(*pair, 3, metric)


@pytest.mark.parametrize("power", [-100, 80, 120])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_nearest_finds_the_same_rows_at_any_scale(metric, power):
    X = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    assert np.array_equal(nearest(np.ldexp(X, power), np.ldexp(X, power), 9, metric), nearest(X, X, 9, metric))


def test_nearest_by_cosine_knows_directions_whatever_their_length():
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    lengths = np.random.default_rng(1).integers(-120, 120, (40, 1))
    assert np.array_equal(nearest(X, np.ldexp(X, lengths), 9, "cosine"), nearest(X, X, 9, "cosine"))


@pytest.mark.parametrize("offset", [0, 10_000])
def test_nearest_is_exact_far_from_the_origin(offset):
    X = (np.random.default_rng(0).normal(size=(2000, 20)) + offset).astype(np.float32)
    far = np.stack([((X.astype(float) - x) ** 2).sum(1) for x in X[:50].astype(float)])
    assert np.array_equal(nearest(X[:50], X, 5), np.argsort(far, axis=1)[:, :5])


def test_nearest_refuses_rows_of_another_length():
    with pytest.raises(ValueError, match=r"queries \(2, 3\) and database \(5, 4\)"):
        nearest(np.zeros((2, 3)), np.zeros((5, 4)), 1)
