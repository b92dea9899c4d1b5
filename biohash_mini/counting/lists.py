"""The items of each unit, ascending: for sparse codes."""

import numpy as np
from numba import njit

from .bits import NONE, ONE, bit_of, holds, lowest, popcount
from .threads import share, shares


def invert(active: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the list of each unit begins, (m + 1,), and the items of the lists, (n k,), from the active units.

    The items of a unit are counted, then put in their place, by each thread for its share of the n rows.
    """
    parts = shares(len(active), 1 << 14)
    counts = np.array(share(lambda a, b: np.bincount(active[a:b].ravel(), minlength=m), parts))  # (parts, m)
    starts = np.concatenate([[0], counts.sum(0).cumsum()])
    places = {a: starts[:-1] + before for (a, _), before in zip(parts, counts.cumsum(0) - counts, strict=True)}
    items = np.empty(active.size, np.uint32)
    share(lambda a, b: _place(active, a, b, places[a], items), parts)
    return starts, items


@njit(nogil=True, cache=True)
def _place(active, first, last, place, items):
    for i in range(first, last):
        for j in range(active.shape[1]):
            unit = active[i, j]
            items[np.uint64(place[unit])] = i
            place[unit] += 1


@njit(cache=True)
def _walk(units, starts, items, counter, touched):
    """Count along the lists of some units and return how many items were met; their numbers are in ``touched``."""
    met = 0
    for unit in units:
        for j in range(starts[unit], starts[unit + 1]):
            i = items[j]
            touched[met] = i
            met += counter[i] == 0
            counter[i] += 1
    return met


@njit(nogil=True, cache=True)
def nearest(starts, items, n, units, counter, mark, summary, distances, ids):
    """Fill distances and ids, each (q, top), with the items of the highest scores, ties by number.

    There is a counter and a bit in ``mark`` per item, a bit in ``summary`` per 64 items; all are zero before and after.
    """
    k, top = units.shape[1], ids.shape[1]
    touched, place = np.empty(n + 1, np.uint32), np.empty(k + 1, np.int64)
    for q in range(len(units)):
        met = _walk(units[q], starts, items, counter, touched)
        place[:] = 0
        for j in range(met):
            place[counter[touched[j]]] += 1
        place[0] = n - met
        least, before = k + 1, 0
        while before < top:  # the score of the last item of the answer, and where each higher one begins
            least -= 1
            place[least], before = before, before + place[least]
        i, j = 0, place[0] if least == 0 else top
        while j < top:  # fewer share a unit: the first of those that share none
            if counter[i] == 0:
                distances[q, j], ids[q, j] = 2 * k, i
                j += 1
            i += 1
        for j in range(met):
            i = touched[j]
            if counter[i] < least:
                counter[i] = 0
            else:
                mark[i >> 6] |= bit_of(i)
                summary[i >> 12] |= bit_of(i >> 6)
        for s in range(len(summary)):
            x = summary[s]
            summary[s] = NONE
            while x:
                w = 64 * s + lowest(x)
                x &= x - ONE
                y = mark[w]
                mark[w] = NONE
                while y:
                    i = 64 * w + lowest(y)
                    y &= y - ONE
                    score = counter[i]
                    counter[i] = 0
                    if place[score] < top:
                        distances[q, place[score]], ids[q, place[score]] = 2 * (k - score), i
                        place[score] += 1


@njit(nogil=True, cache=True)
def histograms(starts, items, n, units, counter, relevant, which, exclude, counts, hits):
    """Fill counts and hits as :func:`.slices.histograms`, for all scores, those of no shared unit by subtraction."""
    k = units.shape[1]
    totals = np.zeros(len(relevant), np.int64)
    for r in range(len(relevant)):
        for word in relevant[r]:
            totals[r] += np.int64(popcount(word))
    touched = np.empty(n + 1, np.uint32)
    for q in range(len(units)):
        good, count, hit = relevant[which[q]], counts[q], hits[q]
        count[k], hit[k] = n - (exclude[q] >= 0), totals[which[q]]
        if exclude[q] >= 0:
            hit[k] -= holds(good, exclude[q])
        met = _walk(units[q], starts, items, counter, touched)
        for j in range(met):
            i = touched[j]
            lacking = k - counter[i]
            counter[i] = 0
            if i != exclude[q]:
                is_hit = holds(good, i)
                count[lacking] += 1
                hit[lacking] += is_hit
                count[k] -= 1
                hit[k] -= is_hit
