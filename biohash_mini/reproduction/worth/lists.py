r"""How much of a database a query touches if every unit keeps a list of its items, and what it finds there.

With k of m equally popular units on, t lists of a query hold t k n / m entries. With popularities p, the query's own
units counted, they hold :math:`n\sum_\mu p_\mu`, and :math:`n(1 - \prod_\mu (1 - p_\mu))` distinct items if units were
independent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import faiss
import numpy as np
import torch

from ...codes import Codes, DenseCodes, SparseCodes
from ...hashers import ITQ, BioHash, DenseFly
from ..measure import percent
from . import sets
from .quality import at_length

STORED, PROBES = (1, 2, 8, 32), (1, 2, 4, 8, 16, 32, 64)  # units on in an item, lists that a query walks along
QUERIES = 200
COUNTS: Any = faiss.cvar  # what faiss counts while it searches


def touched(database: SparseCodes, queries: SparseCodes) -> np.ndarray:
    """Return which items share a unit with each query, bool (q, n): the candidates that lists of units give."""
    out = np.zeros((len(queries), len(database)), dtype=bool)
    order = np.argsort(database.active.ravel(), kind="stable")
    items = order // database.hash_length
    ends = np.searchsorted(database.active.ravel()[order], np.arange(database.n_units + 1))
    for row, units in zip(out, queries.active.astype(np.int64), strict=True):
        for unit in units:
            row[items[ends[unit] : ends[unit + 1]]] = True
    return out


def work_of_lists(database: SparseCodes, queries: SparseCodes) -> dict[str, float]:
    """Return, in percent of n, the entries of a query's lists and the items they touch, as theory and as measured."""
    k, t, m = database.hash_length, queries.hash_length, database.n_units
    share = (np.bincount(database.active.ravel(), minlength=m) / len(database))[queries.active]  # (q, t)
    found = {"even": t * k / m, "entries": share.sum(1).mean(), "independent": (1 - np.prod(1 - share, 1)).mean()}
    return {name: percent(value) for name, value in found.items()}


