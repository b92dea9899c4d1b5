"""What the critics of learned hashes ask: orthogonal layers, candidates looked at, and where units go."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import critics, protocols, scores
from ..experiment import Experiment, Row
from ..settings import ON_DATA
from .rows import TO_32, declared, started_on_data

_CHAPTER = "23_critics_and_flies"
_BITS = (16, 32, 64, 128, 256, 512, 1024)
# one layer of 1,024 units, 10 bits for each unit that is on
_UNITS: dict[str, Any] = {
    "fit_length": 16,
    "hash_lengths": (2, 4, 8, 16, 32, 64),
}
_OF_1024: dict[str, Any] = {"activity": 16 / 1024}
_RANDOM = ON_DATA | {"start": "normal"}
_UNTRAINED = ON_DATA | {"max_epochs": 1, "learning_rate": 1e-9}


def _orthogonal(data: str, activity: float, n_iterations: int) -> tuple[Row, ...]:
    """Return the rows of an orthogonal layer, learned and not, beside BioHash."""
    params = {"activity": activity, "n_iterations": n_iterations}
    return (
        declared("POSH", data, params=params),
        declared("POSH, not learned", data, "POSH", params | {"n_iterations": 0}),
        started_on_data("BioHash", data),
    )


def _searched(data: str, longest_itq: int) -> tuple[Row, ...]:
    """Return the rows that are compared by candidates."""
    return (
        declared("LSH", data, hash_lengths=_BITS),
        declared("ITQ", data, hash_lengths=tuple(b for b in _BITS if b <= longest_itq)),
        declared("BioHash, 1,024 units", data, "BioHash", ON_DATA | _OF_1024, **_UNITS),
        declared("POSH, 1,024 units", data, "POSH", _OF_1024, **_UNITS),
    )


EXPERIMENTS = (
    Experiment(
        "posh-mnist",
        "Orthogonal sparse codes beside BioHash, MNIST, mAP@All",
        _CHAPTER,
        "mnist",
        _orthogonal("mnist", 0.05, 20),
        task=protocols.retrieval_task,
        metric=scores.class_map,
        extras=(critics.neighbours_found,),
        hash_lengths=TO_32,
    ),
    *(
        Experiment(
            f"revisit-{data}",
            f"True neighbours on {title}: of the ten nearest, found among a hundred candidates",
            _CHAPTER,
            data,
            _searched(data, longest_itq),
            task=critics.search_task,
            metric=critics.candidates,
            hash_lengths=tuple(sorted({*_BITS, *_UNITS["hash_lengths"]})),
            seeds=1,
        )
        for data, title, longest_itq in (("mnist", "MNIST", 256), ("glove", "GloVe", 256))
    ),
    *(
        Experiment(
            f"cells-{data}",
            f"How unevenly the units of BioHash share the energy, {title}: standard deviation over mean",
            _CHAPTER,
            data,
            (
                started_on_data("BioHash", data),
                declared("BioHash, random start", data, "BioHash", _RANDOM),
                declared("rows, not trained", data, "BioHash", _UNTRAINED),
            ),
            task=critics.search_task,
            metric=critics.shared_energy,
            hash_lengths=(2, 8),
            seeds=1,
            higher_is_better=False,
        )
        for data, title in (("mnist", "MNIST"), ("glove", "GloVe"), ("cifar10", "CIFAR-10"))
    ),
    Experiment(
        "posh-cifar10",
        "Orthogonal sparse codes beside BioHash, CIFAR-10, mAP@1000",
        _CHAPTER,
        "cifar10",
        _orthogonal("cifar10", 0.005, 5),
        task=protocols.retrieval_task,
        metric=partial(scores.class_map, at=1000),
        extras=(critics.neighbours_found,),
        hash_lengths=(2, 4, 8),
        seeds=1,
    ),
)
