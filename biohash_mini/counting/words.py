"""Codes in words of 64 bits, in blocks of items that lie word by word: for long dense codes, where bitmaps lose."""

import numpy as np
from numba import njit

from .bits import popcount

SPAN = 512  # items of a block, which is compared with all queries before the next is fetched


def in_fours(packed: np.ndarray, rows: int = 1) -> np.ndarray:
    """Return bytes, shape (n, b), in words, shape (n, w); n and w are filled up to multiples of ``rows`` and 4."""
    n, width = packed.shape
    out = np.zeros((-(-n // rows) * rows, -(-width // 32) * 32), dtype=np.uint8)
    out[:n, :width] = packed
    return out.view(np.uint64)


def in_blocks(packed: np.ndarray) -> np.ndarray:
    """Return the words of n codes in blocks, shape (blocks, w, items)."""
    words = in_fours(packed, SPAN)
    return np.ascontiguousarray(words.reshape(-1, SPAN, words.shape[1]).transpose(0, 2, 1))


@njit(cache=True)
def _compare(block, query, out):
    """Fill out with the bits in which the items of a block differ from a query, and return the fewest."""
    out[:] = 0
    for c in range(0, len(query), 4):
        a, b, g, h = block[c], block[c + 1], block[c + 2], block[c + 3]
        u, v, x, y = query[c], query[c + 1], query[c + 2], query[c + 3]
        for i in range(SPAN):
            out[i] += popcount(a[i] ^ u) + popcount(b[i] ^ v) + popcount(g[i] ^ x) + popcount(h[i] ^ y)
    least = out[0]
    for i in range(SPAN):
        least = min(least, out[i])
    return least


@njit(cache=True)
def _keep(distance, item, held, top, place):
    """Keep the ``top`` nearest of the items held, ties by number, in their order; return the largest distance kept."""
    place[:] = 0
    for j in range(held):
        place[distance[j]] += 1
    last, before = 0, 0
    while before + place[last] < top:
        before += place[last]
        last += 1
    tied, kept = top - before, 0
    for j in range(held):
        if distance[j] < last or (distance[j] == last and tied > 0):
            tied -= distance[j] == last
            distance[kept], item[kept] = distance[j], item[j]
            kept += 1
    return last


@njit(nogil=True, cache=True)
def nearest(blocks, n, queries, m, distances, ids):
    """Fill distances and ids, each (q, top), with the nearest items, ties by number.

    Items nearer than the worst of the best so far are gathered; whenever there is no more room, the best are kept. An
    item as far as the worst comes too late: its number is higher.
    """
    top, size = ids.shape[1], 2 * ids.shape[1] + SPAN
    distance, item = np.empty((len(queries), size), np.int32), np.empty((len(queries), size), np.int32)
    held, bound, place = np.zeros(len(queries), np.int64), np.full(len(queries), m + 1), np.empty(m + 2, np.int64)
    out = np.empty(SPAN, np.uint64)
    for s in range(0, n, SPAN):
        e = min(s + SPAN, n)
        for q in range(len(queries)):
            least, limit = _compare(blocks[s // SPAN], queries[q], out), np.uint64(bound[q])
            if least >= limit:
                continue
            near, which, h = distance[q], item[q], held[q]
            for i in range(e - s):
                if out[i] < limit:
                    near[h], which[h] = out[i], s + i
                    h += 1
            if h > 2 * top or (bound[q] > m and h >= top):
                bound[q], h = _keep(near, which, h, top, place), top
            held[q] = h
    for q in range(len(queries)):
        _keep(distance[q], item[q], held[q], top, place)
        place[:] = 0
        for j in range(top):
            place[distance[q, j] + 1] += 1
        for d in range(m):
            place[d + 1] += place[d]
        for j in range(top):
            d = distance[q, j]
            distances[q, place[d]], ids[q, place[d]] = d, item[q, j]
            place[d] += 1
