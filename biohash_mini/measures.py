"""How a cell of a table is measured: the methods by name, and one function for each kind of table.

A measuring function takes the experiment, the cell and the profile, and returns the values of the rows it fills.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from .codes import Codes
from .datasets import FEATURES, Task, load, nearest
from .hashers import (
    DH,
    ITQ,
    LSH,
    UHBNN,
    BioConvHash,
    BioHash,
    FlyHash,
    GreedyHash,
    Hasher,
    NaiveBioHash,
    PCAHash,
    SOLHash,
    SpectralHash,
)
from .metrics import functional_smoothness, mean_average_precision, tie_bounds
from .paper import ACTIVITY_USED, CHANNEL_WINNERS_USED
from .plasticity import energy

if TYPE_CHECKING:
    from .tables import Experiment

#: The methods of the tables by their names there. A class registered here appears in every table.
METHODS: dict[str, type[Hasher]] = {
    "LSH": LSH,
    "PCAHash": PCAHash,
    "FlyHash": FlyHash,
    "SH": SpectralHash,
    "ITQ": ITQ,
    "NaiveBioHash": NaiveBioHash,
    "BioHash": BioHash,
    "BioConvHash": BioConvHash,
}
#: Methods that stand only in the tables that name them, as in the paper.
RIVALS: dict[str, type[Hasher]] = {
    "DH": DH,
    "UH-BNN": UHBNN,
    "GreedyHash": GreedyHash,
    "GreedyHash on pixels": GreedyHash,
    "SOLHash": SOLHash,
}


class Cell(NamedTuple):
    """What is measured at a time."""

    method: str
    hash_length: int
    seed: int


_PASSES = 4  # of the layer of BioConvHash: the time that one core has; with many units mean norms end above 1.06
#: What is set for a method on a data set: what the paper prints, unless a comment says otherwise.
_SETTINGS: dict[tuple[str, str], dict] = {
    **{("BioHash", data): {"activity": activity} for data, activity in ACTIVITY_USED.items()},
    **{("BioHash", data): {"activity": ACTIVITY_USED["cifar10"]} for data in FEATURES},
    ("BioHash", "glove"): {"activity": ACTIVITY_USED["glove"], "norm_tol": 0.0},  # ours: the whole schedule
    ("BioConvHash", "mnist"): {"channel_winners": CHANNEL_WINNERS_USED["mnist"], "max_epochs": _PASSES},
    ("BioConvHash", "cifar10"): {
        "kernel_sizes": (3, 4, 10),
        "n_filters": 400,
        "delta": (0.1, 0.2, 0.2),
        "channel_winners": CHANNEL_WINNERS_USED["cifar10"],
        "activity": ACTIVITY_USED["cifar10"],  # that of BioHash: the paper prints none for this layer
        "max_epochs": _PASSES,
    },
}


def make_hasher(method: str, hash_length: int, seed: int, data: str) -> Hasher:
    """Return an unfitted hasher with the paper's settings for a data set."""
    return (METHODS | RIVALS)[method](hash_length, seed=seed, **_SETTINGS.get((method, data), {}))


def keep_last(function: Callable) -> Callable:
    """Return the function with a memory of its last result, which it lets go before it computes another."""
    last = {}

    @wraps(function)
    def remembering(*args: object, **kwargs: object) -> object:
        key = args, tuple(sorted(kwargs.items()))
        if key not in last:
            last.clear()
            last[key] = function(*args, **kwargs)
        return last[key]

    return remembering


@lru_cache(maxsize=1)
def retrieval_task(data: str, profile: str, seed: int) -> Task:
    """Return the task of a data set with queries sampled by ``seed``; the last one is kept in memory."""
    return load(data, profile).retrieval_task(seed=seed)


@dataclass
class Hashed:
    """A fitted hasher, its codes of a task, and what that took."""

    hasher: Hasher
    queries: Codes
    database: Codes
    facts: dict


def hash_task(hasher: Hasher, task: Task, amend: Callable[[Hasher], None] | None = None) -> Hashed:
    """Return the hasher fitted to a task, and amended if so wished, with the codes of queries and database."""
    if isinstance(hasher, BioConvHash):
        return hash_images(hasher, task)
    if isinstance(hasher, FlyHash) and amend is None:
        return hash_expansion(hasher, task)
    start = time.perf_counter()
    hasher.fit(task.train)
    if amend is not None:
        amend(hasher)
    fitted = time.perf_counter()
    queries, database = hasher.encode(task.queries), hasher.encode(task.database)
    took = {"seconds_fit": fitted - start, "seconds_encode": time.perf_counter() - fitted}
    return Hashed(hasher, queries, database, _facts(hasher, database, task, took))


