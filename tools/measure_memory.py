"""Measure the peak memory of hashing a large mapped file: ``python tools/measure_memory.py [GIGABYTES]``.

A file of random vectors, 300 float32 each, is written to a temporary folder; then `biohash hash` fits BioHash to it and
encodes it, in a process of its own, whose largest resident size is printed.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_CHILD = """
import sys
from biohash_mini.cli import main
from biohash_mini.reproduction.results import peak_memory
main(sys.argv[1:])
print(peak_memory())
"""
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
        words = ["hash", str(path), "--hash-length", "8", "--max-epochs", "1", *files]
        start = time.perf_counter()
        output = subprocess.run([sys.executable, "-c", _CHILD, *words], check=True, capture_output=True, text=True)
        peak = int(output.stdout.split()[-1])
        print(f"{n:,} vectors, {path.stat().st_size / 1e9:.1f} GB: {time.perf_counter() - start:.0f} s, {peak} MB")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
