"""The runner that fills in what is missing of the declared tables.

Measuring a trial appends a line to ``results/NAME.jsonl``; what stands there is never measured again, so a run may be
killed at any moment and started anew. A trial that another table has too is taken over from its line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any, NamedTuple

import numba
import torch
from tqdm.auto import tqdm

from . import results
from .declarations import EXPERIMENTS
from .experiment import Experiment, Row, Trial
from .measure import measure, work
from .workers import pool

_UNKNOWN = {"seconds": 30.0, "peak_memory_mb": 3000.0}  # what is expected of a row that was never measured


class Step(NamedTuple):
    """One trial as a process is told of it: names, which mean the same everywhere."""

    experiment: str
    label: str
    hash_length: int
    seed: int


Job = tuple[Step, ...]  # trials that share fitted hashers, or the stages before them


def run(
    names: str | Iterable[str],
    profile: str = "mini",
    *,
    methods: Iterable[str] = (),
    hash_lengths: Iterable[int] = (),
    seeds: Iterable[int] = (),
    where: Path | None = None,
    workers: int = 1,
) -> int:
    """Measure the trials of experiments that are not recorded yet, record each at once, and return how many.

    ``methods`` (labels of rows, or methods), ``hash_lengths`` and ``seeds`` choose among the trials; empty means all.
    Trials of several experiments that the same fitted hasher serves follow one another, so that it is fitted once; so
    do the hash lengths of a method, which may share work. With several ``workers`` such groups are measured side by
    side, where the memory that they took before allows it, each with its share of the cores.
    """
    experiments = [EXPERIMENTS[name] for name in ([names] if isinstance(names, str) else names)]
    jobs = _jobs(experiments, profile, set(methods), set(hash_lengths), set(seeds), where)
    before = {exp.name: [r for r in results.read(exp.name, where) if r["profile"] == profile] for exp in experiments}
    costs = {step: _expected("seconds", step, before) for job in jobs for step in job}
    workers = min(workers, max(1, len(jobs)))
    needs = {job: max(_expected("peak_memory_mb", step, before) for step in job) for job in jobs}
    measured, absent = 0, dict[str, None]()  # a set in order
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}"
    with tqdm(total=sum(costs.values()), desc=f"{profile} profile", bar_format=form) as bar:
        for step, new, missing in _outcomes(needs, profile, where, workers):
            measured += new
            absent |= dict.fromkeys(missing)
            bar.set_postfix_str(f"{step.experiment} {step.label} k={step.hash_length} seed={step.seed}", refresh=False)
            bar.update(costs[step])
    if absent:
        raise FileNotFoundError("; ".join(absent))
    return measured


def _jobs(
    experiments: list[Experiment],
    profile: str,
    labels: set[str],
    lengths: set[int],
    seeds: set[int],
    where: Path | None,
) -> list[Job]:
    """Return what is asked for and not recorded yet, first seeds first; ValueError if nothing can be meant."""
    rows = [row for exp in experiments for row in exp.all_rows()]
    if unknown := labels - {name for row in rows for name in (row.label, row.method)}:
        raise ValueError(f"no row of {', '.join(e.name for e in experiments)} is called {', '.join(sorted(unknown))}")
    groups: dict[tuple, list[Step]] = {}
    asked = 0
    for exp in experiments:
        known = {row.label for row in exp.all_rows()}
        done = {results.key_of(r) for r in results.read(exp.name, where)}
        for row, k, seed in exp.trials():
            named = not labels or row.label in labels or row.method in labels - known  # a label, else a method
            if named and (not lengths or k in lengths) and (not seeds or seed in seeds):
                asked += 1
                group = groups.setdefault((seed, work(exp, row)), [])
                if (profile, row.label, k, seed) not in done:
                    group.append(Step(exp.name, row.label, k, seed))
    if experiments and not asked:
        raise ValueError(f"no trial of {', '.join(e.name for e in experiments)} is among those asked for")
    in_order = sorted((key for key in groups if groups[key]), key=lambda key: key[0])
    return [tuple(sorted(groups[key], key=lambda step: step.hash_length)) for key in in_order]


def _outcomes(
    needs: dict[Job, float], profile: str, where: Path | None, workers: int
) -> Iterator[tuple[Step, bool, tuple[str, ...]]]:
    """Yield each step of the jobs, whose memory is given, once it is done, whether it was measured, what it lacked."""
    if workers == 1:
        _prepare(torch.get_num_threads())
        for job in needs:
            yield from _work_through(job, profile, where)
        return
    threads = max(1, (os.cpu_count() or 1) // workers)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20 * 0.9
    waiting, running = list(needs), dict[Future, Job]()
    with pool(workers, _prepare, threads) as executor:
        while waiting or running:
            taken = sum(needs[job] for job in running.values())
            fitting = (job for job in waiting if not running or taken + needs[job] <= memory)
            if len(running) < workers and (job := next(fitting, None)):
                waiting.remove(job)
                running[executor.submit(_all_of, job, profile, where)] = job
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                yield from future.result()


def _prepare(threads: int) -> None:
    """Take this many cores, and note the code as it is now, whatever is edited meanwhile."""
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    results.provenance("cpu")


def _all_of(job: Job, profile: str, where: Path | None) -> list[tuple[Step, bool, tuple[str, ...]]]:
    return list(_work_through(job, profile, where))


def _work_through(job: Job, profile: str, where: Path | None) -> Iterator[tuple[Step, bool, tuple[str, ...]]]:
    for step in job:
        exp = EXPERIMENTS[step.experiment]
        try:
            yield step, _record(exp, Trial(exp.row(step.label), step.hash_length, step.seed), profile, where), ()
        except FileNotFoundError as error:  # data that are not here; others may be
            yield step, False, (str(error),)


def _expected(field: str, step: Step, before: dict[str, list[Any]]) -> float:
    """Return what a field of the step's record will be, judged by the records of its row, nearest length first."""
    found = [r for r in before[step.experiment] if r["method"] == step.label and field in r]
    near = min(found, key=lambda r: abs(r["hash_length"] - step.hash_length), default=_UNKNOWN)
    return near[field]


