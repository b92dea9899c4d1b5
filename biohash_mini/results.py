"""The results store: one JSON line per measured cell, appended safely, with its provenance."""

import contextlib
import fcntl
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import torch

PACKAGE = Path(__file__).parent
KEY = ("profile", "method", "hash_length", "seed")  # what makes a cell of an experiment unique


def folder() -> Path:
    """Return where results live: ``$BIOHASH_RESULTS``, else ``results`` here, in a parent or beside the package."""
    if named := os.environ.get("BIOHASH_RESULTS"):
        return Path(named)
    here = Path.cwd()
    found = (p / "results" for p in (here, *here.parents, PACKAGE.parent) if list((p / "results").glob("*.jsonl")))
    return next(found, here / "results")


def read(experiment: str, where: Path | None = None) -> list[dict]:
    """Return the records of an experiment, in the order they were written; a torn last line is passed over."""
    path = (where or folder()) / f"{experiment}.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [record for line in lines if (record := _parse(line)) is not None]


def append(experiment: str, record: dict, where: Path | None = None) -> bool:
    """Add one record as a line and return True, or False if its cell is there already.

    The file is locked meanwhile, so several runs may write to it; a line torn by a kill is cut off first.
    """
    where = where or folder()
    where.mkdir(parents=True, exist_ok=True)
    with _locked(where / f"{experiment}.jsonl") as f:
        done = {key_of(old) for line in f.read().splitlines() if (old := _parse(line)) is not None}
        if key_of(record) in done:
            return False
        f.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        f.flush()
        os.fsync(f.fileno())
        return True


def key_of(record: dict) -> tuple:
    """Return what identifies the cell of a record within its experiment."""
    return tuple(record[name] for name in KEY)


def _parse(line: bytes) -> dict | None:
    try:
        return json.loads(line)
    except ValueError:
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading and appending under an exclusive lock, its last line whole."""
    with open(path, "ab+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        text = f.read()
        if text and not text.endswith(b"\n"):
            start = text.rfind(b"\n") + 1
            if _parse(text[start:]) is None:
                f.truncate(start)
            else:
                f.write(b"\n")
        f.seek(0)
        yield f


@cache
def _about_the_machine() -> dict:
    packages = ("torch", "numpy", "scikit-learn", "numba", "faiss-cpu")
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    return {"versions": versions, "commit": _commit(), "machine": platform.machine()}


def _commit() -> str | None:
    """Return the commit that the package's code is at, marked if the code was changed since; None outside git."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=PACKAGE, capture_output=True, text=True, check=False).stdout.strip()

    head = git("rev-parse", "--short=12", "HEAD")
    return (f"{head}-dirty" if git("status", "--porcelain", "--", ".") else head) or None


def provenance(device: str) -> dict:
    """Return when, where and with what software something is measured."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**_about_the_machine(), "device": device, "threads": torch.get_num_threads(), "date": now}


def reset_peak_memory() -> None:
    """Start the measurement of :func:`peak_memory` anew, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Return the largest resident size of this process since :func:`reset_peak_memory`, in MB."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // 2**20
