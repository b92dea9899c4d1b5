"""The tasks that the tables set: what is learned from, what is searched, what is asked, and what is true.

A function takes a data set, a profile and a seed. The last task of each kind is kept, since many trials share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from ..datasets import Task, find, load, nearest
from ..datasets.networks import extract, pretrained
from ..datasets.sources import cache_path
from ..datasets.tasks import pool_positions
from ..hashers.pca import principal_axes
from ..storage import load_arrays
from .variants import VARIANTS

keep = lru_cache(maxsize=1)


@keep
def retrieval_task(data: str, profile: str, seed: int) -> Task:
    """Return the task of finding items of the query's class, with queries sampled by ``seed``."""
    return load(data, profile).retrieval_task(seed=seed)


@keep
def validation_task(data: str, profile: str, seed: int) -> Task:
    """Return the validation split of that task; its queries stay untouched."""
    return retrieval_task(data, profile, seed).validation(seed=seed)


@keep
def part_task(data: str, profile: str, seed: int, size: int = 10_000, validation: bool = False) -> Task:
    """Return the task of a table, or its validation split, with 1,000 queries and a random part of the database."""
    task = (validation_task if validation else retrieval_task)(data, profile, seed)
    rows = np.sort(np.random.default_rng(seed).permutation(len(task.database))[:size])
    labels = task.database_labels[rows], task.query_labels[:1_000]
    part = Task(task.database[rows], task.queries[:1_000], *labels)
    return replace(part, image_shape=task.image_shape, sha256=task.sha256)


@keep
def with_inputs(task: Task, inputs: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Task:
    """Return the task after ``inputs(rows, database)`` has changed queries and database, which also trains."""
    queries, database = (inputs(X, task.database) for X in (task.queries, task.database))
    return replace(task, database=database, queries=queries, train=None)


@keep
def prepared_task(data: str, profile: str, seed: int, variant: str, validation: bool = False) -> Task:
    """Return the retrieval task, or its validation split, after a variant's transformer, fitted to the database."""
    task = (validation_task if validation else retrieval_task)(data, profile, seed)
    if (stage := VARIANTS[variant](task.image_shape, seed)) is None:
        return task
    database = stage.fit_transform(task.database)
    return replace(task, database=database, queries=stage.transform(task.queries), train=None, image_shape=None)


@keep
def neighbour_task(data: str, profile: str, seed: int) -> Task:
    """Return the SOLHash protocol: random rows that are learned from, searched, and each in turn the query."""
    task = load(data, profile).word_task(seed=seed)
    return replace(task, train=task.database)


@keep
def word_task(data: str, profile: str, seed: int) -> Task:
    """Return a random partition into words to learn from and words that are searched, each in turn the query."""
    return load(data, profile).word_task(seed=seed)


@keep
def word_validation_task(data: str, profile: str, seed: int) -> Task:
    """Return the task to choose by: a random quarter of the words to learn from is searched, the other ones train."""
    task = word_task(data, profile, seed)
    order = np.random.default_rng(seed).permutation(len(task.train))
    searched, rest = np.split(order, [len(order) // 4])
    words = task.train[searched]
    return replace(task, database=words, queries=words, train=task.train[rest], database_ids=None, query_ids=None)


@lru_cache(maxsize=2)
def neighbours(task: Task, top: int, metric: str) -> np.ndarray:
    """Return the nearest rows of the database to each query, nearest first, shape (q, top)."""
    return nearest(task.queries, task.database, top, metric)


@keep
def map_task(data: str, profile: str, seed: int, layer: str, whiten: bool | None = None, rank: int = 512) -> Task:
    """Return the validation split on what can be made of a network's last map.

    The ``layer`` is "pooled", the mean of the map over its positions, or "pool5", all of it; the embedded sample has a
    map of one position. With ``whiten=False`` only the ``rank`` leading principal components are kept; with True they
    also have variance one.
    """
    dataset = load(data, profile, pool=layer == "pooled")
    if profile == "full" and f" {layer}," not in dataset.layer:
        raise ValueError(f"{layer} is needed, and there is {dataset.layer}: see `biohash features --help`")
    task = dataset.retrieval_task(seed=seed).validation(seed=seed)
    return task if whiten is None else _components(task, rank, whiten)


@keep
def deep_task(data: str, profile: str, seed: int, rank: int = 512) -> Task:
    """Return the task on a network's fc7 or, where that was not extracted, on the leading components of pool5.

    Of what can be made of the convolutions they come nearest to fc7 on the validation split. The embedded sample has a
    pooled map, which is taken as it is.
    """
    dataset = load(data, profile, pool=False)
    if profile == "full" and " pooled," in dataset.layer:
        raise ValueError(f"fc7 or pool5 is needed, and there is {dataset.layer}: see `biohash features --help`")
    task = dataset.retrieval_task(seed=seed)
    return _components(task, rank) if " pool5," in dataset.layer else task


def _components(task: Task, rank: int, whiten: bool = False) -> Task:
    """Return the task on the leading principal components of its database, of variance one if whitened."""
    X, Q = torch.from_numpy(task.database), torch.from_numpy(task.queries)
    mean = X.mean(0)
    axes = principal_axes(X - mean, min(rank, X.shape[1])).to(X)
    X, Q = (X - mean) @ axes.T, (Q - mean) @ axes.T
    scale = X.std(0) + 1e-6 if whiten else torch.ones(())
    return replace(task, database=(X / scale).numpy(), queries=(Q / scale).numpy(), train=None)


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


@keep
def dark_features(data: str, profile: str, seed: int) -> np.ndarray:
    """Return a network's features of the queries of a seed, each in shadow, float32 of shape (q, d).

    They are made as those of ``data`` were, and kept beside them.
    """
    task, pixels = retrieval_task(data, profile, seed), load("cifar10", profile)
    images = pixels.vectors(task.query_ids).reshape(-1, *pixels.image_shape)
    dark = np.rint(255 * shadow(images)).astype(np.uint8)
    _, about = load_arrays(find(data))
    name, layer = about["network"], about["layer"]
    path = cache_path(f"{data}-{layer}-shadows-{seed}" + ("" if profile == "full" else f"-{profile}"))
    facts = {"network": name, "layer": layer, "data": f"queries of seed {seed} in shadow"}
    extract(dark, pretrained(name, layer), path, side=about["side"], batch_size=about["batch_size"], about=facts)
    X = load_arrays(path)[0]["X"]
    return (pool_positions(X, name) if layer == "pool5" else X).astype(np.float32)
