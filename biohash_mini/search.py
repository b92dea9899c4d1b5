"""Exact search in Hamming space: inverted lists for sparse codes, popcount for dense ones.

Hamming distances are small integers, so the nearest codes are found by counting, never by sorting.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit, prange

from .codes import Codes, SparseCodes

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
        self.codes = codes
        if isinstance(codes, SparseCodes):
            units = codes.active.ravel()
            self._starts = np.concatenate([[0], np.bincount(units, minlength=codes.n_units).cumsum()])
            by_unit = np.argsort(units, kind="stable")
            self._postings = (by_unit // codes.hash_length).astype(np.int32)  # (n k,) code numbers, unit by unit
        else:
            self._words = codes.words()

    def __len__(self) -> int:
        return len(self.codes)

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
