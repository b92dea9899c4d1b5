"""What is set for a method on a data set: what the paper prints, unless a comment says otherwise."""

from __future__ import annotations

from typing import Any

from ..datasets import FEATURES
from ..hashers import METHODS, BioHash, Hasher
from .paper import ACTIVITY_USED, CHANNEL_WINNERS_USED

#: Methods that stand only in the tables that name them.
RIVALS = frozenset({"DenseFly", "DH", "UH-BNN", "GreedyHash", "SOLHash", "POSH", "WTAHash"})

#: How BioHash is trained in the paper. It does not print how a minibatch moves a unit: that is the implicit step here.
PRINTED: dict[str, Any] = {
    "reduction": "implicit",
    "learning_rate": 0.02,
    "relative_rate": False,
    "smooth": False,
    "max_epochs": 100,
    "norm_tol": 1.06,
    "start": "normal",
}
#: The reading of the first edition: the update of a minibatch is divided by its largest entry.
MAX_STEP = PRINTED | {"reduction": "max"}

#: How the first edition's layer of BioConvHash learned; from random synapses four passes are too few for many units.
RANDOM_LAYER: dict[str, Any] = {
    "reduction": "mean",
    "learning_rate": 0.2,
    "smooth": False,
    "max_epochs": 4,
    "norm_tol": 1.06,
    "start": "normal",
}
#: The library's own way: started on data, a few passes to a rate of zero. The paper prints nothing of the layer of
#: BioConvHash, which has it in all its tables.
ON_DATA: dict[str, Any] = {name: BioHash().get_params()[name] for name in PRINTED}

_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    **{("BioHash", data): PRINTED | {"activity": activity} for data, activity in ACTIVITY_USED.items()},
    **{("BioHash", data): PRINTED | {"activity": ACTIVITY_USED["cifar10"]} for data in FEATURES},
    **{("NaiveBioHash", data): PRINTED for data in (*ACTIVITY_USED, *FEATURES)},
    ("BioConvHash", "mnist"): {"image_shape": (1, 28, 28), "channel_winners": CHANNEL_WINNERS_USED["mnist"]},
    ("BioConvHash", "cifar10"): {
        "image_shape": (3, 32, 32),
        "kernel_sizes": (3, 4, 10),
        "n_filters": 400,
        "delta": (0.1, 0.2, 0.2),
        "channel_winners": CHANNEL_WINNERS_USED["cifar10"],
        "activity": ACTIVITY_USED["cifar10"],  # that of BioHash: the paper prints none for this layer
    },
}


def settings(method: str, data: str) -> dict[str, Any]:
    """Return the parameters of a method on a data set that are not its defaults."""
    return _SETTINGS.get((method, data), {})


def make_hasher(method: str, hash_length: int, seed: int, data: str) -> Hasher:
    """Return an unfitted hasher with the paper's settings for a data set."""
    return METHODS[method](hash_length, seed=seed, **settings(method, data))