def hash_expansion(hasher: FlyHash, task: Task) -> Hashed:
    """Return the same for FlyHash, whose projection, most of the work, is kept for the next hash length."""
    params = {name: value for name, value in hasher.get_params().items() if name != "hash_length"}
    k, m = hasher.hash_length, round(hasher.expansion * task.train.shape[1])
    lengths = tuple(sorted({k, *(length for length in _LENGTHS if length <= m)}))
    expanded, queries, database, took = _expand(task, lengths, **params)
    vars(hasher).update({name: value for name, value in vars(expanded).items() if name.endswith("_")})
    return Hashed(hasher, queries[k], database[k], _facts(hasher, database[k], task, took))


_LENGTHS = (2, 4, 8, 16, 32, 64)  # those of the tables


@keep_last
def _expand(task: Task, lengths: tuple[int, ...], **params: object) -> tuple[FlyHash, dict, dict, dict]:
    """Return the fitted hasher, the codes of queries and database by hash length, and the seconds for all of them."""
    start = time.perf_counter()
    hasher = FlyHash(max(lengths), **params).fit(task.train)
    fitted = time.perf_counter()
    codes = hasher.encode_lengths(task.queries, lengths), hasher.encode_lengths(task.database, lengths)
    return hasher, *codes, {"seconds_fit": fitted - start, "seconds_encode": time.perf_counter() - fitted}


def hash_images(hasher: BioConvHash, task: Task) -> Hashed:
    """Return the same for a task on images; what comes before the layer is kept for the next hash length."""
    before = {name: value for name, value in hasher.get_params().items() if name not in _OF_THE_LAYER}
    convolved, queries, database, took = _convolve(task, **before)
    vars(hasher).update({name: value for name, value in vars(convolved).items() if name.endswith("_")})
    start = time.perf_counter()
    hasher.fit_layer(database)
    fitted = time.perf_counter()
    codes = hasher.encode_levels(queries), hasher.encode_levels(database)
    took = {"seconds_fit": fitted - start, "seconds_encode": time.perf_counter() - fitted} | took
    norms = torch.cat([hasher.filters(size).norm(dim=1) for size in hasher.kernel_sizes])
    facts = {"filter_norms": [round(norm.item(), 3) for norm in (norms.median(), norms.max())]}
    return Hashed(hasher, *codes, facts | _facts(hasher, codes[1], task, took))


_OF_THE_LAYER = {"hash_length", "activity", "learning_rate", "reduction", "max_epochs", "norm_tol"}


@keep_last
def _convolve(task: Task, **params: object) -> tuple[BioConvHash, torch.Tensor, torch.Tensor, dict]:
    """Return the hasher with its filters, the features of queries and database, and the seconds of both stages."""
    queries, database = (X.reshape(-1, *task.image_shape) for X in (task.queries, task.database))
    start = time.perf_counter()
    hasher = BioConvHash(**params).fit_filters(database)
    learned = time.perf_counter()
    levels = hasher.levels(queries), hasher.levels(database)
    return hasher, *levels, {"seconds_filters": learned - start, "seconds_features": time.perf_counter() - learned}


def _facts(hasher: Hasher, database: Codes, task: Task, took: dict[str, float]) -> dict:
    """Return what a record says of a fitted hasher."""
    facts = {
        "params": hasher.get_params(),
        "device": str(hasher.mean_.device),
        "n_units": database.n_units,
        "bits_per_item": database.bits_per_item,
        "data_sha256": task.sha256,
    }
    if norms := getattr(hasher, "mean_norms_", None):
        facts |= {"epochs": len(norms), "mean_norm": round(norms[-1], 4)}
    return facts | {stage: round(seconds, 3) for stage, seconds in took.items()}


@keep_last
def hashed(data: str, profile: str, method: str, hash_length: int, seed: int, **changes: object) -> Hashed:
    """Return a method fitted to the task of a table; the last one is kept, so that a second table need not fit it.

    ``changes`` are parameters that differ from the paper's settings.
    """
    hasher = make_hasher(method, hash_length, seed, data).set_params(**changes)
    return hash_task(hasher, retrieval_task(data, profile, seed))


def in_percent(value: float, best: float | None = None, worst: float | None = None) -> dict:
    """Return a measured fraction as the fields of a record, in percent."""
    fields = {"value": value, "best": best, "worst": worst}
    return {name: None if v is None else round(100 * v, 4) for name, v in fields.items()}


def class_retrieval(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP where items of the query's class are relevant."""
    task = retrieval_task(exp.data, profile, cell.seed)
    h = hashed(exp.data, profile, *cell)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | h.facts}


