import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from itertools import chain

import pytest

from biohash_mini import paper, report, results
from biohash_mini.cli import main
from biohash_mini.experiments import EXPERIMENTS, run


def record(method="BioHash", k=2, seed=0, **values):
    return {"profile": "full", "method": method, "hash_length": k, "seed": seed, "value": 40.0} | values


def test_a_cell_is_recorded_once(tmp_path):
    assert results.append("mnist", record(), tmp_path)
    assert not results.append("mnist", record(value=99.0), tmp_path)
    assert results.append("mnist", record(seed=1), tmp_path)
    assert [r["value"] for r in results.read("mnist", tmp_path)] == [40.0, 40.0]


@pytest.mark.parametrize("torn", [b'{"profile": "fu', b"{", b'{"profile": "full"}'[:-1]])
def test_a_torn_last_line_is_repaired(torn, tmp_path):
    results.append("mnist", record(), tmp_path)
    with open(tmp_path / "mnist.jsonl", "ab") as f:
        f.write(torn)
    assert len(results.read("mnist", tmp_path)) == 1
    results.append("mnist", record(seed=1), tmp_path)
    lines = (tmp_path / "mnist.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]


def test_a_last_line_that_only_lacks_its_end_is_kept(tmp_path):
    (tmp_path / "mnist.jsonl").write_text(json.dumps(record()))
    results.append("mnist", record(seed=1), tmp_path)
    assert [r["seed"] for r in results.read("mnist", tmp_path)] == [0, 1]


def _append_many(where, worker):
    for seed in range(40):
        results.append("mnist", record(method=str(worker), seed=seed, filler="x" * 5000), where)


def test_two_runs_at_once_do_not_corrupt_the_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(tmp_path, i)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines = (tmp_path / "mnist.jsonl").read_text().splitlines()
    assert len({(r["method"], r["seed"]) for r in map(json.loads, lines)}) == len(lines) == 80


def test_a_run_fills_in_what_is_missing_with_its_provenance(tmp_path):
    chosen = {"methods": ["LSH", "BioHash"], "hash_lengths": [2], "seeds": [0]}
    assert run("mnist", "mini", **chosen, where=tmp_path) == 2
    assert run("mnist", "mini", **chosen, where=tmp_path) == 0
    assert run("mnist", "mini", **{**chosen, "hash_lengths": [2, 4]}, where=tmp_path) == 2
    lsh, bio, *_ = results.read("mnist", tmp_path)
    assert bio["worst"] < bio["value"] < bio["best"] and bio["value"] > lsh["value"] + 10
    assert bio["params"]["activity"] == 0.05 and bio["n_units"] == 40 and bio["epochs"] >= 1
    provenance = {"data_sha256", "versions", "commit", "device", "threads", "date", "seconds", "peak_memory_mb"}
    assert provenance <= set(bio) and len(bio["data_sha256"]) == 64


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    command = [
        sys.executable,
        "-m",
        "biohash_mini.cli",
        "run",
        "mnist",
        "--profile",
        "mini",
        "--results",
        str(tmp_path),
    ]
    command += ["--methods", "LSH", "PCAHash", "--hash-lengths", "2", "4", "8", "--seeds", "0"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not results.read("mnist", tmp_path):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = results.read("mnist", tmp_path)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    after = results.read("mnist", tmp_path)
    assert len(after) == 6 and after[: len(before)] == before


@pytest.mark.parametrize(
    ("printed", "ours", "expected"),
    [
        (50, 50, "reproduced"),
        (50, 49, "reproduced"),
        (50, 60, "reproduced"),
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


def test_a_cell_registered_as_too_long_says_what_it_would_cost(tmp_path):
    entry = '[[too_long]]\nexperiment = "mnist"\nmethods = ["LSH"]\nhash_lengths = [64]\nreason = "two years"\n'
    (tmp_path / report.REGISTER).write_text(entry)
    found = {(c["method"], c["hash_length"]): c for c in report.cells(["mnist"], where=tmp_path)}
    assert (found["LSH", 64]["verdict"], found["LSH", 64]["reason"]) == ("too long", "two years")
    assert found["LSH", 32]["verdict"] == "missing"
    assert "too long" in report.table("mnist", where=tmp_path).loc["LSH", 64]


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
