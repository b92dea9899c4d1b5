r"""How cost grows: measured in n rows, d inputs, m units and k of them on, and carried to sizes nobody has at hand.

Times are of the processor, with one thread, so that a busy machine changes little. Rows are digits, projected at
random to d numbers; their codes are searched, many copies of them, so that units are as popular as they really are.
How cost falls with threads is told by the clock alone, and is read from a record of `biohash bench threads`.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from ..codes import concatenate
from ..datasets import load
from ..hashers import BioHash
from ..search import HammingIndex
from .results import read

COPIES = 150  # codes that are searched for each row that is learned from
QUERIES, TOP = 64, 100


class Size(NamedTuple):
    """Rows, inputs, units, units on."""

    n: int = 4000
    d: int = 196
    m: int = 2000
    k: int = 8


BASE = Size()


class Cost(NamedTuple):
    """Seconds of one pass of training over n rows, of encoding them, of one query; bytes of the index of an item."""

    training: float
    encoding: float
    search: float
    memory: float


def seconds(call: Callable[[], Any], repeats: int = 2, clock: Callable[[], float] = time.process_time) -> float:
    """Return the processor's seconds of a call, the least of a few, with one thread; by another clock, with all."""
    took, threads = [], torch.get_num_threads()
    if clock is time.process_time:
        torch.set_num_threads(1)  # others would spin while they wait
    try:
        for _ in range(repeats):
            start = clock()
            call()
            took.append(clock() - start)
    finally:
        torch.set_num_threads(threads)
    return min(took)


def measure(size: Size = BASE, clock: Callable[[], float] = time.process_time) -> Cost:
    """Return what training, encoding and search cost at a size, by a clock of :func:`seconds`."""

    def took(call: Callable[[], Any], repeats: int = 2) -> float:
        return seconds(call, repeats, clock)

    rng = np.random.default_rng(0)
    digits = load("mnist", "mini").retrieval_task(seed=0).database
    X = digits[rng.integers(len(digits), size=size.n)] @ rng.normal(size=(digits.shape[1], size.d)).astype(np.float32)
    hasher = BioHash(size.k, activity=size.k / size.m, max_epochs=1)
    training, encoding = took(lambda: hasher.fit(X)), took(lambda: hasher.encode(X))
    codes = hasher.encode(X)
    index = HammingIndex(concatenate([codes] * COPIES))
    queries = codes[rng.permutation(len(codes))[:QUERIES]]
    return Cost(training, encoding, took(lambda: index.search(queries, TOP), 4) / QUERIES, _bytes(index))


def clocked(size: list[int]) -> Cost:
    """Return the same with all threads of this process, in seconds that one waits; the first measurement warms up."""
    measure(Size(*size), time.perf_counter)
    return measure(Size(*size), time.perf_counter)


def _bytes(index: HammingIndex) -> float:
    """Return the memory of an index for each item."""
    held = (array for kind in vars(index).values() for array in (kind if isinstance(kind, tuple) else [kind]))
    return sum(array.nbytes for array in held if isinstance(array, np.ndarray)) / len(index)


def slopes(at_base: Cost, base: Size = BASE, times: int = 2) -> pd.DataFrame:
    r"""Return the exponents of growth, shape (costs, letters): :math:`\log(c'/c)/\log t` for a letter t times larger.

    A slope of 1 means that cost doubles with the letter, one of 0 that it does not change. ``at_base`` is what
    :func:`measure` found at the size ``base``.
    """

    def column(letter: str) -> list[float]:
        larger = measure(base._replace(**{letter: times * getattr(base, letter)}))
        return [float(np.log(b / a) / np.log(times)) for a, b in zip(at_base, larger, strict=True)]

    return pd.DataFrame({letter: column(letter) for letter in Size._fields}, index=Cost._fields)


def thread_slopes(where: Path | None = None) -> pd.Series:
    r"""Return the exponents of growth in threads, -1 where twice as many halve the time, of the last full record.

    They are :math:`-\log(\text{speed-up})/\log(\text{threads})`; empty where `biohash bench threads` never ran. The
    threads of a process share one index, so its memory does not grow with them.
    """
    rows: Any = [row for row in read("bench", where) if row["profile"] == "full"]
    rows = [row for row in rows if row["what"].startswith("threads, ")]
    found = {row["what"].removeprefix("threads, "): -np.log(row["value"]) / np.log(row["threads"]) for row in rows}
    return pd.Series(found, name="threads", dtype=float)


class Machine(NamedTuple):
    """A machine: bytes of memory, seconds that a pass of training may take, seconds that a query may take."""

    memory: float = 16e9
    night: float = 8 * 3600.0
    patience: float = 0.1


LAPTOP = Machine()


def scaled(cost: Cost, measured: Size, wanted: Size) -> Cost:
    """Return what was measured at one size as it would be at another, by the work that it is made of.

    That is n d m for training and encoding, n k²/m for a search, the entries that the lists of a query hold, and k for
    the index of an item.
    """
    work = (wanted.n * wanted.d * wanted.m) / (measured.n * measured.d * measured.m)
    entries = (wanted.n * wanted.k**2 / wanted.m) / (COPIES * measured.n * measured.k**2 / measured.m)
    return Cost(cost.training * work, cost.encoding * work, cost.search * entries, cost.memory * wanted.k / measured.k)


def limits(cost: Cost, measured: Size, wanted: Size, machine: Machine = LAPTOP) -> pd.Series:
    """Return how many items one machine serves until each of its resources ends, the first to end first."""
    one = scaled(cost, measured, wanted._replace(n=1))
    return pd.Series(
        {
            "vectors in memory": machine.memory / (4 * wanted.d),
            "index in memory": machine.memory / one.memory,
            "codes in memory": machine.memory / (wanted.k * _number_bytes(wanted.m)),
            "a query while you wait": machine.patience / one.search,
            "a pass of training overnight": machine.night / one.training,
        }
    ).sort_values()


def bill(wanted: Size, batch_size: int = 10_000) -> Iterator[tuple[str, float, str]]:
    """Yield what n items take on paper: a name, a number and its unit, from the sizes alone."""
    n, d, m, k = wanted
    yield "vectors, float32", 4 * n * d, "B"
    yield "codes", n * k * _number_bytes(m), "B"
    yield "index, inverted lists", 2 * n * k, "B"
    yield "synapses, in every process", 4 * m * d, "B"
    yield "products of a pass of training", 2 * n * d * m, "flop"
    yield "sent by a process in a pass of training", 4 * min(m, batch_size) * (d + 2) * n / batch_size, "B"
    yield "entries that a query reads", n * k**2 / m, ""
    yield "memory that a query reads", 2 * n * k**2 / m, "B"


def _number_bytes(m: int) -> int:
    """Return the bytes in which the number of a unit is kept."""
    return np.min_scalar_type(m - 1).itemsize
