"""What is measured of a trial: metrics and the further fields of a record, each a function of its outcome."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch.nn.functional import normalize

from ..codes import Codes
from ..datasets import Task, load
from ..metrics import Truth, average_precision, functional_smoothness, mean_average_precision, tie_bounds
from ..plasticity import energy, overlaps
from .embedding import embed, neighbour_purity
from .measure import Outcome, in_percent, percent
from .protocols import dark_features, neighbours, shadow
from .readings import FITTED, LITERAL, score_readings

Fields = dict[str, Any]


def class_map(found: Outcome, at: int | None = None) -> Fields:
    """Return mAP where items of the query's class are relevant."""
    return in_percent(*tie_bounds(found.asked, found.database, *_labels(found.task), at))


def clean(found: Outcome, at: int | None = None) -> Fields:
    """Return mAP of the task's own queries, where others were asked."""
    return {"clean": percent(mean_average_precision(found.queries, found.database, *_labels(found.task), at))}


def tie_orders(found: Outcome) -> Fields:
    """Return mAP for the orders inside ties that common code would produce."""
    return {"tie_orders": by_tie_order(found.queries, found.database, found.task)}


def by_tie_order(queries: Codes, database: Codes, task: Task) -> dict[str, float]:
    """Return mAP in percent for the orders inside ties that common code would produce, by their names."""
    asked, labels = _labels(task)
    by_class = np.argsort(labels, kind="stable")

    def in_order(rows: slice | np.ndarray) -> float:
        return percent(mean_average_precision(queries, database[rows], asked, labels[rows], ties="index"))

    D = queries.hamming(database[by_class]).astype(np.int64)
    ranked = (labels[by_class[np.argsort(row)]] for row in D)  # as numpy's default sort, which is not stable, has it
    hits = (found == label for found, label in zip(ranked, asked, strict=True))
    precisions = [average_precision(np.arange(len(labels)), hit)[0] for hit in hits]
    return {
        "database order": in_order(slice(None)),
        "sorted by class, stable sort": in_order(by_class),
        "sorted by class, numpy's default sort": percent(np.mean(precisions)),
    }


def _labels(task: Task) -> tuple[np.ndarray, np.ndarray]:
    if task.query_labels is None or task.database_labels is None:
        raise ValueError("this metric needs a task with labels")
    return task.query_labels, task.database_labels


def pixel_map(found: Outcome, at: int = 100) -> Fields:
    """Return mAP@R where the R nearest in pixel space are relevant, a query one of its own neighbours."""
    truth = Truth.of_neighbours(neighbours(found.task, at, "euclidean"))
    return in_percent(*tie_bounds(found.queries, found.database, at=at, truth=truth))


def without_query(found: Outcome, at: int = 100) -> Fields:
    """Return :func:`pixel_map` when the query is left out, and then also when AP divides by all relevant items."""
    near = neighbours(found.task, at, "euclidean")[:, 1:]
    given: Fields = {"at": at, "truth": Truth.of_neighbours(near, exclude=np.arange(len(near)))}
    codes = found.queries, found.database
    return {
        "without_query": percent(mean_average_precision(*codes, **given)),
        "by_relevant": percent(mean_average_precision(*codes, **given, divisor="relevant")),
    }


def word_map(found: Outcome, metric: str) -> Fields:
    """Return mAP under the reading that fits the paper's tables; ``metric`` is the distance that makes the truth."""
    near, rows = _near(found, metric)
    return in_percent(*tie_bounds(found.queries, found.database, **FITTED.given(near, rows)))


def cosine(found: Outcome) -> Fields:
    """Return :func:`word_map` where the truth is by cosine."""
    near, rows = _near(found, "cosine")
    return {"cosine": percent(mean_average_precision(found.queries, found.database, **FITTED.given(near, rows)))}


