"""Beyond the paper: BioHash with the same units and the same bits, on what a variant makes of the pixels."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..experiment import LENGTHS, Experiment, Row
from ..protocols import prepared_task
from ..settings import ON_DATA
from ..variants import VARIANTS
from .rows import AT_1000, CLASSES, declared

_CHAPTER = "21_better_codes"
_SCORED: dict[str, dict[str, Any]] = {"mnist": CLASSES, "cifar10": AT_1000}
_CONFIRMED = {  # variants that did best on the validation split, and what the best is made of
    "mnist": ("wiring", "gradients", "gradients, wiring"),
    "cifar10": ("gradients", "gradients, whitened"),
}
_METRIC = {"mnist": "MNIST, mAP@All", "cifar10": "CIFAR-10, mAP@1000"}


def _row(label: str, data: str, validation: bool = False, **more: Any) -> Row:
    """Return the row of BioHash, started on data, after a variant."""
    task = partial(prepared_task, variant=label, validation=validation)
    return declared(label, data, "BioHash", ON_DATA, task=task, **more)


EXPERIMENTS = (
    *(
        Experiment(
            f"improvements-{data}",
            f"BioHash after a better view of the pixels, at equal bits: {_METRIC[data]}",
            _CHAPTER,
            data,
            tuple(_row(label, data) for label in _CONFIRMED[data]),
            hash_lengths=LENGTHS,
            **_SCORED[data],
        )
        for data in _SCORED
    ),
    *(
        Experiment(
            f"variants-{data}",
            f"What BioHash may read in place of the pixels, validation split of {_METRIC[data]}",
            _CHAPTER,
            data,
            tuple(_row(label, data, validation=True) for label in VARIANTS),
            hash_lengths=lengths,
            seeds=1,
            **_SCORED[data],
        )
        for data, lengths in {"mnist": (2, 8, 32), "cifar10": (2, 16)}.items()
    ),
)
