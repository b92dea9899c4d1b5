"""Several processes learn what one learns, and go on after one of them was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from biohash_mini import BioHash, Codes, Hasher, load
from biohash_mini.codes import largest
from biohash_mini.plasticity import move_, pulls, step_, sums
from tests.library import together

ROOT = Path(__file__).parents[2]
RUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "x.npy"
    np.save(path, load("mnist").retrieval_task(seed=0).database[:301])
    return path


def start(processes, *words, **given):
    """Start a job of several processes, one thread each; what it says goes to pipes."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    argv = [*RUN, str(processes), *map(str, words)]
    return subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **given)


def finish(job):
    out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err
    return out


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_several_processes_learn_what_one_learns(processes, digits, tmp_path):
    finish(start(processes, together.__file__, digits, tmp_path))
    X = np.load(digits)
    for name, hasher in together.HASHERS.items():
        found, want = Hasher.load(tmp_path / f"{name}.model"), hasher.fit(X)
        torch.testing.assert_close(found.weights_, want.weights_, rtol=1e-4, atol=1e-5, msg=name)
        torch.testing.assert_close(found.mean_, want.mean_, rtol=1e-5, atol=1e-6)
        assert np.allclose(found.mean_norms_, want.mean_norms_) and found.n_samples_seen_ == len(X)
        assert Codes.load(tmp_path / f"{name}.codes") == found.encode(X)
        same = (found.encode(X).array == want.encode(X).array).all(1).mean()
        assert same > 0.99  # overlaps that are equal but for rounding may change places

    said = [(tmp_path / f"complaints of {rank}").read_text().splitlines() for rank in range(processes)]
    assert all(words == said[0] for words in said)  # though one process alone had seen it
    bad_row = len(X) * (processes - 1) // processes
    assert f"X[{bad_row}, 0] is NaN" in said[0][0]
    assert "is the checkpoint of another training" in said[0][1]
    assert "LSH does not learn in several processes" in said[0][2]
    assert "rows of 700 and of 784 numbers are no matrix" in said[0][3]
    assert "is the checkpoint of another training" in said[0][4]


def kill_a_worker(job, number, checkpoint):
    """Kill a process of a job once it has written a checkpoint, and return the one line that the other leaves."""
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    while (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before) and job.poll() is None:
        time.sleep(0.01)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    os.kill(int(children[number]), signal.SIGKILL)
    _, err = job.communicate(timeout=300)
    assert job.returncode != 0
    (line,) = [line for line in err.splitlines() if line.startswith("biohash: ")]
    return line


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
def test_after_a_worker_was_killed_the_same_command_goes_on_to_the_same_result(digits, tmp_path):
    def words(name, seconds=60):
        files = ["--model", tmp_path / name, "--codes", tmp_path / f"{name}.codes", "--checkpoint-seconds", seconds]
        return ["-m", "biohash_mini.cli", "hash", digits, "--hash-length", "4", "--max-epochs", "60", *files]

    checkpoint = tmp_path / "model.checkpoint"
    for number in (0, 1):
        line = kill_a_worker(start(2, *words("model", 0)), number, checkpoint)
        assert "training ended at step" in line
        assert line.endswith(f"{checkpoint} is kept, and the same command goes on from it")
        assert checkpoint.exists() and not (tmp_path / "model").exists()
    for name in ("model", "never killed"):
        assert "301 codes" in finish(start(2, *words(name)))
    assert not checkpoint.exists()
    found, want = (Hasher.load(tmp_path / name) for name in ("model", "never killed"))
    assert torch.equal(found.weights_, want.weights_) and found.mean_norms_ == want.mean_norms_
    assert Codes.load(tmp_path / "model.codes") == Codes.load(tmp_path / "never killed.codes")


@pytest.mark.parametrize("delta", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["max", "mean", "implicit"])
def test_a_step_asks_nothing_of_the_host(reduction, delta):
    X, W = torch.empty(50, 12, device="meta"), torch.empty(30, 12, device="meta")  # shapes without numbers
    step_(W, X, 0.1, p=3.0, anti_rank=2, delta=delta, reduction=reduction)
    own, x, s = pulls(X, W, p=2.0, anti_rank=2, delta=delta)
    moved = torch.arange(30, device="meta")
    parts = sums(x, s, own, 30)
    assert [tuple(part.shape) for part in parts] == [(30, 12), (30, 1), (30, 1)]
    move_(W, moved, moved, *parts, 0.1, reduction)
    assert W.is_meta


def test_codes_are_made_without_asking_the_host():
    hasher = BioHash(4)
    hasher.weights_ = torch.empty(80, 12, device="meta")
    units, tied = largest(hasher._activations(torch.empty(50, 12, device="meta")), 4)
    assert units.shape == (50, 4) and tied.shape == (50,) and units.is_meta and tied.is_meta
    with pytest.raises(RuntimeError):  # this device does notice
        tied.any().item()