def _record(exp: Experiment, trial: Trial, profile: str, where: Path | None) -> bool:
    """Measure and record a trial unless it is recorded already; return whether it was not."""
    key = {"profile": profile, "method": trial.row.label, "hash_length": trial.hash_length, "seed": trial.seed}
    if results.key_of(key) in {results.key_of(r) for r in results.read(exp.name, where)}:  # another run may be at work
        return False
    if taken := _recorded_elsewhere(exp, trial, profile, where):
        return results.append(exp.name, taken, where)
    results.reset_peak_memory()
    start = time.perf_counter()
    fields = measure(exp, trial, profile)
    fields |= {"seconds": round(time.perf_counter() - start, 3), "peak_memory_mb": results.peak_memory()}
    record = {"schema": results.SCHEMA, "experiment": exp.name, **key, **fields}
    return results.append(exp.name, record | results.provenance(fields["device"]), where)


def _recorded_elsewhere(exp: Experiment, trial: Trial, profile: str, where: Path | None) -> results.Record | None:
    """Return the record of this trial if another table measured it already; it took no time here."""
    wanted = _measurement(exp, trial.row)
    for other in EXPERIMENTS.values():
        rows = {row.label for row in other.all_rows() if _measurement(other, row) == wanted}
        if other is exp or not rows:
            continue
        for found in results.read(other.name, where):
            if found["method"] in rows and results.key_of(found) == (profile, found["method"], *trial[1:]):
                return {**found, "experiment": exp.name, "method": trial.row.label, "seconds": 0.0}
    return None


def _measurement(exp: Experiment, row: Row) -> tuple:
    """Return what two rows have in common if their records say the same."""
    return work(exp, row), row.queries, row.metric or exp.metric, exp.extras, row.extras
