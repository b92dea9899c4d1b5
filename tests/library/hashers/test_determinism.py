"""Equal seeds, equal codes: in two processes, and with one thread and two."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from biohash_mini import METHODS

#: Methods whose sums over many rows depend on the number of threads, and the share of bits that may then differ.
NEAR = dict.fromkeys(["DH", "UH-BNN", "GreedyHash"], 0.05)

_CHILD = """
import json, sys
import numpy as np, torch
torch.set_num_threads(int(sys.argv[1]))
from tests.library.hashers.contract import make
from biohash_mini import METHODS
X = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32) + 1
def bits(name):
    matrix = make(name, 8).fit(X).transform(X)
    return np.packbits(matrix if isinstance(matrix, np.ndarray) else matrix.toarray()).tobytes().hex()
print(json.dumps({name: bits(name) for name in METHODS}))
"""


def codes(threads):
    names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(threads)), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _CHILD, str(threads)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: np.frombuffer(bytes.fromhex(text), np.uint8) for name, text in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def runs():
    return codes(1), codes(1), codes(2)


@pytest.mark.slow
def test_two_processes_give_the_same_codes(runs):
    once, again, _ = runs
    assert [name for name in METHODS if not np.array_equal(once[name], again[name])] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_one_thread_and_two_give_the_same_codes_or_nearly(name, runs):
    once, _, two = runs
    differ = np.unpackbits(once[name] ^ two[name]).mean()
    assert differ <= NEAR.get(name, 0)