def other_readings(found: Outcome, metric: str) -> Fields:
    """Return mAP@100 as printed, ``literal``, with its bounds, and all readings for every tenth query."""
    near, rows = _near(found, metric)
    literal = map(percent, tie_bounds(found.queries, found.database, **LITERAL.given(near, rows)))
    fields: Fields = dict(zip(("literal", "literal_best", "literal_worst"), literal, strict=True))
    return fields | {"readings": score_readings(found.database, near[::10], rows[::10])}


def _near(found: Outcome, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest words of each word, itself and 100 more, shape (n, 101), and the rows of the words."""
    return neighbours(found.task, 101, metric), np.arange(len(found.database))


@lru_cache(maxsize=1)
def no_hash(task: Task, at: int) -> float:
    """Return mAP in % of the ranking by cosine of the vectors themselves: the ceiling of their hashes."""
    query_labels, database_labels = _labels(task)
    right = database_labels[neighbours(task, at, "cosine")] == query_labels[:, None]
    return percent(average_precision(np.tile(np.arange(at), (len(right), 1)), right).mean())


def ceiling(found: Outcome, at: int) -> Fields:
    """Return the mAP of the task's vectors themselves."""
    return {"no_hash": no_hash(found.task, at)}


@lru_cache(maxsize=1)
def _layer(data: str, profile: str, pool: bool) -> str:
    return load(data, profile, pool=pool).layer


def layer(found: Outcome, pool: bool = True) -> Fields:
    """Return the layer of the network that features come from; a map that is not pooled has given its components."""
    components = f" pool5, {found.task.database.shape[1]} components,"
    return {"layer": _layer(found.data, found.profile, pool).replace(" pool5,", components)}


def in_shadow(found: Outcome, side: str = "lower") -> np.ndarray:
    """Return the queries, images as rows (q, d), with 80% of each in shadow."""
    images = found.task.queries.reshape(-1, *found.task.image_shape)
    return shadow(images, side=side).reshape(len(images), -1)


def features_in_shadow(found: Outcome) -> np.ndarray:
    """Return what a network makes of the queries' images in shadow, shape (q, d)."""
    return dark_features(found.data, found.profile, found.seed)


def smoothness(found: Outcome, most_alike: bool) -> Fields:
    """Return functional smoothness over the most or the least alike pairs of queries, a query with itself included."""
    X, end = found.task.queries - found.hasher.mean_.cpu().numpy(), 0 if most_alike else 1
    alone = functional_smoothness(X, found.queries, self_pairs=False)[end]
    return in_percent(functional_smoothness(X, found.queries)[end]) | {"without_self_pairs": percent(alone)}


def training_seconds(found: Outcome) -> Fields:
    """Return the seconds of training, of all its stages."""
    stages = ("seconds_filters", "seconds_features", "seconds_fit")
    return {"value": round(sum(found.facts.get(stage, 0) for stage in stages), 3)}


def final_energy(found: Outcome) -> Fields:
    """Return the energy that a layer on the rows themselves has reached."""
    mean = found.hasher.mean_
    X = torch.from_numpy(found.task.train).to(mean.device) - mean
    return {"energy": round(energy(X, found.hasher.weights_).item(), 4)}


def kept_winners(found: Outcome) -> Fields:
    """Return the share of training rows that the unit nearest to them at the start still wins at the end."""
    hasher = found.hasher
    start = clone(hasher).set_params(max_epochs=1, learning_rate=1e-9).fit(found.task.train)
    X = torch.from_numpy(found.task.train).to(hasher.mean_.device) - hasher.mean_
    first, last = (overlaps(X, normalize(W)).argmax(1) for W in (start.weights_, hasher.weights_))
    return {"kept": round((first == last).float().mean().item(), 4)}


def purity(found: Outcome) -> Fields:
    """Return how pure the neighbourhoods are when the codes of the queries are laid out in the plane."""
    return in_percent(neighbour_purity(embed(found.queries, found.seed), _labels(found.task)[0]))
