"""The paper's tables and figures as declarations, and the runner that fills in what is missing.

A cell is one method at one hash length with one seed. Measuring it appends a line to ``results/NAME.jsonl``; what
stands there is never measured again, so a run may be killed at any moment and started anew.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm.auto import tqdm

from . import choices, measures, results
from .measures import METHODS, Cell, activity_row


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what is measured, on which data, for which cells.

    Parameters
    ----------
    name : str
        Name of the results file, and of the paper's table where there is one.
    title : str
        What it shows, in a line.
    data : str
        Data set.
    measure : callable (experiment, cell, profile) -> {row: values}
        Measures a cell; most give one row, the method's own.
    hash_lengths : tuple of int
        Columns.
    seeds : int
        Repetitions, with seeds 0, 1, …
    methods : tuple of str, optional
        Rows; by default all of :data:`~biohash_mini.measures.METHODS`.
    at : int, optional
        R of mAP@R; by default the whole ranking.
    once : set of (method, hash_length)
        Cells that take so long that one seed must do.
    skip : set of (method, hash_length)
        Cells that are not part of the table.
    rows : callable method -> tuple of str
        The rows that one cell of a method fills.
    unit : str
        "%" for values that are compared with the paper in points; "s" for seconds, which are not.
    higher_is_better : bool
        Whether a value above the paper's counts as reproduced however far above it is.
    """

    name: str
    title: str
    data: str
    measure: Callable[["Experiment", Cell, str], dict[str, dict]]
    hash_lengths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    seeds: int = 3
    methods: tuple[str, ...] = ()
    at: int | None = None
    once: frozenset[tuple[str, int]] = frozenset()
    skip: frozenset[tuple[str, int]] = frozenset()
    rows: Callable[[str], tuple[str, ...]] = lambda method: (method,)
    unit: str = "%"
    higher_is_better: bool = True

    def cells(self) -> Iterator[Cell]:
        """Yield every cell, the first seed of all before the second."""
        for seed in range(self.seeds):
            for k in self.hash_lengths:
                for method in self.methods or METHODS:
                    if (method, k) not in self.skip and (seed == 0 or (method, k) not in self.once):
                        yield Cell(method, k, seed)


_TO_32 = (2, 4, 8, 16, 32)
_CONV_AT_64 = frozenset({("BioConvHash", 64)})
_LONG = frozenset((*(("BioHash", k) for k in (16, 32, 64)), *(("BioConvHash", k) for k in _TO_32)))  # over 20 minutes
_DECLARED = (
    Experiment(
        "mnist",
        "MNIST, mAP@All",
        "mnist",
        measures.class_retrieval,
        seeds=5,
        once=frozenset(("BioConvHash", k) for k in _TO_32),
        skip=_CONV_AT_64,
    ),
    Experiment(
        "cifar10",
        "CIFAR-10, mAP@1000",
        "cifar10",
        measures.class_retrieval,
        at=1000,
        once=_LONG,
        skip=_CONV_AT_64,
    ),
    *(
        Experiment(
            f"channel-inhibition-{data}",
            f"BioConvHash with k_CI channels active at a position, {words}",
            data,
            measures.channel_inhibition,
            (2, 4, 8, 16),
            1,
            ("1", "5", "10", "25", "100"),
            at,
        )
        for data, words, at in (("mnist", "MNIST, mAP@All", None), ("cifar10", "CIFAR-10, mAP@1000", 1000))
    ),
    Experiment(
        "shadows",
        "CIFAR-10 with shadows on the queries, mAP@1000",
        "cifar10",
        measures.shadows,
        seeds=1,
        at=1000,
        skip=_CONV_AT_64,
    ),
    Experiment(
        "sparsity-mnist",
        "Activity against mAP@All on the validation split of MNIST (figure 4)",
        "mnist",
        measures.validation_activity,
        _TO_32,
        1,
        tuple(map(activity_row, (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3))),
    ),
    Experiment(
        "sparsity-cifar10",
        "Activity against mAP@1000 on the validation split of CIFAR-10 (figure 4)",
        "cifar10",
        measures.validation_activity,
        _TO_32,
        1,
        tuple(map(activity_row, (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2))),
        at=1000,
    ),
    Experiment(
        "smoothness",
        "Functional smoothness on MNIST, Pearson's r",
        "mnist",
        measures.smoothness,
        _TO_32,
        methods=("BioHash", "LSH"),
        rows=lambda method: (f"{method} top", f"{method} bottom"),
        higher_is_better=False,
    ),
    Experiment(
        "solhash",
        "MNIST, mAP@100, the 100 nearest in pixel space are relevant",
        "mnist",
        measures.pixel_neighbours,
        at=100,
        skip=frozenset(("BioConvHash", k) for k in (*_TO_32, 64)),
    ),
    Experiment(
        "training-time",
        "Seconds to the stopping rule, MNIST",
        "mnist",
        measures.training_time,
        _TO_32,
        1,
        ("BioHash",),
        unit="s",
    ),
    Experiment(
        "choices-mnist",
        "What each choice that the paper leaves open does to mAP@All on MNIST",
        "mnist",
        choices.measure,
        (2, 8),
        methods=tuple(choices.CHOICES),
        once=frozenset((row, 8) for row in choices.CHOICES),
    ),
    Experiment(
        "readings-mnist",
        "BioHash on MNIST, mAP@All, under other readings of the paper",
        "mnist",
        choices.measure,
        _TO_32,
        methods=choices.READINGS,
    ),
    Experiment(
        "tsne-mnist",
        "Purity of the 10 nearest neighbours in a tSNE of the codes, m = 160 (figure 5)",
        "mnist",
        measures.tsne,
        (2, 4, 8, 16, 32, 64),
        methods=("BioHash",),
    ),
)
EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in _DECLARED}


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
    that need the same fitted hasher follow one another, so that it is fitted once.
    """
    wanted = tuple(map(set, (methods, hash_lengths, seeds)))
    chosen = [
        (exp, cell)
        for exp in map(EXPERIMENTS.__getitem__, [names] if isinstance(names, str) else names)
        for cell in exp.cells()
        if all(not these or has in these for these, has in zip(wanted, cell, strict=True))
    ]
    rank = {method: i for i, method in enumerate(dict.fromkeys(cell.method for _, cell in chosen))}
    chosen.sort(key=lambda pair: (pair[1].seed, pair[1].hash_length, rank[pair[1].method]))
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
