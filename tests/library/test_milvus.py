"""Milvus Lite holds every code once, whatever interrupts the insert, and finds what HammingIndex finds."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from biohash_mini import BioHash, HammingIndex, load
from biohash_mini.codes import SparseCodes
from biohash_mini.milvus import MilvusIndex, address
from tests.helpers import random_codes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def digits():
    """Return codes of digits, and of others to ask for."""
    task = load("mnist").retrieval_task(seed=0)
    hasher = BioHash(8, activity=0.05, max_epochs=1).fit(task.database[:1000])
    return hasher.encode(task.database[:1000]), hasher.encode(task.queries[:20])


@pytest.fixture(scope="module")
def database(digits, tmp_path_factory):
    with MilvusIndex(tmp_path_factory.mktemp("milvus") / "codes.db") as index:
        index.insert(digits[0], batch_size=300)
        yield index


@pytest.mark.parametrize("top", [1, 10, 300, 10**40])
def test_the_distances_are_those_of_the_index(top, digits, database):
    codes, queries = digits
    distances, ids = database.search(queries, top)
    want, _ = HammingIndex(codes).search(queries, top)
    assert np.array_equal(distances, want) and distances.dtype == want.dtype
    assert np.array_equal(np.take_along_axis(queries.hamming(codes), ids, 1), distances)
    assert all(len(set(row)) == len(row) for row in ids.tolist())


def test_items_that_share_no_unit_complete_the_list_by_row(tmp_path):
    codes = SparseCodes(np.array([[4, 5], [0, 1], [6, 7], [1, 2]]), 8)
    with MilvusIndex(tmp_path / "few.db") as index:
        index.insert(codes)
        distances, ids = index.search(SparseCodes(np.array([[0, 1], [3, 0]]), 8), 9)
    assert distances.tolist() == [[0, 2, 4, 4], [2, 4, 4, 4]]
    assert ids.tolist() == [[1, 3, 0, 2], [1, 0, 2, 3]]


def test_what_is_missing_is_written_and_nothing_twice(digits, database):
    codes, queries = digits
    database.client.delete("codes", ids=[0, 299, 300, 700, 999])
    assert len(database) == 995
    with pytest.raises(ValueError, match="holds 995 of 1000 codes: an export was interrupted"):
        database.search(queries, 10)
    for batch_size in (77, 1000):
        database.insert(codes, batch_size=batch_size)
        assert len(database) == 1000
    assert np.array_equal(database.search(queries, 1000)[0], HammingIndex(codes).search(queries, 1000)[0])


def test_codes_of_others_are_refused(digits, database):
    codes, queries = digits
    almost = SparseCodes(np.concatenate([codes.array[:-2], codes.array[:2]]), codes.n_units)
    for other in (random_codes("sparse", 1000, 160, 8), codes[:500], almost):
        with pytest.raises(ValueError, match="holds other codes"):
            database.insert(other)
    with pytest.raises(ValueError, match="sparse codes"):
        database.insert(random_codes("dense", 5, 16, 0))
    for units, length in ((160, 4), (161, 8)):
        with pytest.raises(ValueError, match="cannot compare"):
            database.search(random_codes("sparse", 5, units, length))
    with pytest.raises(ValueError, match="top must be"):
        database.search(queries, 0)


def test_a_model_does_not_search_codes_of_another(digits, tmp_path):
    codes, queries = digits
    with MilvusIndex(tmp_path / "mine.db") as index:
        with pytest.raises(FileNotFoundError, match=r"no collection codes in .*mine\.db"):
            index.search(queries, model="a")
        index.insert(codes[:50], model="a")
        assert index.search(queries, 5, model="a")[0].shape == index.search(queries, 5)[0].shape == (20, 5)
        with pytest.raises(ValueError, match="holds codes of another model"):
            index.search(queries, 5, model="b")
        index.insert(codes[:50])  # the same codes, by whomever
        with pytest.raises(ValueError, match="holds other codes"):
            index.insert(codes[:50], model="b")
        with pytest.raises(ValueError, match="batch_size must be an integer of at least 1"):
            index.insert(codes[:50], model="a", batch_size=0)


def test_a_place_that_cannot_be_opened_is_named_with_its_reason(tmp_path, capfd):
    (tmp_path / "file.db").write_text("not a folder")
    with pytest.raises(OSError, match=r"^Milvus: .*File exists.*file\.db"):
        MilvusIndex(tmp_path / "file.db")
    with MilvusIndex(tmp_path / "names.db", "x" * 300) as index, pytest.raises(OSError, match="name too long"):
        index.insert(random_codes("sparse", 5, 160, 4))
    assert capfd.readouterr().err == ""  # where Milvus Lite would log tracebacks


@pytest.mark.slow
def test_an_insert_that_was_killed_goes_on(tmp_path):
    """The client is killed in the middle; the same call, in a new process, completes what is there."""
    codes = random_codes("sparse", 3000, 320, 8)
    codes.save(tmp_path / "codes.safetensors")
    code = "import sys; from biohash_mini import Codes; from biohash_mini.milvus import MilvusIndex\n"
    code += "MilvusIndex(sys.argv[2]).insert(Codes.load(sys.argv[1]), batch_size=50, verbose=True)"
    argv = [sys.executable, "-c", code, tmp_path / "codes.safetensors", tmp_path / "killed.db"]
    job = subprocess.Popen(argv, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    while not re.search(rb" [1-9]\d*/3000", os.read(job.stderr.fileno(), 1000)):  # the bar moves
        assert job.poll() is None
    job.send_signal(signal.SIGKILL)
    job.communicate()
    with MilvusIndex(tmp_path / "killed.db") as index:
        assert len(index) < len(codes)
        index.insert(codes)
        assert len(index) == len(codes)
        assert np.array_equal(index.search(codes[::300], 3000)[0], HammingIndex(codes).search(codes[::300], 3000)[0])


def test_an_address_names_a_folder_or_a_server():
    assert address("milvus://codes.db") == ("codes.db", "codes")
    assert address("milvus:///data/codes.db#words") == ("/data/codes.db", "words")
    assert address("milvus://host:19530#words") == ("http://host:19530", "words")
    assert address("milvus+https://host:443") == ("https://host:443", "codes")
    for wrong in ("milvus://", "redis://host", "codes.db"):
        with pytest.raises(ValueError, match="an address of Milvus"):
            address(wrong)


def test_a_server_that_is_not_there_is_one_line():
    with pytest.raises(OSError, match=r"^Milvus: .*localhost:9") as caught:
        MilvusIndex("http://localhost:9")
    assert "\n" not in str(caught.value)
