"""Tables on images: MNIST, CIFAR-10, channel inhibition, shadows, sparsity, and what explains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ..experiment import LENGTHS, Experiment, Row
from ..paper import ACTIVITY_USED
from ..protocols import part_task, validation_task
from ..scores import clean, features_in_shadow, in_shadow
from ..settings import MAX_STEP, ON_DATA, RANDOM_LAYER
from .rows import (
    ACTIVITIES,
    AT_1000,
    CLASSES,
    TO_16,
    TO_32,
    by_activity,
    compared,
    declared,
    first_edition,
)

_PATCHES = (400, 1_000, 2_000, 10_000, 50_000, 400_000)
_LAYER_STEP = {"reduction": "max", "learning_rate": 0.02}  # BioHash's step and rate on pixels
_CHANNELS = (1, 5, 10, 25, 100)
_SWEEP: dict[str, Any] = {"hash_lengths": TO_16, "seeds": 1, "higher_is_better": False}
_AT_2: dict[str, Any] = {"hash_lengths": (2,), "seeds": 1}


def _conv(data: str, labels: dict[str, dict[str, Any]]) -> tuple[Row, ...]:
    """Return rows of BioConvHash with a random layer, and the parameters that belong to each label."""
    return tuple(declared(label, data, "BioConvHash", {**RANDOM_LAYER, **params}) for label, params in labels.items())


def _by_channels(data: str, **params: Any) -> tuple[Row, ...]:
    return tuple(declared(str(c), data, "BioConvHash", {"channel_winners": c, **params}) for c in _CHANNELS)


def _on_a_part(*rows: Row) -> Iterator[Row]:
    """Yield the archived rows of the first edition's sweep of CIFAR-10: few images, and as many units as they teach."""
    for row in first_edition(*rows):
        params = {**row.params, "activity": ACTIVITY_USED["mnist"]}
        yield replace(row, label=f"{row.label}, 10,000 images", params=params, task=part_task)


def _in_shadow() -> tuple[Row, ...]:
    rows = _CIFAR10_ROWS()
    vgg16 = declared("BioHash on VGG16", "cifar10-vgg16", "BioHash", ON_DATA, queries=features_in_shadow)
    return (
        *(replace(row, queries=in_shadow) for row in rows),
        declared("GreedyHash", "cifar10-vgg16", queries=features_in_shadow),
        vgg16,
        *first_edition(vgg16),
        declared("GreedyHash on pixels", "cifar10", "GreedyHash", queries=in_shadow),
    )


_MNIST_ROWS = compared(
    "mnist",
    declared("DH", "mnist", hash_lengths=(16, 32, 64), once=LENGTHS),
    declared("UH-BNN", "mnist", hash_lengths=(16, 32), once=LENGTHS),
    images=True,
    changes={"BioConvHash": {"seeds": 3, "once": (64,)}},
)
_CIFAR10_ROWS = compared(
    "cifar10",
    images=True,
    changes={"BioConvHash": {"hash_lengths": TO_32}},  # 12,800 units on 147,600 features would fill 24 GB
)
_STUDIES: dict[
    str, tuple[str, dict[str, dict[str, Any]]]
] = {  # of BioConvHash on MNIST with 10,000 digits in the database
    "filter-training": (
        "as its filters learn from more patches",
        {
            f"k_CI={k_ci}, {n} patches": {"channel_winners": k_ci, "n_patches": n}
            for n in _PATCHES
            for k_ci in (1, 10, 100)
        },
    ),
    "centring": (
        "with and without centring of its features",
        {
            f"k_CI={k_ci}, {how}": {"channel_winners": k_ci, "center": center}
            for k_ci in (1, 10, 100)
            for how, center in (("centred", True), ("not centred", False))
        },
    ),
    "layer-step": (
        "whose layer takes the max step",
        {
            f"k_CI={k_ci}, {n} passes": {"channel_winners": k_ci, "max_epochs": n, **_LAYER_STEP}
            for k_ci in (1, 10, 100)
            for n in (5, 20)
        },
    ),
}
_SIDES = tuple(
    declared(f"{method}, {side}", "cifar10", method, params, queries=partial(in_shadow, side=side))
    for method, params in (("BioHash", MAX_STEP), ("BioConvHash", {}))
    for side in ("lower", "upper", "left", "right")
)
_INHIBITION = "BioConvHash with k_CI channels active at a position"
_SPLIT = "The choice of k_CI: validation split of"
_ACTIVITY = "on the validation split of"

