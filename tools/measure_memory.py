"""Measure the peak memory of hashing a large mapped file: ``python tools/measure_memory.py [GIGABYTES]``.

A file of random vectors, 300 float32 each, is written to a temporary folder; then `biohash hash` fits BioHash to it and
encodes it, in a process of its own, whose largest resident size is printed.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DIMENSIONS, BLOCK = 300, 1 << 18  # of a vector; rows written at a time


def write_vectors(path: Path, gigabytes: float) -> int:
    """Write an .npy file of that size and return its number of rows."""
    n, rng = int(gigabytes * 1e9 / (4 * DIMENSIONS)), np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, DIMENSIONS))
    for start in range(0, n, BLOCK):
        X[start : start + BLOCK] = rng.standard_normal((min(BLOCK, n - start), DIMENSIONS), np.float32)
    X.flush()
    return n


def main(gigabytes: float = 6.0) -> None:
    """Print the rows, the seconds and the peak memory of fitting and encoding."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        n = write_vectors(path, gigabytes)
        files = ["--model", f"{folder}/model.safetensors", "--codes", f"{folder}/codes.safetensors"]
        options = ["--hash-length", "8", "--max-epochs", "1"]
        start = time.perf_counter()
        command = [sys.executable, "-m", "biohash_mini.cli", "hash", str(path), *options, *files]
        subprocess.run(command, check=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{n:,} vectors, {path.stat().st_size / 1e9:.1f} GB: {time.perf_counter() - start:.0f} s, {peak:.0f} MB")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
