import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest

from biohash_mini.reproduction import results, runner
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.runner import run


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


def test_runs_side_by_side_record_what_one_run_would(tmp_path):
    chosen = {"methods": ["LSH", "PCAHash", "ITQ"], "hash_lengths": [2, 4], "seeds": [0]}
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert run("mnist", "mini", **chosen, where=alone) == run("mnist", "mini", **chosen, where=together, workers=2) == 6
    scores = [{results.key_of(r): r["value"] for r in results.read("mnist", folder)} for folder in (alone, together)]
    assert scores[0] == scores[1]
    assert run("mnist", "mini", **chosen, where=together, workers=2) == 0


def test_work_that_does_not_fit_beside_other_work_waits_for_it(monkeypatch):
    big, small = (runner.Step("mnist", label, 2, 0) for label in ("DH", "LSH"))
    started: list = []

    class Pool:
        def __init__(self, *given): ...
        def __enter__(self):
            return self

        def __exit__(self, *given): ...
        def submit(self, work, job, *given):
            started.append(job)
            future = Future()
            future.set_result([(step, True, ()) for step in job])
            return future

    monkeypatch.setattr(runner, "pool", Pool)
    monkeypatch.setattr(runner, "wait", lambda running, **given: SimpleNamespace(done=list(running)[:1]))
    needs = {(big,): 1e9, (big, big): 1e9, (small,): 1.0}  # MB: no two of the first fit together
    assert len(list(runner._outcomes(needs, "mini", None, workers=2))) == 4
    assert started == [(big,), (big, big), (small,)]


def test_the_memory_and_time_of_a_row_are_expected_from_its_records():
    lines = [{"method": "LSH", "hash_length": k, "seconds": 10.0 * k, "peak_memory_mb": k} for k in (2, 32)]
    step = runner.Step("mnist", "LSH", 16, 1)
    assert runner._expected("seconds", step, {"mnist": lines}) == 20.0
    assert runner._expected("peak_memory_mb", step._replace(hash_length=64), {"mnist": lines}) == 32
    assert runner._expected("seconds", step._replace(label="SH"), {"mnist": lines}) == runner._UNKNOWN["seconds"]


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


def test_a_trial_that_another_table_has_is_taken_over(tmp_path, monkeypatch):
    row = dict(methods=["LSH"], hash_lengths=[2], seeds=[0])
    first, second = (replace(EXPERIMENTS["mnist"], name=name) for name in ("first", "second"))
    longer = replace(first, name="longer", extras=(lambda outcome: {"more": 1},))
    monkeypatch.setattr(runner, "EXPERIMENTS", {exp.name: exp for exp in (first, second, longer)})
    assert run(["first"], "mini", **row, where=tmp_path) == 1
    monkeypatch.setattr(runner, "measure", None)
    assert run(["second"], "mini", **row, where=tmp_path) == 1
    (before,), (after,) = results.read("first", tmp_path), results.read("second", tmp_path)
    assert after == {**before, "experiment": "second", "seconds": 0.0}
    with pytest.raises(TypeError):  # its records say more, so it has to be measured
        run(["longer"], "mini", **row, where=tmp_path)