EXPERIMENTS = (
    Experiment("mnist", "MNIST, mAP@All", "05_mnist", "mnist", _MNIST_ROWS, seeds=5, **CLASSES),
    Experiment("cifar10", "CIFAR-10, mAP@1000", "06_cifar10", "cifar10", _CIFAR10_ROWS, **AT_1000),
    Experiment(
        "channel-inhibition-mnist",
        f"{_INHIBITION}, MNIST, mAP@All",
        "10_convolution",
        "mnist",
        (*_by_channels("mnist"), *first_edition(*_by_channels("mnist"))),
        **CLASSES | _SWEEP | {"seeds": 3},
    ),
    Experiment(
        "channel-inhibition-cifar10",
        f"{_INHIBITION}, CIFAR-10, mAP@1000",
        "10_convolution",
        "cifar10",
        (*_by_channels("cifar10"), *_on_a_part(*_by_channels("cifar10"))),
        **AT_1000 | _SWEEP,
    ),
    Experiment(
        "channels-validation-mnist",
        f"{_SPLIT} MNIST, 10,000 digits in the database, mAP@All",
        "10_convolution",
        "mnist",
        (*_by_channels("mnist"), *first_edition(*_by_channels("mnist"))),
        **CLASSES | _AT_2 | {"task": partial(part_task, validation=True)},
    ),
    Experiment(
        "channels-validation-cifar10",
        f"{_SPLIT} CIFAR-10, 49,000 images in the database, mAP@1000",
        "10_convolution",
        "cifar10",
        (*_by_channels("cifar10")[:3], *first_edition(*_by_channels("cifar10")[:3])),
        **AT_1000 | _AT_2 | {"task": partial(part_task, size=49_000, validation=True)},
    ),
    *(
        Experiment(
            f"{name}-mnist",
            f"BioConvHash {what}, MNIST with 10,000 digits in the database, mAP@All",
            "10_convolution",
            "mnist",
            _conv("mnist", rows),
            **CLASSES | _AT_2 | {"task": part_task},
        )
        for name, (what, rows) in _STUDIES.items()
    ),
    Experiment(
        "shadows",
        "CIFAR-10 with shadows on the queries, mAP@1000",
        "11_shadows",
        "cifar10",
        _in_shadow,
        extras=(partial(clean, at=1000),),
        **AT_1000,
    ),
    Experiment(
        "shadow-sides",
        "CIFAR-10 with shadows on the queries: which 80% of an image lie in shadow, mAP@1000",
        "11_shadows",
        "cifar10",
        _SIDES,
        **AT_1000 | _AT_2,
    ),
    Experiment(
        "sparsity-mnist",
        f"Activity against mAP@All {_ACTIVITY} MNIST (figure 4)",
        "07_sparsity",
        "mnist",
        by_activity("mnist", (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3)),
        hash_lengths=TO_32,
        seeds=1,
        **CLASSES | {"task": validation_task},
    ),
    Experiment(
        "sparsity-cifar10",
        f"Activity against mAP@1000 {_ACTIVITY} CIFAR-10 (figure 4)",
        "07_sparsity",
        "cifar10",
        by_activity("cifar10", ACTIVITIES),
        hash_lengths=TO_32,
        seeds=1,
        **AT_1000 | {"task": validation_task},
    ),
)
