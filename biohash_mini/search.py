"""Exact search in Hamming space: inverted lists for sparse codes, popcount for dense ones.

Hamming distances are small integers, so the nearest codes are found by counting, never by sorting.
"""

import os
from collections.abc import Iterator
from typing import Self

import numpy as np
from numba import njit, prange

from .codes import Codes, DenseCodes, SparseCodes, concatenate

_BLOCK = 1 << 23  # distances held at a time: 16 MB of uint16, whatever n and q are


@njit(parallel=True, cache=True)
def _sparse_distances(active, starts, postings, k, n):
    """Return the (q, n) distances 2(k - overlap) by walking the inverted list of each active unit."""
    out = np.full((len(active), n), 2 * k, dtype=np.uint16)
    for q in prange(len(active)):
        for unit in active[q]:
            for j in range(starts[unit], starts[unit + 1]):
                out[q, postings[j]] -= 2
    return out


@njit(inline="always")
def _popcount(x):
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(parallel=True, cache=True)
def _dense_distances(queries, words):
    """Return the (q, n) number of bits in which 64-bit words differ."""
    out = np.zeros((len(queries), len(words)), dtype=np.uint16)
    for q in prange(len(queries)):
        for i in range(len(words)):
            for w in range(words.shape[1]):
                out[q, i] += _popcount(queries[q, w] ^ words[i, w])
    return out


@njit(parallel=True, cache=True)
def _nearest(D, bins, top):
    """Return the distances and columns of the ``top`` smallest entries of each row of D, ties by column."""
    distances = np.empty((len(D), top), dtype=np.uint16)
    ids = np.empty((len(D), top), dtype=np.int64)
    for q in prange(len(D)):
        place = np.zeros(bins + 1, dtype=np.int64)  # where the next item of each distance goes
        for d in D[q]:
            place[d + 1] += 1
        for d in range(bins):
            place[d + 1] += place[d]
        for i in range(D.shape[1]):
            d = D[q, i]
            if place[d] < top:
                distances[q, place[d]] = d
                ids[q, place[d]] = i
            place[d] += 1
    return distances, ids


@njit(parallel=True, cache=True)
def _within(D, radius):
    """Return where each row of D begins in the answer, and the distances and columns of its entries up to radius."""
    limits = np.zeros(len(D) + 1, dtype=np.int64)
    for q in prange(len(D)):
        for d in D[q]:
            limits[q + 1] += d <= radius
    limits = limits.cumsum()
    distances = np.empty(limits[-1], dtype=np.uint16)
    ids = np.empty(limits[-1], dtype=np.int64)
    for q in prange(len(D)):
        place = np.zeros(radius + 2, dtype=np.int64)  # where the next item of each distance goes
        place[0] = limits[q]
        for d in D[q]:
            if d <= radius:
                place[d + 1] += 1
        for d in range(radius + 1):
            place[d + 1] += place[d]
        for i in range(D.shape[1]):
            d = D[q, i]
            if d <= radius:
                distances[place[d]] = d
                ids[place[d]] = i
                place[d] += 1
    return limits, distances, ids


@njit(parallel=True, cache=True)
def _histograms(D, relevant, bins):
    """Return how many items, and how many relevant ones, lie at each distance: two arrays (q, bins)."""
    counts = np.zeros((len(D), bins), dtype=np.int64)
    hits = np.zeros((len(D), bins), dtype=np.int64)
    for q in prange(len(D)):
        for i in range(D.shape[1]):
            counts[q, D[q, i]] += 1
            hits[q, D[q, i]] += relevant[q, i]
    return counts, hits


class HammingIndex:
    """Exact nearest codes by Hamming distance.

    Parameters
    ----------
    codes : Codes
        The database, n codes.
    """

    def __init__(self, codes: Codes) -> None:
        if codes.max_distance > np.iinfo(np.uint16).max or getattr(codes, "hash_length", 0) > 0x7FFF:
            raise ValueError(f"codes of more than 65,535 bits of distance are not supported, got {codes!r}")
        self._build(codes)

    def _build(self, codes: Codes) -> None:
        self.codes = codes
        if isinstance(codes, SparseCodes):
            units = codes.active.ravel()
            self._starts = np.concatenate([[0], np.bincount(units, minlength=codes.n_units).cumsum()])
            by_unit = np.argsort(units, kind="stable")
            self._postings = (by_unit // codes.hash_length).astype(np.int32)  # (n k,) code numbers, unit by unit
        elif isinstance(codes, DenseCodes):
            self._words = codes.words()

    def __len__(self) -> int:
        return len(self.codes)

    def add(self, codes: Codes) -> None:
        """Append codes, whose row numbers go on counting; the work is that of an index built at once."""
        self._build(concatenate([self.codes, codes]))

    def save(self, path: str | os.PathLike) -> None:
        """Write the index to a safetensors file, whole or not at all; it is the file of its codes."""
        self.codes.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Return the index of a file written by :meth:`save`, or of a file of codes; ValueError if it is not intact."""
        return cls(Codes.load(path))

    def distances(self, queries: Codes) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield consecutive blocks of queries with their distances to the whole database, shape (block, n)."""
        self.codes.check_comparable(queries)
        step = max(1, _BLOCK // max(1, len(self)))
        for i in range(0, len(queries), step):
            block = queries[i : i + step]
            yield slice(i, i + len(block)), self._block(block)

    def _block(self, queries: Codes) -> np.ndarray:
        if isinstance(queries, SparseCodes):
            return _sparse_distances(queries.active, self._starts, self._postings, queries.hash_length, len(self))
        assert isinstance(queries, DenseCodes)
        return _dense_distances(queries.words(), self._words)

    def search(self, queries: Codes, top: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers of the nearest codes, each (q, min(top, n)), ascending, ties by row number.

        The work of a query is n plus the lengths of its inverted lists; memory beyond the answer stays near 16 MB.
        """
        if top < 1:
            raise ValueError(f"top must be at least 1, got {top}")
        top = min(top, len(self))
        distances = np.empty((len(queries), top), dtype=np.uint16)
        ids = np.empty((len(queries), top), dtype=np.int64)
        for rows, D in self.distances(queries):
            distances[rows], ids[rows] = _nearest(D, int(D.max(initial=0)) + 1, top)
        return distances, ids

    def range_search(self, queries: Codes, radius: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all codes within a distance: limits (q + 1,), and distances and row numbers, each (limits[-1],).

        Those of query i stand at ``limits[i]:limits[i + 1]``, ascending, ties by row number.

        Parameters
        ----------
        queries : Codes
            q codes.
        radius : int >= 0
            The largest distance that is still found (faiss leaves it out).

        Notes
        -----
        Memory beyond the answer, which is held twice while its parts are joined, stays near 16 MB.
        """
        if isinstance(radius, bool) or not isinstance(radius, int | np.integer) or radius < 0:
            raise ValueError(f"radius must be an integer of at least 0, got {radius!r}")
        radius = min(int(radius), self.codes.max_distance)
        limits, distances, ids = [np.zeros(1, np.int64)], [np.empty(0, np.uint16)], [np.empty(0, np.int64)]
        for _, D in self.distances(queries):
            starts, d, i = _within(D, radius)
            limits.append(limits[-1][-1] + starts[1:])
            distances.append(d)
            ids.append(i)
        return np.concatenate(limits), np.concatenate(distances), np.concatenate(ids)