def found_among(candidates: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return recall of the true rows among the candidates, bool (q, n), and the fraction touched, in percent."""
    hits = np.take_along_axis(candidates, truth, 1)
    return {"value": percent(hits.mean()), "touched": percent(candidates.mean())}


def blocks_of(hasher: DenseFly, X: np.ndarray, bits: int) -> DenseCodes:
    """Return DenseFly's pseudo-hashes, (n, bits): signs of the mean activations of as many blocks of units."""
    centred = torch.from_numpy(X) - hasher.mean_
    means = torch.cat([(part @ hasher.weights_.T).reshape(len(part), bits, -1).mean(2) for part in centred.split(4096)])
    return DenseCodes.signs(means)


def within(database: Codes, queries: Codes, radius: int) -> np.ndarray:
    """Return which codes lie within a Hamming radius of each query, bool (q, n): those of the buckets probed."""
    return np.stack([queries[i].hamming(database)[0] <= radius for i in range(len(queries))])


def hashed_rows(task: sets.Task, m: int, stored: tuple[int, ...] = STORED) -> Iterator[dict[str, Any]]:
    """Yield recall and fraction touched for lists of BioHash's units, an item on k of them, a query walking t."""
    layer = BioHash(1, activity=1 / m).fit(task.train)
    asked, bits = task.test, 32
    queries: dict[int, Any] = {t: layer.encode(asked.queries, t) for t in PROBES if t <= m // 2}
    for k in stored:
        codes: Any = at_length(layer, k).encode(asked.database)
        for t, probes in queries.items():
            found = found_among(touched(codes, probes), asked.truth)
            about = {"method": "lists of BioHash", "k": k, "probes": t, "m": m, "index_bits": bits * k}
            yield {**about, **found, **work_of_lists(codes, probes)}
            if found["touched"] > 30:
                break


def bucket_rows(task: sets.Task, bits: int) -> Iterator[dict[str, Any]]:
    """Yield the same for buckets of DenseFly's pseudo-hashes, probed within a Hamming radius."""
    asked, fly = task.test, DenseFly(20 * bits, activity=1.0).fit(task.train)
    database, queries = (blocks_of(fly, X, bits) for X in (asked.database, asked.queries))
    for radius in range(bits // 2):
        found = found_among(within(database, queries, radius), asked.truth)
        yield {"method": "buckets of DenseFly", "k": bits, "probes": radius, "m": bits, "index_bits": 32, **found}
        if found["touched"] > 30:
            break


def engine_rows(task: sets.Task, m: int, bits: int) -> Iterator[dict[str, Any]]:
    """Yield the same for faiss: inverted lists (IVF), and IndexBinaryHash over codes of ITQ."""
    asked, n = task.test, len(task.test.database)
    ivf = faiss.IndexIVFFlat(faiss.IndexFlatL2(asked.database.shape[1]), asked.database.shape[1], m)
    ivf.train(task.train)
    ivf.add(asked.database)
    counts = COUNTS.indexIVF_stats
    for probes in PROBES:
        ivf.nprobe = probes
        counts.reset()
        ids = ivf.search(asked.queries, sets.NEIGHBOURS)[1]
        about = {"method": "faiss IVF", "k": 1, "probes": probes, "m": m, "index_bits": 32}
        yield {**about, **_found(ids, asked, counts.ndis / n / len(ids))}
    del ivf
    itq = ITQ(bits).fit(task.train)
    codes, queries = (itq.encode(X).packed() for X in (asked.database, asked.queries))
    table = faiss.IndexBinaryHash(8 * codes.shape[1], bits)
    table.add(codes)
    hashed = COUNTS.indexBinaryHash_stats
    for flips in range(bits // 2):
        table.nflip = flips
        hashed.reset()
        ids = table.search(queries, n)[1]
        share = hashed.ndis / n / len(ids)
        about = {"method": "faiss BinaryHash", "k": bits, "probes": flips, "m": bits, "index_bits": 32}
        yield {**about, **_found(ids, asked, share)}
        if share > 0.3:
            break


def graph_rows(task: sets.Task, links: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield the same for faiss's graphs (HNSW), a row for each effort."""
    asked, n = task.test, len(task.test.database)
    for each in links:
        graph = faiss.IndexHNSWFlat(asked.database.shape[1], each)
        graph.hnsw.efConstruction = 40
        graph.add(asked.database)
        for ef in (10, 20, 50, 100, 200, 500):
            graph.hnsw.efSearch = ef
            COUNTS.hnsw_stats.reset()
            ids = graph.search(asked.queries, sets.NEIGHBOURS)[1]
            about = {"method": "faiss HNSW", "k": each, "probes": ef, "m": 0, "index_bits": 64 * each}
            yield {**about, **_found(ids, asked, COUNTS.hnsw_stats.ndis / n / len(ids))}


def _found(ids: np.ndarray, asked: sets.Asked, share: float) -> dict[str, float]:
    hits = [np.isin(true, row).mean() for true, row in zip(asked.truth, ids, strict=True)]
    return {"value": percent(float(np.mean(hits))), "touched": percent(share)}


def task_of(name: str, profile: str) -> sets.Task:
    """Return the task of a part: word vectors by angle, or patches of photographs."""
    whole = sets.task(name, profile) if name in sets.SETS else sets.split(sets.patches(profile))
    asked = whole.test
    few = sets.Asked(asked.database, asked.queries[:QUERIES], asked.truth[:QUERIES], None, asked.sha256)
    return sets.Task(few, whole.validation)


def rows(name: str, profile: str, done: Collection[tuple] = ()) -> Iterator[dict]:
    """Yield a row for each index and its effort: recall of ten (``value``), fraction touched, both in percent.

    Lists and buckets of a part are measured as a whole, and so are its graphs, which take longest to build.
    """
    for kind in ("lists", "graphs"):
        known = [key[1] for key in done if key[0] == profile and key[1].startswith(f"lists-{name}: ")]
        if any(("HNSW" in method) == (kind == "graphs") for method in known):
            continue
        task = task_of(name, profile)
        n = len(task.test.database)
        m, bits = (1024, 16) if n > 20_000 else (256, 8)  # whole bytes, as faiss takes them
        large = n > 200_000
        if kind == "graphs":
            found = [*graph_rows(task, (16,) if large else (4, 16))]
        else:
            stored = (1, 2) if large else STORED
            found = [*hashed_rows(task, m, stored), *bucket_rows(task, bits), *engine_rows(task, m, bits)]
        for row in found:  # all of a kind is recorded, or nothing
            method = f"lists-{name}: {row.pop('method')}, {row['k']}"
            yield {"method": method, "hash_length": row["probes"], **row, "n": n, "data_sha256": task.test.sha256}