def validation_activity(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP of BioHash at the activity that the row names, on the validation split; the queries stay untouched."""
    task = retrieval_task(exp.data, profile, cell.seed).validation(seed=cell.seed)
    h = hash_task(BioHash(cell.hash_length, activity=activity_of(cell.method), seed=cell.seed), task)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | h.facts}


def activity_row(activity: float) -> str:
    """Return the name of the row of an activity: 0.05 is "a=5%"."""
    return f"a={100 * activity:g}%"


def activity_of(row: str) -> float:
    """Return the activity that a row names."""
    return float(row.removeprefix("a=").removesuffix("%")) / 100


def smoothness(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return functional smoothness over pairs of queries, a query with itself included (as in the paper) and not."""
    task = retrieval_task(exp.data, profile, cell.seed)
    h = hash_task(make_hasher(*cell, exp.data), task)
    X = task.queries - h.hasher.mean_.cpu().numpy()
    both = functional_smoothness(X, h.queries), functional_smoothness(X, h.queries, self_pairs=False)
    return {
        row: in_percent(with_self) | {"without_self_pairs": round(100 * without, 4)} | h.facts
        for row, with_self, without in zip(exp.rows(cell.method), *both, strict=True)
    }


def pixel_neighbours(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP@100 where the 100 nearest in pixel space are relevant: 10,000 images, each in turn the query.

    A query finds itself and AP divides by the relevant items retrieved; ``without_query`` and ``by_relevant`` are
    mAP when it is left out, and then also divided by all relevant items.
    """
    task = neighbour_task(exp.data, profile, cell.seed)
    truth = pixel_truth(exp.data, profile, cell.seed)
    h = hash_task(make_hasher(*cell, exp.data), task)
    found, alone = (h.queries, h.database), {"at": exp.at, "exclude": np.arange(len(truth)), "neighbours": truth[:, 1:]}
    others = {
        "without_query": mean_average_precision(*found, **alone),
        "by_relevant": mean_average_precision(*found, **alone, divisor="relevant"),
    }
    scores = in_percent(*tie_bounds(*found, at=exp.at, neighbours=truth))
    return {cell.method: scores | {name: round(100 * v, 4) for name, v in others.items()} | h.facts}


@lru_cache(maxsize=1)
def neighbour_task(data: str, profile: str, seed: int) -> Task:
    """Return the SOLHash protocol: random rows that are learned from, searched, and each in turn the query."""
    task = load(data, profile).word_task(seed=seed)
    return replace(task, train=task.database)


@lru_cache(maxsize=1)
def pixel_truth(data: str, profile: str, seed: int, top: int = 100) -> np.ndarray:
    """Return the nearest images of each query of :func:`neighbour_task` by Euclidean distance, shape (q, top)."""
    task = neighbour_task(data, profile, seed)
    return nearest(task.queries, task.database, top)


def training_time(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return the seconds of training, of all its stages, and the energy that BioHash reached."""
    task = retrieval_task(exp.data, profile, cell.seed)
    h = hash_task(make_hasher(*cell, exp.data), task)
    stages = ("seconds_filters", "seconds_features", "seconds_fit")  # BioConvHash has all three
    values = {"value": round(sum(h.facts.get(stage, 0) for stage in stages), 3)}
    if isinstance(h.hasher, BioHash):
        X = torch.from_numpy(task.train).to(h.hasher.mean_.device) - h.hasher.mean_
        values["energy"] = round(energy(X, h.hasher.weights_).item(), 4)
    return {cell.method: values | h.facts}


def tsne(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return how pure the neighbourhoods are when the codes of the queries are laid out in the plane."""
    task = retrieval_task(exp.data, profile, cell.seed)
    h = hash_task(make_tsne_hasher(cell.hash_length, cell.seed), task)
    purity = neighbour_purity(embed(h.queries, cell.seed), task.query_labels)
    return {cell.method: in_percent(purity) | h.facts}


def make_tsne_hasher(hash_length: int, seed: int, n_units: int = 160) -> BioHash:
    """Return the hasher of figure 5: a fixed number of units, of which ``hash_length`` are on."""
    return BioHash(hash_length, activity=hash_length / n_units, seed=seed)


def embed(codes: Codes, seed: int) -> np.ndarray:
    """Return a tSNE embedding of the codes by their Hamming distances, shape (n, 2)."""
    D = codes.hamming(codes).astype(np.float32)
    return TSNE(metric="precomputed", init="random", perplexity=30, random_state=seed).fit_transform(D)


def neighbour_purity(points: np.ndarray, labels: np.ndarray, neighbours: int = 10) -> float:
    """Return the mean share of a point's nearest neighbours in the plane that have its label."""
    ids = NearestNeighbors(n_neighbors=neighbours + 1).fit(points).kneighbors(return_distance=False)[:, :neighbours]
    return float((labels[ids] == labels[:, None]).mean())
