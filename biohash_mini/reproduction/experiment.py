"""What a table is, as data: rows, hash lengths, seeds, a task, a metric. Nothing of the package is imported here.

A *row* is a method with its parameters; a *cell* is a row at one hash length; a *trial* is a cell with one seed, which
is what is measured at a time and makes one line of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

LENGTHS = (2, 4, 8, 16, 32, 64)  # the hash lengths of the paper's widest tables


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a table: a method, its parameters, and what is done to inputs, task or fitted hasher."""

    label: str  #: its name in the table and in the results
    method: str  #: name in :data:`~biohash_mini.hashers.METHODS`
    params: Mapping[str, Any] = field(default_factory=dict)  #: of the hasher, beside hash length and seed
    hash_lengths: tuple[int, ...] | None = None  #: columns that it has, by default all of the experiment
    seeds: int | None = None  #: seeds that it has, by default all of the experiment
    once: tuple[int, ...] = ()  #: hash lengths at which one seed must do
    fit_length: int | None = None  #: hash length of the one layer that serves every column, if it does
    data: str | None = None  #: data set, if not the experiment's
    task: Callable | None = None  #: task, if not the experiment's
    inputs: Callable | None = None  #: (rows (n, d), database) -> array (n, d), before the method sees them
    amend: Callable | None = None  #: hasher -> None, once it is fitted
    queries: Callable | None = None  #: outcome -> array (q, d) that is asked in place of the task's queries
    metric: Callable | None = None  #: metric, if not the experiment's
    extras: tuple[Callable, ...] = ()  #: outcome -> further fields of its records
    archived: bool = False  #: whether its records are kept and shown, but none is added


class Trial(NamedTuple):
    """What is measured at a time."""

    row: Row
    hash_length: int
    seed: int


@dataclass(frozen=True, eq=False)
class Experiment:
    """One table or figure: what is measured, on which data, for which trials."""

    name: str  #: of the results file, and of the paper's table where there is one
    title: str  #: what it shows, in a line
    chapter: str  #: notebook that discusses it
    data: str  #: data set
    #: its rows; a callable is asked anew each time, so that methods registered later have their row
    rows: tuple[Row, ...] | Callable[[], tuple[Row, ...]]
    _: KW_ONLY
    task: Callable  #: makes of (data, profile, seed) what is learned from, searched and asked
    metric: Callable  #: outcome -> ``value``, and for mean average precision ``best`` and ``worst`` over tie orders
    extras: tuple[Callable, ...] = ()  #: outcome -> further fields of a record
    hash_lengths: tuple[int, ...] = LENGTHS  #: columns
    seeds: int = 3  #: repetitions, with seeds 0, 1, …
    unit: str = "%"  #: "%" is compared with the paper in points; "s", seconds, is not
    higher_is_better: bool = True  #: whether a value far above the paper's is better, or as far off as one far below

    def all_rows(self) -> tuple[Row, ...]:
        """Return the rows that there are now."""
        return self.rows() if callable(self.rows) else self.rows

    def row(self, label: str) -> Row:
        """Return the row of that label; KeyError if there is none."""
        return {row.label: row for row in self.all_rows()}[label]

    def trials(self) -> Iterator[Trial]:
        """Yield every trial that is to be measured, the first seed of all before the second."""
        rows = self.all_rows()
        for seed in range(self.seeds):
            for k in self.hash_lengths:
                for row in rows:
                    planned = not row.archived and k in (row.hash_lengths or self.hash_lengths)
                    if planned and seed < (1 if k in row.once else row.seeds or self.seeds):
                        yield Trial(row, k, seed)
