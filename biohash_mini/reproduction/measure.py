"""The one path by which every trial of every table is measured: task, fitted hasher, codes, metric."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from ..codes import Codes
from ..datasets import Task
from ..hashers import METHODS, Hasher
from .experiment import LENGTHS, Experiment, Row, Trial
from .protocols import with_inputs


@dataclass(frozen=True, eq=False)
class Hashed:
    """A fitted hasher, its codes of a task, and what that took."""

    hasher: Hasher
    queries: Codes
    database: Codes
    facts: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a metric sees of a trial."""

    row: Row
    hash_length: int
    seed: int
    data: str
    profile: str
    task: Task
    hasher: Hasher  #: fitted
    queries: Codes  #: codes of the task's queries
    database: Codes
    asked: Codes  #: codes of what is asked, the task's queries unless the row has others
    facts: dict[str, Any]  #: parameters, sizes, seconds


def measure(exp: Experiment, trial: Trial, profile: str) -> dict[str, Any]:
    """Return the fields of a trial's record: those of its metric, of the extras, and what fitting and encoding took."""
    row, k, seed = trial
    data = row.data or exp.data
    task = (row.task or exp.task)(data, profile, seed)
    if row.inputs is not None:
        task = with_inputs(task, row.inputs)
    h = hashed(row, k, seed, task)
    found = Outcome(row, k, seed, data, profile, task, h.hasher, h.queries, h.database, h.queries, h.facts)
    if row.queries is not None:
        found = replace(found, asked=h.hasher.encode(row.queries(found), k))
    fields: dict[str, Any] = {}
    for score in (row.metric or exp.metric, *exp.extras, *row.extras):
        fields |= score(found)
    return fields | h.facts


def hashed(row: Row, hash_length: int, seed: int, task: Task) -> Hashed:
    """Return the codes of a row on a task; the last fit is kept, so that other tables and columns need not repeat it.

    Where one layer serves every column, the codes of all of them are made in one pass.
    """
    method = METHODS[row.method]
    shared = row.fit_length is not None or method.one_layer
    lengths = tuple(sorted({hash_length, *LENGTHS})) if shared else (hash_length,)
    return _hashed(method, _params(row, seed), row.fit_length or lengths[0], lengths, task, row.amend)[hash_length]


def work(exp: Experiment, row: Row) -> tuple:
    """Return what two rows have in common if the same fitted hashers serve both, in one table or in two."""
    data, task = row.data or exp.data, row.task or exp.task
    return data, task, row.method, _params(row), row.fit_length, row.inputs, row.amend


def _params(row: Row, seed: int = 0) -> tuple:
    """Return the parameters of a row's hasher, those left to their default too, less the hash length."""
    params = METHODS[row.method](**{**row.params, "seed": seed}).get_params()
    return tuple(sorted((name, value) for name, value in params.items() if name != "hash_length"))


def hash_task(hasher: Hasher, task: Task, amend: Callable[[Hasher], None] | None = None) -> Hashed:
    """Return the hasher fitted to a task, and amended if so wished, with the codes of queries and database."""
    return _hash(hasher, task, [hasher.hash_length], amend)[hasher.hash_length]


def keep_last(function: Callable) -> Callable:
    """Return the function with a memory of its last result, which it lets go before it computes another."""
    last: dict = {}

    @wraps(function)
    def remembering(*args: object, **kwargs: object) -> object:
        key = args, tuple(sorted(kwargs.items()))
        if key not in last:
            last.clear()
            last[key] = function(*args, **kwargs)
        return last[key]

    return remembering


@keep_last
def _hashed(
    method: type[Hasher], params: tuple, fit_length: int, lengths: tuple[int, ...], task: Task, amend: Callable | None
) -> dict[int, Hashed]:
    return _hash(method(fit_length, **dict(params)), task, lengths, amend)


def _hash(hasher: Hasher, task: Task, lengths: Iterable[int], amend: Callable | None) -> dict[int, Hashed]:
    """Return the codes of a task at those of the lengths that the fitted hasher has units for."""
    before = {name: v for name, v in hasher.get_params().items() if name not in hasher.layer_params}
    stage, queries, database, took = _before_the_layer(type(hasher), tuple(sorted(before.items())), task)
    hasher.share_features(stage)
    start = time.perf_counter()
    hasher.fit_layer(database if task.train is task.database else hasher.features(task.train))
    if amend is not None:
        amend(hasher)
    fitted = time.perf_counter()
    possible = [k for k in lengths if not hasher.free_length or k <= hasher.n_units]
    asked, searched = (hasher.encode_features(rows, possible) for rows in (queries, database))
    took = {"seconds_fit": fitted - start, "seconds_encode": time.perf_counter() - fitted} | took
    return {k: Hashed(hasher, asked[k], searched[k], _facts(hasher, k, searched[k], task, took)) for k in possible}


@keep_last
def _before_the_layer(method: type[Hasher], params: tuple, task: Task) -> tuple[Hasher, Any, Any, dict[str, float]]:
    """Return a hasher with what it learns before its layer, what the layer reads of queries and database, the seconds.

    It is kept for other layers on the same features; most methods learn nothing there and read the rows themselves.
    """
    start = time.perf_counter()
    hasher = method(**dict(params)).fit_features(task.train)
    learned = time.perf_counter()
    read = hasher.features(task.queries), hasher.features(task.database)
    took = {"seconds_filters": learned - start, "seconds_features": time.perf_counter() - learned}
    return hasher, *read, took if method.layer_params else {}


def _facts(hasher: Hasher, k: int, database: Codes, task: Task, took: Mapping[str, float]) -> dict[str, Any]:
    """Return what a record says of a fitted hasher."""
    params = {**hasher.get_params(), "hash_length": k}
    if "activity" in params and k != hasher.hash_length:  # one layer serves several lengths
        params["activity"] = k / database.n_units
    return {
        "hasher": type(hasher).__name__,
        "params": params,
        "device": str(hasher.mean_.device),
        "n_units": database.n_units,
        "bits_per_item": database.bits_per_item,
        "data_sha256": task.sha256,
        **hasher.training_facts(),
        **{stage: round(seconds, 3) for stage, seconds in took.items()},
    }


def in_percent(value: float, best: float | None = None, worst: float | None = None) -> dict[str, float | None]:
    """Return a measured fraction, and its bounds over tie orders, as fields of a record, in percent."""
    fields = {"value": value, "best": best, "worst": worst}
    return {name: None if v is None else percent(v) for name, v in fields.items()}


def percent(value: float) -> float:
    """Return a fraction in percent, as records keep it."""
    return round(100 * float(value), 4)
