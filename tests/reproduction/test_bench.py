import numpy as np
import pytest

from biohash_mini import HammingIndex
from biohash_mini.cli import main
from biohash_mini.reproduction import bench
from biohash_mini.reproduction.results import read


@pytest.fixture
def codes(tmp_path):
    """Write the codes that a process would be given, and return the task it would be set."""
    for name, part in zip(("database", "queries"), bench.drawn_codes(300, 3, 60, 9, 300), strict=True):
        part.save(tmp_path / f"{name}.safetensors")
    return {"kind": "search", "asked": {}, "top": [5, 20], "threads": 1, "repeats": 1}


def test_drawn_codes_are_as_uneven_as_those_of_a_trained_layer():
    database, queries = bench.drawn_codes(2000, 4, 80, 30, 500)
    assert database.array.shape == (2000, 4) and queries.array.shape == (30, 4)
    popularity = np.bincount(database.array.ravel(), minlength=80)
    assert popularity.std() > 2 * np.sqrt(popularity.mean())  # even units would differ by chance alone
    assert bench.drawn_codes(2000, 4, 80, 30, 500)[0] == database


def test_the_quick_run_prints_ratios_and_keeps_them(tmp_path, monkeypatch, capsys):
    def in_this_process(peer, folder, task):
        return {} if peer in bench.PEERS else bench.seconds_of(peer, folder, task)

    monkeypatch.setattr(bench, "_timed", in_this_process)
    for run in (0, 1):
        assert main(["bench", "--quick", "--results", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert "faiss missing" in printed and "rows have no peer here" in printed
        records = [record for record in read("bench", tmp_path) if record["seed"] == run]
        assert {record["what"] for record in records} == {"mAP, sorting"}  # the others have no peer to be held against
        (by_sorting,) = (record for record in records if record["what"] == "mAP, sorting")
        assert by_sorting["value"] == pytest.approx(by_sorting["sorting"] / by_sorting["ours"])
        assert by_sorting["holds"] == (by_sorting["value"] >= 20) and by_sorting["commit"] is not None


def test_sorting_and_ours_agree_where_ties_are_in_order(codes, tmp_path):
    database, queries = (bench.Codes.load(tmp_path / f"{name}.safetensors") for name in ("database", "queries"))
    sorting = bench._map_calls("sorting", database, queries, [50], 1)["mAP"]()
    labels = np.arange(300) % 10
    want = bench.mean_average_precision(queries, database, np.arange(9), labels, 50, ties="index")
    assert sorting == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("peer", ["faiss", "usearch", "sparse_dot_topn"])
def test_peers_find_the_same_distances(peer, codes, tmp_path):
    pytest.importorskip(peer)
    database, queries = (bench.Codes.load(tmp_path / f"{name}.safetensors") for name in ("database", "queries"))
    found = bench._search_calls(peer, database, queries, [5], 1)["top 5"]()
    distances = found[0] if peer == "faiss" else found.distances if peer == "usearch" else None
    want = HammingIndex(database).search(queries, 5)[0]
    if distances is None:  # overlaps, of those that share a unit
        distances = 2 * (3 - np.vstack([np.pad(row.data, (0, 5 - row.nnz)) for row in found]))
    assert np.array_equal(distances, want)


@pytest.mark.slow
def test_ours_is_timed_in_a_process_of_its_own(codes, tmp_path):
    found = bench._timed("ours", str(tmp_path), codes)
    assert set(found) == {"build", "top 5", "top 20", "one query"} and all(s > 0 for s in found.values())
    with pytest.raises(OSError, match="ours could not be measured"):
        bench._timed("ours", str(tmp_path / "nowhere"), codes)


def test_a_size_has_three_numbers(capsys):
    assert main(["bench", "--sizes", "50000,16"]) == 2
    assert "a size is n,k,m" in capsys.readouterr().err
