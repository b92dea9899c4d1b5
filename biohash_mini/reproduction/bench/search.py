"""Search and evaluation beside their peers.

Codes of the sizes asked for are drawn with the unit popularity of a BioHash layer trained on the embedded MNIST sample:
k distinct units a code, one after the other, each by its share of that sample's codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numba import njit

from ...codes import Codes, DenseCodes, SparseCodes
from ...datasets import load
from ...hashers import BioHash
from ...metrics import mean_average_precision
from ...search import HammingIndex
from . import process

SIZES = [(50_000, 16, 320), (50_000, 16, 3200), (50_000, 32, 6400)]  # n, k, m
SIZES += [(500_000, 16, 320), (500_000, 16, 3200), (1_000_000, 32, 6400)]
BITS = (16, 32, 64, 128, 256, 512)
PEERS = {"faiss": "faiss-cpu", "usearch": "usearch", "sparse_dot_topn": "sparse-dot-topn", "ranx": "ranx"}
SEARCH = ("faiss", "usearch", "sparse_dot_topn")
Calls = dict[str, Callable[[], Any]]


@njit(cache=True)
def _draw(rng, shares, n, k):
    """Return n rows of k distinct units, shape (n, k), drawn one after the other by their cumulative shares."""
    out, last = np.empty((n, k), np.int64), np.full(len(shares), -1)
    for i in range(n):
        j = 0
        while j < k:
            unit = min(np.searchsorted(shares, rng.random()), len(shares) - 1)
            if last[unit] != i:
                last[unit] = i
                out[i, j] = unit
                j += 1
    return out


@cache
def _popularity(k: int, m: int, images: int) -> np.ndarray:
    """Return how often each unit of a layer trained on so many embedded images is on, cumulated to 1, shape (m,)."""
    X = load("mnist", "mini").retrieval_task(seed=0).database[:images]
    units = BioHash(k, activity=k / m, seed=0).fit(X).encode(X).array
    times = np.bincount(units.ravel(), minlength=m) + 1 / images  # a unit that never won is drawn hardly ever
    return np.cumsum(times / times.sum())


def drawn_codes(n: int, k: int, m: int, queries: int, images: int = 10_000) -> tuple[SparseCodes, SparseCodes]:
    """Return n codes and some queries, k of m units on, with the unit popularity of a layer trained on real images."""
    both = _draw(np.random.default_rng(0), _popularity(k, m, images), n + queries, k)
    return SparseCodes(both[:n], m), SparseCodes(both[n:], m)


def random_bits(n: int, m: int, queries: int) -> tuple[DenseCodes, DenseCodes]:
    """Return n codes and some queries of m fair bits."""
    both = np.random.default_rng(0).integers(0, 256, (n + queries, m // 8), dtype=np.uint8)
    return DenseCodes(both[:n], m), DenseCodes(both[n:], m)


def _search_calls(peer: str, database: Codes, queries: Codes, tops: list[int], threads: int) -> Calls:
    """Return what a peer, or ours, is timed on: building, a search for each top, one query alone."""
    packed, asked = database.packed(), queries.packed()
    search: Callable[[Any, int], Any]
    if peer == "ours":
        index = HammingIndex(database)
        both = {True: queries[:1], False: queries}
        calls: Calls = {"build": lambda: HammingIndex(database)}
        search = lambda one, top: index.search(both[one], top)  # noqa: E731
    elif peer == "faiss":
        import faiss

        faiss.omp_set_num_threads(threads)
        flat = database.to_faiss()
        calls = {"build": lambda: faiss.IndexBinaryFlat(flat.d).add(packed)}
        search = lambda one, top: flat.search(asked[:1] if one else asked, top)  # noqa: E731
    elif peer == "usearch":
        from usearch.index import MetricKind, ScalarKind
        from usearch.index import search as exact

        kinds: dict[str, Any] = {"exact": True, "threads": threads, "dtype": ScalarKind.B1}
        calls = {}
        search = lambda one, top: exact(packed, asked[:1] if one else asked, top, MetricKind.Hamming, **kinds)  # noqa: E731
    else:
        import scipy.sparse as sp
        from sparse_dot_topn import sp_matmul_topn

        A, B = (sp.csr_matrix(c.to_matrix()).astype(np.float32) for c in (queries, database))
        calls, B = {}, B.T.tocsr()
        search = lambda one, top: sp_matmul_topn(A[:1] if one else A, B, top, sort=True, n_threads=threads)  # noqa: E731
    calls |= {f"top {top}": lambda top=top: search(False, top) for top in tops}  # type: ignore[misc]
    return calls | {"one query": lambda: search(True, tops[0])}


def _map_calls(peer: str, database: Any, queries: Any, tops: list[int], threads: int) -> Calls:
    """Return the one call that evaluates mAP: ours, by sorting every row, or of ranx on a ranking it is given."""
    at, labels, asked = tops[0], np.arange(len(database)) % 10, np.arange(len(queries)) % 10
    if peer == "ours":
        return {"mAP": lambda: mean_average_precision(queries, database, asked, labels, at)}
    if peer == "sorting":  # as published evaluators do: distances by a product, the row sorted, precision at the hits
        A, B = (2 * c.to_matrix().toarray().astype(np.float32) - 1 for c in (queries, database))

        def one(q: int) -> float:
            near = np.argsort((B.shape[1] - A[q] @ B.T) / 2, kind="stable")
            hits = np.flatnonzero((labels == asked[q])[near][:at])
            return float(np.mean(np.arange(1, len(hits) + 1) / (hits + 1))) if len(hits) else 0.0

        return {"mAP": lambda: np.mean([one(q) for q in range(len(A))])}
    from ranx import evaluate

    distances, ids = HammingIndex(database).search(queries, at)
    run = np.stack([ids, 1e4 - distances], axis=2).astype(np.float64)
    truth = np.stack([np.stack([np.flatnonzero(labels == q), np.ones(sum(labels == q))], 1) for q in asked])
    return {"mAP": lambda: evaluate(truth, run, f"map@{at}", threads=threads)}


def seconds_of(peer: str, folder: str, task: dict) -> dict[str, float]:
    """Return the seconds that one peer takes per call on the codes of a folder, the best of some repeats."""
    database, queries = (Codes.load(Path(folder) / f"{name}.safetensors") for name in ("database", "queries"))
    asked = min(len(queries), task["asked"].get(peer, len(queries)))  # slow peers answer fewer, and are scaled
    calls = _map_calls if task["kind"] == "mAP" else _search_calls
    found = calls(peer, database, queries[:asked], task["top"], task["threads"])
    scale = {name: 1.0 if name in ("build", "one query") else len(queries) / asked for name in found}
    return {name: scale[name] * process.best_seconds(call, task["repeats"]) for name, call in found.items()}


def _rows(about: dict, peers: tuple[str, ...], targets: dict[str, float], codes: tuple, task: dict) -> Iterator[dict]:
    """Yield a row for each call that ours and the peers were timed on: what, size, call, target, seconds of all."""
    with TemporaryDirectory() as folder:
        for name, part in zip(("database", "queries"), codes, strict=True):
            part.save(Path(folder) / f"{name}.safetensors")
        found = {
            peer: process.apart(__name__, "seconds_of", task["threads"], peer=peer, folder=folder, task=task)
            for peer in ("ours", *peers)
            if peer not in PEERS or find_spec(peer)
        }
    for call in found["ours"]:
        seconds = {peer: found.get(peer, {}).get(call) for peer in ("ours", *peers)}
        yield {**about, "call": call, "target": targets.get(call, targets["search"]), "took": seconds}


def sparse(quick: bool, threads: int, sizes: Sequence[Sequence[int]] = SIZES) -> Iterator[dict]:
    """Yield the rows of searches in sparse codes."""
    few, repeats, images = (20, 1, 500) if quick else (1000, 3, 10_000)
    task = {"kind": "search", "asked": {"usearch": 100}, "threads": threads, "repeats": repeats}
    task["top"] = [10, 100] if quick else [10, 100, 1000]
    for n, k, m in [(2000, 4, 400)] if quick else sizes:
        about = {"what": "sparse search", "n": n, "k": k, "m": m, "queries": few}
        targets = {"search": 2.0, "build": 1.0, "one query": 1.0}
        yield from _rows(about, SEARCH, targets, drawn_codes(n, k, m, few, images), task)


def dense(quick: bool, threads: int) -> Iterator[dict]:
    """Yield the rows of searches in dense codes."""
    few, repeats = (20, 1) if quick else (1000, 3)
    top = [10, 100] if quick else [10, 100, 1000]
    task = {"kind": "search", "asked": {}, "threads": threads, "repeats": repeats, "top": top}
    for n in [1000] if quick else [50_000, 500_000]:
        for m in BITS[:1] if quick else BITS:
            about = {"what": "dense search", "n": n, "k": m, "m": m, "queries": few}
            found = _rows(about, ("faiss",), {"search": 1.0}, random_bits(n, m, few), task)
            yield from (row for row in found if row["call"] != "build")


def evaluation(quick: bool, threads: int) -> Iterator[dict]:
    """Yield the rows of mAP."""
    n, asked, images = (1000, 100, 500) if quick else (50_000, 10_000, 10_000)
    task = {"kind": "mAP", "top": [1000], "asked": {"sorting": 200, "ranx": 100}, "threads": threads}
    for k in (2,) if quick else (2, 16, 64):
        codes = drawn_codes(n, k, 20 * k, asked, images)
        for peer, target in (("sorting", 20.0), ("ranx", 5.0)):
            about = {"what": f"mAP, {peer}", "n": n, "k": k, "m": 20 * k, "queries": asked}
            yield from _rows(about, (peer,), {"search": target}, codes, {**task, "repeats": 1 if quick else 3})
