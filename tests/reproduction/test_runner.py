import os
import signal
import subprocess
import sys
import time

from biohash_mini.reproduction import results
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
