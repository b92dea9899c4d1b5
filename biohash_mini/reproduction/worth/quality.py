"""Quality of a method against its bits and its time, beside the engines of faiss, at equal bits and one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from math import ceil, log2
from typing import Any

import faiss
import numpy as np

from ...codes import Codes
from ...hashers import METHODS, BioHash, Hasher
from ...metrics import average_precision, expected_recall, mean_average_precision, recall
from ...search import HammingIndex
from ..measure import percent
from . import sets

BITS = (32, 64, 128, 256)
UNITS = (64, 256, 1024)  # sizes of BioHash's layer that the validation split chooses among
AMONG, RANKED = 100, 1000  # items in which neighbours are looked for, and over which average precision is taken
WINDOW = 16  # of WTAHash
METHODS_HERE = ("LSH", "ITQ", "SH", "FlyHash", "DenseFly", "WTAHash")
Search = Callable[[int], tuple[np.ndarray, np.ndarray]]


def hasher_of(name: str, bits: int, d: int) -> Hasher | None:
    """Return an unfitted method whose codes of d features take at most so many bits; None if it has none."""
    method: Any = METHODS[name]
    if name == "FlyHash":
        return method(max(1, bits // ceil(log2(10 * d))), center=True)
    if name == "DenseFly":
        return method(bits, activity=1.0)
    if name == "WTAHash":
        return method(bits // ceil(log2(WINDOW)), window=WINDOW)
    return method(bits) if bits <= d else None


def bits_of(hasher: Hasher, codes: Codes) -> int:
    """Return the bits that a code takes; a window of WTAHash names its winner in log2 of its size."""
    windows = getattr(hasher, "window", None)
    return hasher.hash_length * ceil(log2(windows)) if windows else codes.bits_per_item


def score_codes(asked: sets.Asked, queries: Codes, database: Codes) -> dict[str, float | None]:
    """Return recall of the true neighbours and mAP of the classes, in percent, both expected over ties."""
    score = None
    if asked.labels is not None:
        score = percent(mean_average_precision(queries, database, *asked.labels, at=RANKED))
    return {"value": percent(expected_recall(queries, database, asked.truth, AMONG)), "map": score}


def score_found(asked: sets.Asked, search: Search) -> dict[str, float | None]:
    """Return the same of an engine that returns (distances, row numbers) of so many items."""
    distances, ids = search(min(RANKED, len(asked.database)))
    score = None
    if asked.labels is not None:
        q, d = asked.labels
        found = np.where(ids < 0, np.inf, distances)  # an approximate engine may return fewer
        score = percent(average_precision(found, (d[ids] == q[:, None]) & (ids >= 0)).mean())
    return {"value": percent(recall(search(AMONG)[1], asked.truth)), "map": score}


def seconds_of(call: Callable[[], Any], least: float = 0.05) -> float:
    """Return the processor's seconds of a call, which other programs do not lengthen: the mean of many, one unmeasured.

    The calls take ``least`` seconds together, because the clock of a processor may tick in hundredths.
    """
    call()
    start, calls = time.process_time(), 0
    while (took := time.process_time() - start) < least:
        call()
        calls += 1
    return took / calls


def measure_hasher(hasher: Hasher, task: sets.Task, times: bool = True) -> dict[str, Any]:
    """Return scores, bits and microseconds per query (encoding, search) of a fitted hasher on the test queries."""
    asked = task.test
    codes, queries = hasher.encode(asked.database), hasher.encode(asked.queries)
    row: dict[str, Any] = {**score_codes(asked, queries, codes), "bits_per_item": bits_of(hasher, codes)}
    row |= {"hasher": type(hasher).__name__, "params": hasher.get_params(), "n_units": codes.n_units}
    if times:
        index, each = HammingIndex(codes), 1e6 / len(asked.queries)
        row["us_encode"] = each * seconds_of(lambda: hasher.encode(asked.queries))
        row["us_search"] = each * seconds_of(lambda: index.search(queries, AMONG))
    return row


def measure_engine(index: Any, bits: int, asked: sets.Asked, queries: np.ndarray, times: bool = True) -> dict[str, Any]:
    """Return the same of a faiss index that holds the database."""

    def search(top: int) -> tuple[np.ndarray, np.ndarray]:
        return index.search(queries, top)

    row: dict[str, Any] = {**score_found(asked, search), "bits_per_item": bits}
    if times:
        row |= {"us_encode": 0.0, "us_search": 1e6 / len(queries) * seconds_of(lambda: search(AMONG))}
    return row


def padded(X: np.ndarray, multiple: int = 32) -> np.ndarray:
    """Return the rows with zeros behind them, up to a multiple of so many features, which PQ divides into parts."""
    return np.ascontiguousarray(np.pad(X, ((0, 0), (0, -X.shape[1] % multiple))))


def _quantiser(d: int, parts: int) -> Any:
    """Return an untrained index by product quantisation that does not complain of few rows: all learn from the same."""
    index = faiss.IndexPQ(d, parts, 8)
    index.pq.cp.min_points_per_centroid = 1
    return index


def engine_of(name: str, bits: int, d: int) -> Any:
    """Return an untrained faiss index of padded vectors that takes so many bits an item; None if there is none."""
    parts = bits // 8
    inner = min(d, 256)  # to which the data are first brought by principal components, where faiss's own recipes do so
    if name == "PQ":
        return _quantiser(d, parts)
    if name == "OPQ":
        turn: Any = faiss.OPQMatrix(inner, parts)
        turn.niter, turn.kept = 10, _quantiser(inner, parts)
        turn.pq = turn.kept.pq  # else it makes one that complains
        chain = faiss.IndexPreTransform(turn, _quantiser(inner, parts))
        if inner < d:
            chain.prepend_transform(faiss.PCAMatrix(d, inner))
        return chain
    if name == "RaBitQ":  # one bit a component and 64 bits of factors
        if (kept := bits - 64) < 32 or kept > d:
            return None
        return faiss.IndexPreTransform(faiss.PCAMatrix(d, kept, 0, True), faiss.IndexRaBitQ(kept))
    return faiss.IndexFlatL2(d)


ENGINES = ("PQ", "OPQ", "RaBitQ")


def measure_graph(hasher: Hasher, task: sets.Task, times: bool = True) -> dict[str, Any]:
    """Return the same of faiss's graph over a fitted hasher's codes, 16 links a node, which are not counted."""
    codes, queries = hasher.encode(task.test.database), hasher.encode(task.test.queries).packed()
    index = faiss.IndexBinaryHNSW(8 * queries.shape[1], 16)
    index.hnsw.efSearch = 200
    index.add(codes.packed())
    row = measure_engine(index, codes.bits_per_item, task.test, queries, times)
    each = 1e6 / len(queries)
    return row | ({"us_encode": each * seconds_of(lambda: hasher.encode(task.test.queries))} if times else {})


def choose(task: sets.Task, bits: tuple[int, ...] = BITS, units: tuple[int, ...] = UNITS) -> dict[tuple, Hasher]:
    """Return BioHash for each (bits, truth), "neighbours" or "classes", with the layer best in validation."""
    best: dict[tuple, tuple[float, Hasher]] = {}
    asked = task.validation
    for m in units:
        if m > len(task.train) // 4:
            continue
        layer = BioHash(1, activity=1 / m).fit(task.train)
        for b in bits:
            if not 1 <= (k := b // ceil(log2(m))) <= m // 2:
                continue
            found = score_codes(asked, layer.encode(asked.queries, k), layer.encode(asked.database, k))
            for truth, score in zip(("neighbours", "classes"), found.values(), strict=True):
                if score is not None and score > best.get((b, truth), (-1.0, layer))[0]:
                    best[b, truth] = score, at_length(layer, k)
    return {key: hasher for key, (_, hasher) in best.items()}


def at_length(layer: BioHash, k: int) -> BioHash:
    """Return the hasher with the same layer and k units on."""
    hasher = BioHash(k, activity=k / layer.n_units)
    hasher.__dict__.update(layer._learned())
    return hasher


def rows(
    name: str, profile: str, done: Collection[tuple] = (), *, bits: tuple[int, ...] = BITS, times: bool = True
) -> Iterator[dict]:
    """Yield a row for each method and number of bits on a data set: recall (``value``), mAP, bits, microseconds."""
    fitted = cache(lambda method, b: h.fit(task.train) if (h := hasher_of(method, b, d)) else None)
    bio: dict[tuple, Hasher] = {}

    def missing(method: str, b: int) -> bool:
        return (profile, f"{name}: {method}", b, 0) not in done

    def row(method: str, b: int, found: dict[str, Any]) -> dict:
        return {
            "method": f"{name}: {method}",
            "hash_length": b,
            "n": len(task.test.database),
            "data_sha256": task.test.sha256,
            **found,
        }

    names = (*METHODS_HERE, "ITQ, graph", *ENGINES, "BioHash", "BioHash for classes")
    if not any(missing(method, b) for method in names for b in bits):
        return
    task = sets.task(name, profile)
    d = task.train.shape[1]
    if missing("vectors", 0):
        flat = faiss.IndexFlatL2(d)
        flat.add(task.test.database)
        yield row("vectors", 0, measure_engine(flat, 32 * d, task.test, task.test.queries, times))
    for b in bits:
        for method in METHODS_HERE:
            if missing(method, b) and (hasher := fitted(method, b)):
                yield row(method, b, measure_hasher(hasher, task, times))
        if missing("ITQ, graph", b) and (hasher := fitted("ITQ", b)):
            yield row("ITQ, graph", b, measure_graph(hasher, task, times))
        for kind, truth in (("BioHash", "neighbours"), ("BioHash for classes", "classes")):
            if missing(kind, b) and (truth == "neighbours" or task.test.labels is not None):
                bio = bio or choose(task, bits)
                if chosen := bio.get((b, truth)):  # few rows suit few layers, which lack long codes
                    yield row(kind, b, measure_hasher(chosen, task, times))
        for engine in ENGINES:
            stored, asked_ = padded(task.test.database), padded(task.test.queries)
            if missing(engine, b) and (index := engine_of(engine, b, stored.shape[1])):
                index.train(padded(task.train))
                index.add(stored)
                yield row(engine, b, measure_engine(index, b, task.test, asked_, times))
