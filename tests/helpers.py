"""What tests of several modules share: codes at random, a record of a measurement, waiting for other processes."""

import fcntl
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from biohash_mini.codes import Codes, DenseCodes, SparseCodes


def random_codes(kind: str, n: int, m: int, k: int, seed: int = 0) -> Codes:
    """Return n codes of m units: "sparse" with k of them on, or "dense" with each on by a coin."""
    rng = np.random.default_rng(seed)
    if kind == "sparse":
        return SparseCodes(rng.random((n, m)).argsort(1)[:, :k], m)
    return DenseCodes(np.packbits(rng.random((n, m)) < 0.5, axis=1), m)


def record(method: str = "LSH", hash_length: int = 2, value: float = 12.0, **more: object) -> dict:
    """Return a record as the results store has it, of one trial of the full profile."""
    key = {"profile": "full", "method": method, "hash_length": hash_length, "seed": 0, "value": value}
    about = {"versions": {"python": "3", "torch": "2"}, "commit": "abc<def", "machine": "m"}
    place = {"device": "cpu", "threads": 1, "date": "2026-01-02T03:04:05+00:00"}
    cost = {"seconds": 90.0, "peak_memory_mb": 10, "data_sha256": "0" * 64}
    return {**key, "best": 40.0, "worst": 5.0, **about, **place, **cost, **more}


def wait_for(condition: Callable, seconds: float = 120) -> Any:
    """Return what a condition gives once it holds; fail if it does not in so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.02)
    return found


def all_ended(held: Iterable[Path]) -> bool:
    """Return whether the processes that hold locks on these files have all ended."""
    for path in held:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True
