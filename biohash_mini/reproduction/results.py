"""The results store: one JSON line per trial, appended safely, with its provenance."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd
import torch

from ..inputs import is_number, is_whole

try:
    import fcntl
except ImportError:  # a system without it, where one run at a time may write
    fcntl = None

PACKAGE = Path(__file__).parent.parent
KEY = ("profile", "method", "hash_length", "seed")  # what makes a trial of an experiment unique
SCHEMA = 2  # lines that do not say so are of schema 1: no name of the hasher, and only the parameters it then had


class Record(TypedDict, total=False):
    """One line of a results file; beside these fields it has those that the experiment's extras give."""

    schema: int
    experiment: str
    profile: str  # "mini" or "full"
    method: str  # label of the row
    hash_length: int
    seed: int
    value: float  # in the unit of the table, percent or seconds
    best: float | None  # bounds over tie orders, in the same unit
    worst: float | None
    hasher: str  # class of the method
    params: dict  # of the hasher
    n_units: int
    bits_per_item: int
    data_sha256: str
    epochs: int  # passes of training, and the mean norm of the units after the last, of methods that have them
    mean_norm: float
    filter_norms: list[float]  # median and largest, of a convolution
    seconds_filters: float
    seconds_features: float
    seconds_fit: float
    seconds_encode: float
    seconds: float  # of the whole trial
    peak_memory_mb: int
    versions: dict[str, str]  # of Python and the packages
    commit: str | None  # of the package's code, marked if it was changed since
    machine: str
    device: str
    threads: int
    date: str


_KINDS: dict[str, Any] = {"int": is_whole, "float": is_number}
_KINDS |= {kind.__name__: lambda value, kind=kind: isinstance(value, kind) for kind in (str, dict, list)}
_FIELDS = {name: getattr(kind, "__forward_arg__", kind) for name, kind in Record.__annotations__.items()}
_TYPES = {"int": "int64", "float": "float64", "float | None": "float64"}


def folder() -> Path:
    """Return where results live: ``$BIOHASH_RESULTS``, else ``results`` here, in a parent or beside the package."""
    if named := os.environ.get("BIOHASH_RESULTS"):
        return Path(named)
    here = Path.cwd()
    found = (p / "results" for p in (here, *here.parents, PACKAGE.parent) if list((p / "results").glob("*.jsonl")))
    return next(found, here / "results")


def read(experiment: str, where: Path | None = None) -> list[Record]:
    """Return the records of an experiment, in the order they were written; a torn last line is passed over.

    So is, with a warning that has its number, a line that is no record, or that repeats the trial of an earlier one.
    """
    path = (where or folder()) / f"{experiment}.jsonl"
    return _records(path, path.read_bytes().splitlines(keepends=True)) if path.exists() else []


def _records(path: Path, lines: list[bytes]) -> list[Record]:
    found: dict[tuple, Record] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = _checked(json.loads(line))
            if key_of(record) in found:
                raise ValueError(f"it repeats the trial {key_of(record)} of an earlier line")
            found[key_of(record)] = record
        except (ValueError, RecursionError) as error:
            if line.endswith(b"\n"):  # else a line torn by a kill, or one that is being written
                warnings.warn(f"{path}, line {number} is passed over: {error}", stacklevel=3)
    return list(found.values())


def line(experiment: str, number: int, where: Path | None = None) -> Record:
    """Return the record of a line, counted from 1; ValueError if there is none."""
    path = (where or folder()) / f"{experiment}.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    if not 1 <= number <= len(lines):
        raise ValueError(f"{path} has {len(lines)} lines, and so no line {number}")
    try:
        return _checked(json.loads(lines[number - 1]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number} is no record: {error}") from None


def _checked(record: Any) -> Record:
    """Return the record if it says what was measured, in the right types; ValueError names the field that does not."""
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")
    for name in (name for name in _FIELDS if name in record or name in (*KEY, "value")):
        value, kind = record.get(name), _FIELDS[name]
        may_lack = value is None and kind.endswith("| None")
        if not may_lack and not _KINDS[kind.split(" | ")[0].partition("[")[0]](value):
            raise ValueError(f"{name} is {value!r:.100}")
    return record  # type: ignore[return-value]


def frame(experiment: str, profile: str | None = "full", where: Path | None = None) -> pd.DataFrame:
    """Return the records of an experiment as a frame, a row per record and a column per field.

    ``profile`` chooses among them; None takes all.
    """
    records = pd.DataFrame(read(experiment, where))
    if records.empty:
        return pd.DataFrame({name: pd.Series(dtype=_TYPES.get(kind, object)) for name, kind in _FIELDS.items()})
    return records if profile is None else records[records["profile"] == profile].reset_index(drop=True)


def append(experiment: str, record: Mapping[str, Any], where: Path | None = None) -> bool:
    """Add one record as a line and return True, or False if its trial is there already.

    The file is locked meanwhile, so several runs may write to it; a line torn by a kill is cut off first.
    """
    where = where or folder()
    where.mkdir(parents=True, exist_ok=True)
    with open(where / f"{experiment}.jsonl", "ab+") as f:
        if fcntl:
            fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        lines = f.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            if _is_json(lines[-1]):
                f.write(b"\n")
            else:
                f.truncate(sum(map(len, lines[:-1])))
        if key_of(record) in map(key_of, _records(Path(f.name), lines)):
            return False
        f.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        f.flush()
        os.fsync(f.fileno())
        return True


def key_of(record: Mapping[str, Any]) -> tuple:
    """Return what identifies the trial of a record within its experiment."""
    return tuple(record[name] for name in KEY)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@cache
def _about_the_machine() -> dict:
    packages = ("torch", "numpy", "scikit-learn", "numba", "faiss-cpu")
    versions = {"python": platform.python_version()}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {"versions": versions, "commit": _commit(), "machine": platform.machine()}


def _git(*words: str) -> str:
    with contextlib.suppress(OSError):  # there may be no git
        run = subprocess.run(["git", *words], cwd=PACKAGE, capture_output=True, text=True, check=False)
        return run.stdout.strip()
    return ""


def _commit() -> str | None:
    """Return the commit that the package's code is at, marked if the code was changed since; None outside git."""
    if not _git("ls-files", "__init__.py"):  # installed inside another repository
        return None
    head = _git("rev-parse", "--short=12", "HEAD")
    return (f"{head}-dirty" if _git("status", "--porcelain", "--", ".") else head) or None


def provenance(device: str) -> dict:
    """Return when, where and with what software something is measured."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**_about_the_machine(), "device": device, "threads": torch.get_num_threads(), "date": now}


def reset_peak_memory() -> None:
    """Start the measurement of :func:`peak_memory` anew, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "utf-8")


def peak_memory() -> int:
    """Return the largest resident size of this process since :func:`reset_peak_memory`, in MB."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    import resource  # on a system without /proc; kilobytes on Linux, bytes elsewhere

    unit = 1024 if platform.system() == "Linux" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // 2**20
