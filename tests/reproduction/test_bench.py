import numpy as np
import pytest

from biohash_mini import HammingIndex
from biohash_mini.cli import main
from biohash_mini.reproduction import bench, growth
from biohash_mini.reproduction.bench import process, search, training
from biohash_mini.reproduction.results import read


@pytest.fixture
def codes(tmp_path):
    """Write the codes that a process would be given, and return the task it would be set."""
    for name, part in zip(("database", "queries"), search.drawn_codes(300, 3, 60, 9, 300), strict=True):
        part.save(tmp_path / f"{name}.safetensors")
    return {"kind": "search", "asked": {}, "top": [5, 20], "threads": 1, "repeats": 1}


def test_drawn_codes_are_as_uneven_as_those_of_a_trained_layer():
    database, queries = search.drawn_codes(2000, 4, 80, 30, 500)
    assert database.array.shape == (2000, 4) and queries.array.shape == (30, 4)
    popularity = np.bincount(database.array.ravel(), minlength=80)
    assert popularity.std() > 2 * np.sqrt(popularity.mean())  # even units would differ by chance alone
    assert search.drawn_codes(2000, 4, 80, 30, 500)[0] == database


@pytest.fixture
def here(monkeypatch):
    """Time in this process, where no peer is installed."""
    modules = {module.__name__: module for module in (search, training, growth)}
    monkeypatch.setattr(process, "apart", lambda name, function, _, **given: getattr(modules[name], function)(**given))
    monkeypatch.setattr(search, "find_spec", lambda name: None)


def test_the_quick_run_prints_ratios_and_keeps_them(tmp_path, here, capsys):
    for run in (0, 1):
        assert main(["bench", "sparse", "evaluation", "--quick", "--results", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert "faiss missing" in printed and "rows have no peer here" in printed
        (by_sorting,) = (record for record in read("bench", tmp_path) if record["seed"] == run)  # no other has a peer
        seconds = by_sorting["took"]
        assert by_sorting["what"] == "mAP, sorting" and by_sorting["commit"] is not None
        assert by_sorting["value"] == pytest.approx(seconds["sorting"] / seconds["ours"])
        assert by_sorting["holds"] == (by_sorting["value"] >= 20)


def test_training_and_encoding_stand_beside_bare_products(here):
    rows = list(bench.measure(["floors"], quick=True))
    assert [row["what"] for row in rows] == ["training, floor", "encoding, floor"]
    assert all(row["value"] == row["took"]["products"] / row["took"]["ours"] for row in rows)


@pytest.mark.slow
def test_each_stage_of_a_convolution_has_its_operations():
    rows = list(bench.measure(["convolution"], quick=True))
    assert [row["call"] for row in rows] == ["filters", "features", "layer", "codes"]
    images, patches, positions = 40, 500, 9 * 26**2 + 16 * 25**2
    gflop = {row["call"]: 5e8 * row["gflop"] for row in rows}
    assert gflop["filters"] == pytest.approx(patches * 500 * 25) and gflop["layer"] == images * 100_000 * 40
    assert gflop["features"] == pytest.approx(images * 500 * positions)
    assert all(row["took"]["ours"] > 0 and row["took"]["products"] > 0 for row in rows)


def test_a_speed_up_by_threads_is_a_slope(tmp_path, here, monkeypatch):
    costs = iter([growth.Cost(1.0, 2.0, 3.0, 32.0), growth.Cost(2.0, 2.0, 1.5, 32.0)])  # of two threads, of one
    monkeypatch.setattr(growth, "clocked", lambda size: next(costs))
    assert growth.thread_slopes(tmp_path).empty
    for row in bench.run(["threads"], threads=2, where=tmp_path):
        assert row["holds"] == (row["what"] != "threads, search")
    found = growth.thread_slopes(tmp_path)
    assert found.round(6).to_dict() == {"training": -1.0, "encoding": 0.0, "search": 1.0}


def test_learners_race_to_the_energy_and_the_map_of_ours(here):
    energy, score = bench.measure(["race"], quick=True)
    ours = energy["trials"]["ours"][0]
    assert ours["energy"] < 0 < ours["map"] and not {"GreedyHash", "SOLHash"} & set(energy["took"])
    for row, goal, sign in ((energy, "energy", 1), (score, "map", -1)):
        for who, trials in row["trials"].items():
            if who in row["took"] and who not in row["not reached"]:
                (first, *_) = (t for t in trials if sign * t[goal] <= sign * ours[goal])
                assert row["took"][who] == first["seconds"]


def test_an_unknown_part_is_named(capsys):
    assert main(["bench", "everything"]) == 2
    assert "no part of the benchmark is called everything" in capsys.readouterr().err


def test_sorting_and_ours_agree_where_ties_are_in_order(codes, tmp_path):
    database, queries = (search.Codes.load(tmp_path / f"{name}.safetensors") for name in ("database", "queries"))
    sorting = search._map_calls("sorting", database, queries, [50], 1)["mAP"]()
    labels = np.arange(300) % 10
    want = search.mean_average_precision(queries, database, np.arange(9), labels, 50, ties="index")
    assert sorting == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("peer", ["faiss", "usearch", "sparse_dot_topn"])
def test_peers_find_the_same_distances(peer, codes, tmp_path):
    pytest.importorskip(peer)
    database, queries = (search.Codes.load(tmp_path / f"{name}.safetensors") for name in ("database", "queries"))
    found = search._search_calls(peer, database, queries, [5], 1)["top 5"]()
    distances = found[0] if peer == "faiss" else found.distances if peer == "usearch" else None
    want = HammingIndex(database).search(queries, 5)[0]
    if distances is None:  # overlaps, of those that share a unit
        distances = 2 * (3 - np.vstack([np.pad(row.data, (0, 5 - row.nnz)) for row in found]))
    assert np.array_equal(distances, want)


@pytest.mark.slow
def test_ours_is_timed_in_a_process_of_its_own(codes, tmp_path):
    given = {"peer": "ours", "task": codes}
    found = process.apart(search.__name__, "seconds_of", 1, folder=str(tmp_path), **given)
    assert set(found) == {"build", "top 5", "top 20", "one query"} and all(s > 0 for s in found.values())
    with pytest.raises(OSError, match=r"seconds_of .*ours could not be measured"):
        process.apart(search.__name__, "seconds_of", 1, folder=str(tmp_path / "nowhere"), **given)


def test_a_size_has_three_numbers(capsys):
    assert main(["bench", "--sizes", "50000,16"]) == 2
    assert "a size is n,k,m" in capsys.readouterr().err


def test_a_peer_that_stopped_short_of_the_goal_is_not_faster():
    took = {"ours": 2.0, "quick": 1.0, "slow": 6.0, "absent": None}
    assert bench.ratio_of(took) == 0.5
    assert bench.ratio_of(took, ["quick"]) == 3.0
    assert bench.ratio_of(took, ["quick", "slow"]) == 0.5  # at least
    assert bench.ratio_of({"ours": 1.0, "absent": None}) is None
