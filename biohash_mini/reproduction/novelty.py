"""Telling new classes from known ones: the task, and the score of the fly's filter beside distances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from ..codes import Codes
from ..datasets import Task
from ..datasets.optional import optional
from ..search import HammingIndex
from ..uses import FlyBloomFilter
from .measure import Outcome, percent
from .protocols import keep, retrieval_task, validation_task
from .scores import Fields

DECAYS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)


@keep
def novelty_task(data: str, profile: str, seed: int, known: int = 5, validation: bool = False) -> Task:
    """Return the task of telling new classes: random ones are known and searched, all are asked, 1 says new.

    What is learned from, the synapses too, are known classes alone.
    """
    task = (validation_task if validation else retrieval_task)(data, profile, seed)
    classes = np.unique(task.database_labels)
    familiar = np.random.default_rng(seed).permutation(classes)[:known]
    rows = np.isin(task.database_labels, familiar)
    new = (~np.isin(task.query_labels, familiar)).astype(np.uint8)
    return replace(
        task,
        database=task.database[rows],
        database_labels=task.database_labels[rows],
        database_ids=None,
        query_labels=new,
        train=None,
    )


def novelty(found: Outcome) -> Fields:
    """Return the area in % under the ROC curve of the fly's filter, its curve at 21 places, and what each decay gives.

    The decay is :func:`chosen_decay`, of the known classes alone.
    """
    new = found.task.query_labels
    decay = chosen_decay(found.database, found.task.database_labels, found.seed)
    by_decay = {
        str(d): percent(roc_auc_score(new, FlyBloomFilter(d).store(found.database).novelty(found.queries)))
        for d in DECAYS
    }
    curve = roc(new, FlyBloomFilter(decay).store(found.database).novelty(found.queries))
    return {"value": by_decay[str(decay)], "decay": decay, "by_decay": by_decay, "curve": curve}


def chosen_decay(codes: Codes, labels: np.ndarray, seed: int = 0) -> float:
    """Return the decay that best tells each known class from the others when it is left out, on a tenth of the rows."""
    held = np.random.default_rng(seed).random(len(codes)) < 0.1
    areas = dict.fromkeys(DECAYS, 0.0)
    for left_out in np.unique(labels):
        stored, asked = codes[np.flatnonzero(~held & (labels != left_out))], codes[np.flatnonzero(held)]
        for decay in DECAYS:
            scores = FlyBloomFilter(decay).store(stored).novelty(asked)
            areas[decay] += roc_auc_score(labels[held] == left_out, scores)
    return max(areas, key=lambda decay: areas[decay])


def roc(new: np.ndarray, scores: np.ndarray) -> list[float]:
    """Return the share of the new that is found, at 21 shares of known taken for new, 0 to 1."""
    wrong, right, _ = roc_curve(new, scores)
    return np.interp(np.linspace(0, 1, 21), wrong, right).round(4).tolist()


def by_distance(found: Outcome) -> Fields:
    """Return that area for the distance to the nearest known image, and for that to the nearest code."""
    faiss = optional("faiss", extra="faiss")
    index = faiss.IndexFlatL2(found.task.database.shape[1])
    index.add(found.task.database)
    distances = index.search(found.task.queries, 1)[0][:, 0]
    codes, _ = HammingIndex(found.database).search(found.queries, 1)
    new = found.task.query_labels
    areas = {"nearest_image": distances, "nearest_code": codes[:, 0]}
    return {name: percent(roc_auc_score(new, values)) for name, values in areas.items()} | {
        "image_curve": roc(new, distances)
    }
