"""Small fitted hashers on real images, for the widgets that show them; a kernel in JupyterLab imports them too."""

from functools import cache

import numpy as np

from biohash_mini import BioConvHash, BioHash
from biohash_mini.datasets import Task, load


@cache
def digits() -> tuple[BioHash, np.ndarray, np.ndarray]:
    """Return a small layer, and 120 digits with their labels."""
    task = load("mnist").retrieval_task()
    layer = BioHash(4, activity=0.1, learning_rate=0.1, max_epochs=10).fit(task.database[:2000])
    few = np.concatenate([np.flatnonzero(task.query_labels == c)[:12] for c in range(10)])
    return layer, task.queries[few], task.query_labels[few]


@cache
def photographs() -> tuple[dict[str, BioHash | BioConvHash], Task]:
    """Return small hashers and the task of CIFAR-10."""
    task = load("cifar10").retrieval_task()
    X, m = task.database[:400], 40
    stages = {"kernel_sizes": (4,), "n_filters": 12, "channel_winners": 1, "stride": 6, "n_patches": 1000}
    schedule = {"filter_epochs": 2, "filter_learning_rate": 0.03, "max_epochs": 2}
    conv = BioConvHash(1, activity=1 / m, image_shape=task.image_shape, **stages, **schedule)
    return {"BioHash": BioHash(1, activity=1 / m, max_epochs=2).fit(X), "BioConvHash": conv.fit(X)}, task
