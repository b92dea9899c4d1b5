"""Recorded trials measured once more, from what their own lines say, and compared with what stands there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..datasets import FEATURES
from ..hashers import METHODS
from . import results
from .declarations import EXPERIMENTS
from .experiment import Experiment, Row, Trial
from .measure import measure

#: Fields that another run may change: where, when and how fast.
_FREE = {"device", "peak_memory_mb", "machine", "threads", "date", "commit", "versions", "schema", "params", "hasher"}


class Rerun(NamedTuple):
    """A recorded trial and what came of it now."""

    experiment: str
    line: int
    before: Mapping[str, Any]  #: the record
    now: Mapping[str, Any]  #: its fields, measured anew

    def differences(self, tolerance: float = 0.0) -> dict[str, tuple]:
        """Return the fields that differ, each as it was and as it is; numbers may differ by the tolerance."""
        seconds = {"value"} if EXPERIMENTS[self.experiment].unit == "s" else set()
        names = [n for n in self.before if n in self.now and n not in _FREE | seconds and not n.startswith("seconds")]
        pairs = {name: (self.before[name], self.now[name]) for name in names}
        return {name: pair for name, pair in pairs.items() if not _alike(*pair, tolerance)}

    def __str__(self) -> str:
        k, seed = self.before["hash_length"], self.before["seed"]
        both = ", ".join(f"{r['value']} ({_bounds(r)})" for r in (self.before, self.now))
        return f"{self.experiment}, line {self.line}: {self.before['method']}, k = {k}, seed {seed}: {both}"


def _alike(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= tolerance
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def _bounds(record: Mapping[str, Any]) -> str:
    return "no bounds" if record.get("best") is None else f"{record['worst']} to {record['best']} over tie orders"


def rerun(experiment: str, line: int, where: Path | None = None) -> Rerun:
    """Measure the trial of a line, counted from 1, with the parameters, the seed and the profile that it names.

    What a line of an early schema does not say is taken from the row as it is declared now.
    """
    record = results.line(experiment, line, where)
    exp = EXPERIMENTS[experiment]
    rows = {row.label: row for row in exp.all_rows()}
    if record["method"] not in rows:
        raise ValueError(f"no row of {experiment} is called {record['method']} any more")
    row = _as_recorded(rows[record["method"]], record)
    now = measure(_alone(exp, row), Trial(row, record["hash_length"], record["seed"]), record["profile"])
    return Rerun(experiment, line, record, json.loads(json.dumps(now)))


def _alone(exp: Experiment, row: Row) -> Experiment:
    return replace(exp, rows=(row,))


def _as_recorded(row: Row, record: Mapping[str, Any]) -> Row:
    """Return the row with the parameters of a record, those of one layer for all lengths left as they are declared."""
    known = METHODS[row.method]().get_params()
    said = {name: value for name, value in record.get("params", {}).items() if name in known}
    for name in ("hash_length", "seed", "device", "verbose"):
        said.pop(name, None)
    if row.fit_length is not None or METHODS[row.method].one_layer:
        said.pop("activity", None)  # that of the column, not of the layer
    params = {name: tuple(v) if isinstance(v, list) else v for name, v in said.items()}
    return replace(row, params={**row.params, **params})


def choose(count: int, most: float, seed: int = 0, where: Path | None = None) -> list[tuple[str, int]]:
    """Return random lines, experiment and number, of trials that took at most so many seconds on data to be fetched."""
    found = []
    for name, exp in EXPERIMENTS.items():
        labels = {row.label for row in exp.all_rows() if (row.data or exp.data) not in FEATURES}
        path = (where or results.folder()) / f"{name}.jsonl"
        for number, _ in enumerate(path.read_bytes().splitlines() if path.exists() else [], 1):
            try:
                record = results.line(name, number, where)
            except ValueError:  # a reader of the file warns of it
                continue
            if record["method"] in labels and record.get("seconds", most + 1) <= most:
                found.append((name, number))
    if not found:
        raise ValueError(f"no recorded trial that can be repeated took at most {most:g} s")
    return random.Random(seed).sample(found, min(count, len(found)))


def print_reruns(lines: Iterable[tuple[str, int]], tolerance: float = 0.0, where: Path | None = None) -> int:
    """Measure trials again, print each as it was and as it is, and return how many differ."""
    different = 0
    for name, line in lines:
        again = rerun(name, line, where)
        differ = again.differences(tolerance)
        different += bool(differ)
        print(f"{again}: {'differ' if differ else 'equal'}", flush=True)
        for field, (before, now) in differ.items():
            print(f"  {field}: {before} recorded, {now} now")
    return different
