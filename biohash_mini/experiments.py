"""The runner that fills in what is missing of the declared tables.

A cell is one method at one hash length with one seed. Measuring it appends a line to ``results/NAME.jsonl``; what
stands there is never measured again, so a run may be killed at any moment and started anew.
"""

import time
from collections.abc import Iterable
from pathlib import Path

from tqdm.auto import tqdm

from . import results
from .measures import Cell
from .tables import EXPERIMENTS, Experiment

__all__ = ["EXPERIMENTS", "Experiment", "run"]


def run(
    names: str | Iterable[str],
    profile: str = "mini",
    *,
    methods: Iterable[str] = (),
    hash_lengths: Iterable[int] = (),
    seeds: Iterable[int] = (),
    where: Path | None = None,
) -> int:
    """Measure the cells of experiments that are not recorded yet, record each at once, and return how many.

    ``methods``, ``hash_lengths`` and ``seeds`` choose among the cells; empty means all. Cells of several experiments
    that need the same fitted hasher follow one another, so that it is fitted once; so do the hash lengths of a method,
    which may share work.
    """
    wanted = tuple(map(set, (methods, hash_lengths, seeds)))
    chosen = [
        (exp, cell)
        for exp in map(EXPERIMENTS.__getitem__, [names] if isinstance(names, str) else names)
        for cell in exp.cells()
        if all(not these or has in these for these, has in zip(wanted, cell, strict=True))
    ]
    rank = {method: i for i, method in enumerate(dict.fromkeys(cell.method for _, cell in chosen))}
    chosen.sort(key=lambda pair: (pair[1].seed, rank[pair[1].method], pair[1].hash_length))
    measured = 0
    with tqdm(chosen, desc=f"{profile} profile", unit="cell") as bar:
        for exp, cell in bar:
            bar.set_postfix_str(f"{exp.name} {cell.method} k={cell.hash_length} seed={cell.seed}")
            measured += _record(exp, cell, profile, where)
    return measured


def _record(exp: Experiment, cell: Cell, profile: str, where: Path | None) -> bool:
    """Measure and record a cell unless it is recorded already; return whether it was not."""
    done = {results.key_of(r) for r in results.read(exp.name, where)}  # read anew: another run may be at work
    if {(profile, row, cell.hash_length, cell.seed) for row in exp.rows(cell.method)} <= done:
        return False
    results.reset_peak_memory()
    start = time.perf_counter()
    for row, values in exp.measure(exp, cell, profile).items():
        key = {"experiment": exp.name, "profile": profile, "method": row}
        record = key | {"hash_length": cell.hash_length, "seed": cell.seed} | values
        record |= {"seconds": round(time.perf_counter() - start, 3), "peak_memory_mb": results.peak_memory()}
        results.append(exp.name, record | results.provenance(values["device"]), where)
    return True
