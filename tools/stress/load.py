"""Load: many codes in stated memory, long streams in constant memory, single queries in steady time.

``python -m tools.stress.load NAME SHORT`` measures one of them in a process of its own and prints it as JSON.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from biohash_mini import BioHash, HammingIndex
from biohash_mini.codes import DenseCodes, SparseCodes
from biohash_mini.reproduction.results import peak_memory, reset_peak_memory

from . import Tally

BUDGET = 400  # MB above what the imports take, for a million codes of either kind, their index and a search
GROWTH = 8  # MB that a stream may add after its first quarter, for what allocators keep
STEADY = {"p95": 3.0, "p99": 6.0}  # largest ratios to the median of the latency of a single query


def _codes(n: int, sparse: bool) -> SparseCodes | DenseCodes:
    """Return n random codes: 16 of 3,200 units on, made 16 at a time from runs of 200, or 64 bits."""
    rng = np.random.default_rng(0)
    if sparse:
        return SparseCodes(rng.integers(0, 200, (n, 16), np.uint16) + 200 * np.arange(16, dtype=np.uint16), 3200)
    return DenseCodes(rng.integers(0, 256, (n, 8), np.uint8), 64)


def million(short: bool) -> dict[str, float]:
    """Return the peak memory of indexing and searching a million codes, sparse and dense, in MB above the imports."""
    n = 50_000 if short else 1_000_000
    for sparse in (False, True):
        warm = HammingIndex(_codes(2000, sparse))
        warm.search(warm.codes[:9], 10)  # compiles the kernels
    del warm
    gc.collect()
    facts, before = {"codes": float(n)}, _resident()
    for sparse in (False, True):
        reset_peak_memory()
        codes = _codes(n, sparse)
        asked = codes[:: n // 200]
        distances, ids = HammingIndex(codes).search(asked, 100)
        if not (distances[:, 0] == 0).all() or not (np.diff(distances.astype(int)) >= 0).all() or (ids >= n).any():
            raise AssertionError("a code does not find itself")
        facts["sparse_mb" if sparse else "dense_mb"] = round(peak_memory() - before)
        del codes, asked
    return facts


def _resident() -> float:
    """Return the resident size of this process in MB."""
    line = next(s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def stream(short: bool) -> dict[str, float]:
    """Return by how many MB a process grows in the last three quarters of a long ``partial_fit``."""
    batches, rng = 200 if short else 4000, np.random.default_rng(0)
    hasher = BioHash(8, activity=0.05)
    for i in range(batches):
        hasher.partial_fit(rng.normal(size=(100, 64)).astype(np.float32))
        if i == batches // 4:
            gc.collect()
            before = _resident()
    gc.collect()
    return {"batches": batches, "growth_mb": round(max(0.0, _resident() - before), 1)}


def single(short: bool) -> dict[str, float]:
    """Return percentiles of the latency of single queries, as ratios to the median.

    They are those of the time spent computing; by the wall clock, other processes that held the machine count too.
    """
    n, times = (20_000, 500) if short else (200_000, 10_000)
    codes = _codes(n, True)
    index, queries = HammingIndex(codes), [codes[i] for i in range(200)]
    for query in queries:
        index.search(query, 10)
    taken = np.empty((2, times))
    gc.collect()
    for i in range(times):
        start = time.thread_time(), time.perf_counter()
        index.search(queries[i % 200], 10)
        taken[:, i] = time.thread_time() - start[0], time.perf_counter() - start[1]
    facts: dict[str, float] = {"queries": times, "codes": n}
    for clock, seconds in zip(("", "_wall"), taken, strict=True):
        middle, *high = np.percentile(seconds, [50, 95, 99, 99.9])
        facts[f"median_us{clock}"] = round(1e6 * float(middle))
        facts |= {f"{p}{clock}": round(float(v / middle), 2) for p, v in zip(("p95", "p99", "p999"), high, strict=True)}
    return facts


MEASURES: dict[str, tuple[Callable[[bool], dict[str, float]], dict[str, float]]] = {
    "a million codes in memory": (million, {"sparse_mb": BUDGET, "dense_mb": BUDGET}),
    "a long stream": (stream, {"growth_mb": GROWTH}),
    "single queries": (single, STEADY),
}


def campaign(short: bool) -> Iterator[Tally]:
    """Yield what was measured; each limit is a case that holds or not."""
    for name, (_, limits) in MEASURES.items():
        command = [sys.executable, "-m", "tools.stress.load", name, str(int(short))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        tally = Tally("load", name)
        if done.returncode:
            tally.count(done.stderr.strip()[-300:])
        else:
            tally.facts = json.loads(done.stdout.splitlines()[-1])
            for fact, most in limits.items():
                found = tally.facts[fact]
                tally.count("" if found <= most or short else f"{fact} is {found}, more than {most}")
        yield tally


if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]][0](sys.argv[2] == "1")))
