"""What is set for a method on a data set: what the paper prints, unless a comment says otherwise."""

from __future__ import annotations

from typing import Any

from ..datasets import FEATURES
from ..hashers import METHODS, Hasher
from .paper import ACTIVITY_USED, CHANNEL_WINNERS_USED

#: Methods that stand only in the tables that name them.
RIVALS = frozenset({"DenseFly", "DH", "UH-BNN", "GreedyHash", "SOLHash"})

_PASSES = 4  # of the layer of BioConvHash: the time that one core has; with many units mean norms end above 1.06
_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    **{("BioHash", data): {"activity": activity} for data, activity in ACTIVITY_USED.items()},
    **{("BioHash", data): {"activity": ACTIVITY_USED["cifar10"]} for data in FEATURES},
    ("BioHash", "glove"): {"activity": ACTIVITY_USED["glove"], "norm_tol": 0.0},  # ours: the whole schedule
    ("BioConvHash", "mnist"): {
        "image_shape": (1, 28, 28),
        "channel_winners": CHANNEL_WINNERS_USED["mnist"],
        "max_epochs": _PASSES,
    },
    ("BioConvHash", "cifar10"): {
        "image_shape": (3, 32, 32),
        "kernel_sizes": (3, 4, 10),
        "n_filters": 400,
        "delta": (0.1, 0.2, 0.2),
        "channel_winners": CHANNEL_WINNERS_USED["cifar10"],
        "activity": ACTIVITY_USED["cifar10"],  # that of BioHash: the paper prints none for this layer
        "max_epochs": _PASSES,
    },
}


def settings(method: str, data: str) -> dict[str, Any]:
    """Return the parameters of a method on a data set that are not its defaults."""
    return _SETTINGS.get((method, data), {})


def make_hasher(method: str, hash_length: int, seed: int, data: str) -> Hasher:
    """Return an unfitted hasher with the paper's settings for a data set."""
    return METHODS[method](hash_length, seed=seed, **settings(method, data))
