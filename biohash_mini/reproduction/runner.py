"""The runner that fills in what is missing of the declared tables.

Measuring a trial appends a line to ``results/NAME.jsonl``; what stands there is never measured again, so a run may be
killed at any moment and started anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from tqdm.auto import tqdm

from . import results
from .declarations import EXPERIMENTS
from .experiment import Experiment, Trial
from .measure import measure


def run(
    names: str | Iterable[str],
    profile: str = "mini",
    *,
    methods: Iterable[str] = (),
    hash_lengths: Iterable[int] = (),
    seeds: Iterable[int] = (),
    where: Path | None = None,
) -> int:
    """Measure the trials of experiments that are not recorded yet, record each at once, and return how many.

    ``methods`` (labels of rows, or methods), ``hash_lengths`` and ``seeds`` choose among the trials; empty means all.
    Trials of several experiments that the same fitted hasher serves follow one another, so that it is fitted once; so
    do the hash lengths of a method, which may share work.
    """
    experiments = [EXPERIMENTS[name] for name in ([names] if isinstance(names, str) else names)]
    labels, lengths, numbers = set(methods), set(hash_lengths), set(seeds)
    chosen = [
        (exp, trial)
        for exp in experiments
        for trial in exp.trials()
        if _named(exp, trial, labels)
        and (not lengths or trial.hash_length in lengths)
        and (not numbers or trial.seed in numbers)
    ]
    rows = [row for exp in experiments for row in exp.all_rows()]
    if unknown := labels - {name for row in rows for name in (row.label, row.method)}:
        raise ValueError(f"no row of {', '.join(e.name for e in experiments)} is called {', '.join(sorted(unknown))}")
    if experiments and not chosen:
        raise ValueError(f"no trial of {', '.join(e.name for e in experiments)} is among those asked for")
    works = {work: i for i, work in enumerate(dict.fromkeys(exp.work(trial.row) for exp, trial in chosen))}
    chosen.sort(key=lambda pair: (pair[1].seed, works[pair[0].work(pair[1].row)], pair[1].hash_length))
    measured = 0
    absent: dict[str, None] = {}  # a set in order
    results.provenance("cpu")  # of the code as it is now, whatever is edited meanwhile
    with tqdm(chosen, desc=f"{profile} profile", unit="trial") as bar:
        for exp, trial in bar:
            bar.set_postfix_str(f"{exp.name} {trial.row.label} k={trial.hash_length} seed={trial.seed}")
            try:
                measured += _record(exp, trial, profile, where)
            except FileNotFoundError as error:  # data that are not here; others may be
                absent[str(error)] = None
    if absent:
        raise FileNotFoundError("; ".join(absent))
    return measured


def _named(exp: Experiment, trial: Trial, labels: set[str]) -> bool:
    """Return whether a row is asked for: by its label, or by its method where no row has that label."""
    known = {row.label for row in exp.all_rows()}
    return not labels or trial.row.label in labels or trial.row.method in labels - known


def _record(exp: Experiment, trial: Trial, profile: str, where: Path | None) -> bool:
    """Measure and record a trial unless it is recorded already; return whether it was not."""
    key = {"profile": profile, "method": trial.row.label, "hash_length": trial.hash_length, "seed": trial.seed}
    if results.key_of(key) in {results.key_of(r) for r in results.read(exp.name, where)}:  # another run may be at work
        return False
    results.reset_peak_memory()
    start = time.perf_counter()
    fields = measure(exp, trial, profile)
    fields |= {"seconds": round(time.perf_counter() - start, 3), "peak_memory_mb": results.peak_memory()}
    record = {"schema": results.SCHEMA, "experiment": exp.name, **key, **fields}
    return results.append(exp.name, record | results.provenance(fields["device"]), where)
