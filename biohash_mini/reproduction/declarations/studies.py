"""Training time, the choices that the paper leaves open, codes in the plane, and how the learner starts and moves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from .. import protocols, scores
from ..choices import CHOICES, NEAREST, rank_by_direction
from ..experiment import Experiment, Row
from ..settings import MAX_STEP, PRINTED
from .rows import AT_1000, CLASSES, TO_32, declared, first_edition, started_on_data

_SCHEDULE: dict[str, Any] = {"relative_rate": True, "smooth": True, "norm_tol": 0.0}
_ROWS: dict[str, Any] = {"reduction": "implicit", "start": "rows", "learning_rate": 0.5, "max_epochs": 4, **_SCHEDULE}
_RANDOM: dict[str, Any] = {**_ROWS, "start": "normal"}
_LEARNERS: dict[str, dict[str, Any]] = {  # where BioHash starts, and how it moves
    "as printed, max step": MAX_STEP,
    "as printed, implicit step": PRINTED,
    "N(0, 1), mean step 0.15": {**_RANDOM, "reduction": "mean", "learning_rate": 0.15},
    **{f"N(0, 1), implicit step {rate:g}": {**_RANDOM, "learning_rate": rate} for rate in (0.15, 0.5, 1.0)},
    "rows at 3, mean step 0.15": {**_ROWS, "reduction": "mean", "learning_rate": 0.15},
    **{f"rows at 3, implicit step {rate:g}": {**_ROWS, "learning_rate": rate} for rate in (0.15, 0.5, 1.0, 2.0)},
    **{f"rows at {norm}, implicit step 0.5": {**_ROWS, "init_norm": norm} for norm in (1, 10)},
    **{f"rows at 3, implicit step 0.5, {n} passes": {**_ROWS, "max_epochs": n} for n in (2, 10)},
    **{f"rows at 3, implicit step 0.5, minibatches of {n}": {**_ROWS, "batch_size": n} for n in (20, 500)},
}

_STARTS: dict[str, dict[str, Any]] = {  # on rows, or in random directions of either norm
    "rows at 3": {},
    "N(0, 1)": {"start": "normal"},
    "random at 3": {"start": "normal", "init_std": 3 / 28},  # of 28² pixels
}
_BY_DIRECTION = "rows at 3, implicit step 0.5, 2 passes, units of norm 1"


def _learners(data: str, once: tuple[int, ...] = ()) -> tuple[Row, ...]:
    """Return a row for each way to learn, with one seed at some of the lengths; there the printed schedule crawls."""
    crawling = dict.fromkeys(("as printed, max step", "as printed, implicit step"), (2,)) if once else {}
    short = {**_ROWS, "max_epochs": 2}
    return (
        *(
            declared(label, data, "BioHash", params, once=once, hash_lengths=crawling.get(label))
            for label, params in _LEARNERS.items()
        ),
        declared("max step, 100 epochs to rate zero", data, "BioHash", MAX_STEP | {"norm_tol": 0.0}, archived=True),
        declared(_BY_DIRECTION, data, "BioHash", short, once=once, amend=rank_by_direction),
        declared("rows, not trained", data, "BioHash", {**_ROWS, "max_epochs": 1, "learning_rate": 1e-9}, once=once),
    )


_ONE_LAYER = declared("BioHash", "mnist", fit_length=8)  # 8 / 5% = 160 units
_VALIDATION = "How BioHash starts and moves: validation split of"

EXPERIMENTS = (
    *(
        Experiment(
            name,
            title,
            "14_rivals",
            data,
            (
                bio := declared("BioHash", data, extras=(scores.final_energy,)),
                started_on_data("BioHash", data, extras=(scores.final_energy,)),
                *(rivals := tuple(declared(method, data) for method in others)),
                *first_edition(bio, *rivals),
            ),
            task=protocols.retrieval_task,
            metric=scores.training_seconds,
            hash_lengths=TO_32,
            seeds=1,
            unit="s",
        )
        for name, title, data, others in (
            ("training-time", "Seconds of training, MNIST", "mnist", ("BioConvHash", "GreedyHash", "SOLHash")),
            (
                "training-time-cifar10-vgg16",
                "Seconds of training on features of VGG16, CIFAR-10",
                "cifar10-vgg16",
                ("GreedyHash",),
            ),
            (
                "training-time-cifar10-alexnet",
                "Seconds of training on features of AlexNet, CIFAR-10",
                "cifar10-alexnet",
                ("GreedyHash",),
            ),
        )
    ),
    Experiment(
        "choices-mnist",
        "What each choice that the paper leaves open does to mAP@All on MNIST",
        "15_open_choices",
        "mnist",
        tuple(CHOICES.values()),
        extras=(scores.tie_orders,),
        hash_lengths=(2, 8),
        **CLASSES,
    ),
    Experiment(
        "readings-mnist",
        "BioHash on MNIST, mAP@All, under other readings of the paper",
        "15_open_choices",
        "mnist",
        tuple(replace(CHOICES[label], once=()) for label in NEAREST),
        extras=(scores.tie_orders,),
        hash_lengths=TO_32,
        **CLASSES,
    ),
    Experiment(
        "tsne-mnist",
        "Purity of the 10 nearest neighbours in a tSNE of the codes, m = 160 (figure 5)",
        "07_sparsity",
        "mnist",
        (_ONE_LAYER, *first_edition(_ONE_LAYER)),
        **CLASSES | {"metric": scores.purity},
    ),
    Experiment(
        "learner-mnist",
        f"{_VALIDATION} MNIST, mAP@All",
        "15_open_choices",
        "mnist",
        _learners("mnist"),
        hash_lengths=(2, 8, 32),
        **CLASSES | {"task": protocols.validation_task},
    ),
    Experiment(
        "start-mnist",
        "What BioHash keeps of its start: validation split of MNIST, mAP@All",
        "15_open_choices",
        "mnist",
        tuple(
            declared(f"{start}, implicit step {rate:g}", "mnist", "BioHash", {**_ROWS, **where, "learning_rate": rate})
            for start, where in _STARTS.items()
            for rate in (0.15, 0.5, 1.0)
        ),
        extras=(scores.final_energy, scores.kept_winners),
        hash_lengths=(2,),
        **CLASSES | {"task": protocols.validation_task},
    ),
    Experiment(
        "learner-cifar10",
        f"{_VALIDATION} CIFAR-10, mAP@1000",
        "15_open_choices",
        "cifar10",
        _learners("cifar10", once=(16, 64)),
        hash_lengths=(2, 16, 64),
        **AT_1000 | {"task": protocols.validation_task},
    ),
    Experiment(
        "learner-glove",
        "How BioHash starts and moves, scored as in the tables of GloVe on a part of the words it may learn from",
        "15_open_choices",
        "glove",
        _learners("glove"),
        task=protocols.word_validation_task,
        metric=partial(scores.word_map, metric="euclidean"),
        extras=(scores.cosine,),
        hash_lengths=(2, 8, 32),
    ),
)
