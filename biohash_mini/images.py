"""How tables on images are measured: convolutions, shadows, features of pretrained networks."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from .codes import Codes
from .data.sources import cache_path, find
from .datasets import Task, load, nearest, pool_positions
from .features import extract, pretrained
from .hashers import BioConvHash, BioHash, Hasher
from .hashers.pca import principal_axes
from .measures import Cell, hash_task, hashed, in_percent, make_hasher, retrieval_task
from .metrics import average_precision, mean_average_precision, tie_bounds
from .paper import ACTIVITY_USED, CHANNEL_WINNERS_USED
from .storage import load_arrays

if TYPE_CHECKING:
    from .tables import Experiment


def channel_inhibition(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP of BioConvHash where the row names the channels that stay active at a position (k_CI)."""
    task = retrieval_task(exp.data, profile, cell.seed)
    winners = int(cell.method)
    changes = {} if winners == CHANNEL_WINNERS_USED[exp.data] else {"channel_winners": winners}
    h = hashed(exp.data, profile, "BioConvHash", cell.hash_length, cell.seed, **changes)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | h.facts}


def inhibition_on_part(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return the same with 10,000 images in the database and 1,000 queries.

    The activity is MNIST's, 5%: a tenth of the units, which the few minibatches are enough to teach.
    """
    return _on_part(exp, cell, profile, channel_winners=int(cell.method), activity=ACTIVITY_USED["mnist"])


def validation_channels(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP on the validation split, to choose k_CI by; the queries of the table stay untouched.

    Of MNIST 10,000 digits are searched, which tell the rows apart; of CIFAR-10 all, at the activity of its table.
    """
    size = 10_000 if exp.data == "mnist" else 49_000
    return _on_part(exp, cell, profile, size=size, validation=True, channel_winners=int(cell.method))


def filter_training(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP of BioConvHash, 10,000 images in the database; the row names k_CI and the patches learned from."""
    winners, patches = row_numbers(cell.method)
    return _on_part(exp, cell, profile, channel_winners=winners, n_patches=patches)


def centring(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return the same, where the row names k_CI and whether the mean of the features is subtracted."""
    winners, how = cell.method.removeprefix("k_CI=").split(", ")
    return _on_part(exp, cell, profile, channel_winners=int(winners), center=how == "centred")


def layer_step(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return the same, where the layer takes BioHash's step and rate on pixels; the row names k_CI and the passes."""
    winners, passes = row_numbers(cell.method)
    changes = {"channel_winners": winners, "max_epochs": passes}
    return _on_part(exp, cell, profile, reduction="max", learning_rate=BioHash().learning_rate, **changes)


def _on_part(
    exp: Experiment, cell: Cell, profile: str, size: int = 10_000, validation: bool = False, **changes: object
) -> dict[str, dict]:
    task = small_task(exp.data, profile, cell.seed, size, validation=validation)
    h = hash_task(make_hasher("BioConvHash", cell.hash_length, cell.seed, exp.data).set_params(**changes), task)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | h.facts}


def training_row(winners: int, patches: int) -> str:
    """Return the name of a row: "k_CI=10, 2000 patches"."""
    return f"k_CI={winners}, {patches} patches"


def row_numbers(row: str) -> tuple[int, int]:
    """Return the two numbers in the name of a row: k_CI, and the patches or passes."""
    winners, amount = map(int, re.findall(r"\d+", row))
    return winners, amount


@lru_cache(maxsize=1)
def small_task(
    data: str, profile: str, seed: int, size: int = 10_000, n_queries: int = 1_000, validation: bool = False
) -> Task:
    """Return the task of a table with its first queries and a random part of its database, which also trains.

    With ``validation`` the queries are those of the validation split, taken from the database.
    """
    task = retrieval_task(data, profile, seed)
    task = task.validation(seed=seed) if validation else task
    rows = np.sort(np.random.default_rng(seed).permutation(len(task.database))[:size])
    database = task.database[rows]
    return replace(
        task,
        database=database,
        train=database,
        database_labels=task.database_labels[rows],
        queries=task.queries[:n_queries],
        query_labels=task.query_labels[:n_queries],
        database_ids=None,
        query_ids=None,
    )


def shadows(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP with shadows on the queries, the database as it was; ``clean`` is mAP without them.

    Rows in ``ON_FEATURES`` hash what VGG16 makes of the images, all others pixels.
    """
    method = ON_FEATURES.get(cell.method, cell.method)
    deep = cell.method in ON_FEATURES
    data = "cifar10-vgg16" if deep else exp.data
    task = retrieval_task(data, profile, cell.seed)
    h = hashed(data, profile, method, cell.hash_length, cell.seed)
    dark = dark_features(data, profile, cell.seed) if deep else shadow(task.queries.reshape(-1, *task.image_shape))
    codes = _encode_images(h.hasher, dark)
    truth = task.query_labels, task.database_labels, exp.at
    clean = mean_average_precision(h.queries, h.database, *truth)
    return {
        cell.method: in_percent(*tie_bounds(codes, h.database, *truth)) | {"clean": round(100 * clean, 4)} | h.facts
    }


def shadow(images: np.ndarray, strength: float = 0.3, area: float = 0.8, side: str = "lower") -> np.ndarray:
    """Return the images, shape (n, c, h, w), with a part of each, ``area`` of its rows or columns, times ``strength``.

    The part lies at the ``side`` of the image that is named: lower, upper, left or right.
    """
    axis = 2 if side in ("lower", "upper") else 3
    light = round((1 - area) * images.shape[axis])
    dark = slice(light, None) if side in ("lower", "right") else slice(None, images.shape[axis] - light)
    out = images.copy()
    out[(slice(None),) * axis + (dark,)] *= strength
    return out


#: Which part of a query lies in shadow, in the rows of ``shadow-sides``.
SIDES = ("lower", "upper", "left", "right")


def shadow_sides(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP with shadows on the queries, where the row names the method and the part that lies in shadow."""
    method, side = cell.method.split(", ")
    task = retrieval_task(exp.data, profile, cell.seed)
    h = hashed(exp.data, profile, method, cell.hash_length, cell.seed)
    codes = _encode_images(h.hasher, shadow(task.queries.reshape(-1, *task.image_shape), side=side))
    scores = tie_bounds(codes, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | h.facts}


def _encode_images(hasher: Hasher, images: np.ndarray) -> Codes:
    """Return the codes of images, shape (n, c, h, w), or of vectors, shape (n, d), by a method for either."""
    return hasher.encode(images if isinstance(hasher, BioConvHash) else images.reshape(len(images), -1))


#: Rows of the table of shadows whose input are features of VGG16, and the method of each.
ON_FEATURES = {"GreedyHash": "GreedyHash", "BioHash on VGG16": "BioHash"}


@lru_cache(maxsize=1)
def dark_features(data: str, profile: str, seed: int) -> np.ndarray:
    """Return a network's features of the queries of a seed, each in shadow, float32 of shape (q, d).

    They are made as those of ``data`` were, and kept beside them.
    """
    task, pixels = retrieval_task(data, profile, seed), load("cifar10", profile)
    images = pixels.vectors(task.query_ids).reshape(-1, *pixels.image_shape)
    dark = np.rint(255 * shadow(images)).astype(np.uint8)
    _, about = load_arrays(find(data))
    name, layer = about["network"], about["layer"]
    path = cache_path(f"{data}-{layer}-shadows-{seed}")
    facts = {"network": name, "layer": layer, "data": f"queries of seed {seed} in shadow"}
    extract(dark, pretrained(name, layer), path, side=about["side"], batch_size=about["batch_size"], about=facts)
    X = load_arrays(path)[0]["X"]
    return (pool_positions(X, name) if layer == "pool5" else X).astype(np.float32)


@lru_cache(maxsize=1)
def _feature_facts(data: str, profile: str, seed: int, at: int) -> dict:
    """Return the layer that features come from, and ``no_hash``: their mAP in %, ranked by cosine without a hash."""
    return {"layer": load(data, profile).layer, "no_hash": no_hash(retrieval_task(data, profile, seed), at)}


def no_hash(task: Task, at: int) -> float:
    """Return mAP in % of the ranking by cosine of the vectors themselves: the ceiling of their hashes."""
    ids = nearest(task.queries, task.database, at, metric="cosine")
    found = task.database_labels[ids] == task.query_labels[:, None]
    scores = average_precision(np.tile(np.arange(at), (len(found), 1)), found)
    return round(100 * float(scores.mean()), 4)


def on_features(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP by class of hashed features, beside that of the features themselves."""
    task = retrieval_task(exp.data, profile, cell.seed)
    h = hashed(exp.data, profile, *cell)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    facts = _feature_facts(exp.data, profile, cell.seed, exp.at)
    return {cell.method: in_percent(*scores) | facts | h.facts}


#: Names of what may be made of the last map of a network. Its mean over positions, all of it, or leading components.
KINDS = ("pooled", "pooled, whitened", "pool5", "pool5, components", "pool5, whitened")


def map_kinds(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP of BioHash on what the row makes of the last map, on the validation split; queries stay untouched."""
    task = kind_task(exp.data, profile, cell.seed, cell.method)
    h = hash_task(BioHash(cell.hash_length, activity=ACTIVITY_USED["cifar10"], seed=cell.seed), task)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | {"no_hash": no_hash(task, exp.at)} | h.facts}


@lru_cache(maxsize=1)
def kind_task(data: str, profile: str, seed: int, kind: str, rank: int = 512) -> Task:
    """Return the validation split of a network's features, as one of ``KINDS``.

    "components" are the ``rank`` leading principal ones; "whitened", they are also scaled to variance one. The embedded
    sample has a map of one position.
    """
    layer, _, change = kind.partition(", ")
    features = load(data, profile, pool=layer == "pooled")
    if profile == "full" and f" {layer}," not in features.layer:
        raise ValueError(f"{kind!r} needs pool5, and there is {features.layer}: see `biohash features --help`")
    task = features.retrieval_task(seed=seed).validation(seed=seed)
    if not change:
        return task
    X, Q = torch.from_numpy(task.database), torch.from_numpy(task.queries)
    mean = X.mean(0)
    axes = principal_axes(X - mean, min(rank, X.shape[1])).to(X)
    X, Q = (X - mean) @ axes.T, (Q - mean) @ axes.T
    scale = X.std(0) + 1e-6 if change == "whitened" else torch.ones(())
    return replace(task, database=(X / scale).numpy(), queries=(Q / scale).numpy(), train=None)
