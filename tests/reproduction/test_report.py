import json
from itertools import chain

import pytest

from biohash_mini.cli import main
from biohash_mini.reproduction import paper, report, results
from biohash_mini.reproduction.declarations import EXPERIMENTS


def record(method="BioHash", k=2, seed=0, **values):
    return {"profile": "full", "method": method, "hash_length": k, "seed": seed, "value": 40.0} | values


@pytest.mark.parametrize(
    ("printed", "ours", "expected"),
    [
        (50, 50, "reproduced"),
        (50, 49, "reproduced"),
        (50, 51, "reproduced"),
        (50, 51.1, "above"),
        (50, 75, "above"),
        (50, 48.9, "close"),
        (50, 47, "close"),
        (50, 46.9, "deviates"),
        (50, None, "missing"),
        (None, 3, "not in the paper"),
    ],
)
def test_verdicts_follow_the_distance_to_the_paper(printed, ours, expected):
    assert report.verdict(printed, ours) == expected


def test_where_higher_is_not_better_a_value_far_above_deviates():
    assert report.verdict(3.0, 9.0, higher_is_better=False) == "deviates"
    assert report.verdict(3.0, 3.9, higher_is_better=False) == "reproduced"


def test_the_report_has_every_cell_and_says_what_is_missing(tmp_path, capsys):
    results.append("mnist", record(value=44.0, best=70.0, worst=30.0), tmp_path)
    results.append("mnist", record(value=46.0, best=72.0, worst=32.0, seed=1), tmp_path)
    assert main(["report", "mnist", "--json", "--results", str(tmp_path)]) == 0
    cells = {(c["method"], c["hash_length"]): c for c in json.loads(capsys.readouterr().out)}
    bio = cells["BioHash", 2]
    assert (bio["paper"], bio["ours"], bio["seeds"], bio["best"], bio["worst"]) == (44.38, 45.0, 2, 71.0, 31.0)
    assert bio["sd"] == pytest.approx(2**0.5) and bio["verdict"] == "reproduced"
    assert cells["LSH", 64]["verdict"] == cells["DH", 16]["verdict"] == "missing"
    assert ("DH", 2) not in cells and cells["BioHash", 64]["paper"] is None
    quoted = {c["method"]: c["verdict"] for c in report.cells(["cifar10-vgg16"], where=tmp_path)}
    assert quoted["USDH"] == "reported only" and quoted["BioHash"] == "missing"
    assert bio["difference"] == pytest.approx(0.62)
    assert main(["report", "mnist", "--markdown", "--results", str(tmp_path)]) == 0
    assert "45.00 ± 1.4 (44.38)" in capsys.readouterr().out.replace("\u00a0", " ")
    assert main(["report", "mnist", "--results", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert "BioHash 2 44.38 45.00 1.41 2 0.62 31.00 71.00 reproduced".split() in lines


def test_every_experiment_with_a_printed_table_covers_its_columns():
    for name, experiment in EXPERIMENTS.items():
        if name in paper.TABLES:
            assert set(paper.TABLES[name].hash_lengths) <= set(experiment.hash_lengths)


def test_no_recorded_cell_deviates_without_a_reason():
    unexplained = [c for c in report.cells() if c["verdict"] == "deviates" and not c["reason"]]
    assert not unexplained, [(c["experiment"], c["method"], c["hash_length"]) for c in unexplained]


def test_a_cell_registered_as_unlike_is_not_judged(tmp_path):
    entry = '[[unlike]]\nexperiment = "mnist"\nmethods = ["LSH"]\nhash_lengths = [2, 4]\nreason = "another task"\n'
    (tmp_path / report.REGISTER).write_text(entry)
    key = {"experiment": "mnist", "profile": "full", "method": "LSH", "seed": 0}
    results.append("mnist", key | {"hash_length": 2, "value": 99.0}, tmp_path)
    found = {c["hash_length"]: c for c in report.cells(["mnist"], where=tmp_path) if c["method"] == "LSH"}
    assert (found[2]["verdict"], found[2]["reason"]) == ("not like for like", "another task")
    assert found[4]["verdict"] == "missing"


def test_the_register_speaks_of_cells_that_exist():
    known = {(c["experiment"], c["method"], c["hash_length"]) for c in report.cells()}
    for entry in chain.from_iterable(report.register().values()):
        assert entry["reason"].strip()
        for method in entry["methods"]:
            for k in entry["hash_lengths"]:
                assert (entry["experiment"], method, k) in known


def test_costs_are_summed_by_experiment_and_count_a_measurement_once(tmp_path, capsys):
    about = {"profile": "full", "seed": 0, "hash_length": 2, "peak_memory_mb": 7}
    for end, seconds in (("top", 5.0), ("bottom", 3.0)):  # two readings of one fitted hasher
        results.append("smoothness", about | {"method": f"BioHash {end}", "seconds": seconds, "value": 1.0}, tmp_path)
    results.append("smoothness", about | {"method": "LSH top", "seconds": 2.0, "value": 1.0}, tmp_path)
    cost = report.cost(["smoothness"], where=tmp_path).loc["smoothness"]
    assert (cost["recorded"], cost["seconds"], cost["longest"], cost["memory"]) == (3, 7, 5, 7)
    assert main(["report", "smoothness", "--cost", "--results", str(tmp_path)]) == 0
    assert "7 s, 0.0 hours" in capsys.readouterr().out
