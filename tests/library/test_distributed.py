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

from biohash_mini import Codes, Hasher, load
from biohash_mini.cli import main
from biohash_mini.plasticity import move_, overlaps, step_, unit_sums
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


def workers(job):
    """Return the processes of a job, in the order of their numbers."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_worker_leaves_a_checkpoint_that_the_same_command_goes_on_from(killed, digits, tmp_path):
    def words(name):
        files = ["--model", tmp_path / name, "--codes", tmp_path / f"{name}.codes", "--checkpoint-seconds", "0"]
        return ["-m", "biohash_mini.cli", "hash", digits, "--hash-length", "4", "--max-epochs", "100", *files]

    finish(start(2, *words("whole")))
    job, checkpoint = start(2, *words("model")), tmp_path / "model.checkpoint"
    while not checkpoint.exists() and job.poll() is None:
        time.sleep(0.01)
    os.kill(workers(job)[killed], signal.SIGKILL)
    _, err = job.communicate(timeout=120)
    assert job.returncode != 0
    (line,) = [line for line in err.splitlines() if line.startswith("biohash: ")]
    assert "training ended at step" in line and line.endswith(f"{checkpoint} is kept, and the same command goes on from it")
    assert checkpoint.exists() and not (tmp_path / "model").exists()

    assert "301 codes" in finish(start(2, *words("model")))
    found, want = Hasher.load(tmp_path / "model"), Hasher.load(tmp_path / "whole")
    assert torch.equal(found.weights_, want.weights_) and found.mean_norms_ == want.mean_norms_
    assert Codes.load(tmp_path / "model.codes") == Codes.load(tmp_path / "whole.codes")
    assert not checkpoint.exists()
