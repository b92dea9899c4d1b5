"""The largest of many numbers: the units of a code, the channels that stay active at a position."""

import numpy as np
from numba import njit

FEW = 64  # winners that are worth being kept in order as they are found
_RARE = 128  # units per winner from which a look at each is enough: hardly one is kept


@njit(nogil=True, cache=True)
def largest(values, floor, best, number):
    """Fill ``best`` and ``number`` with the largest values above a floor and where they stand, and return how many.

    The largest comes first; of equal values the one that stands first wins.
    """
    count, least = 0, floor  # what another must exceed
    for i in range(len(values)):
        value = values[i]
        if value <= least:
            continue
        count = min(count + 1, len(best))
        j = count - 1
        while j > 0 and best[j - 1] < value:
            best[j], number[j] = best[j - 1], number[j - 1]
            j -= 1
        best[j], number[j] = value, i
        if count == len(best):
            least = best[count - 1]
    return count


def winners(S: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers of the k largest entries of each row of S (n, m), shape (n, k); k is at most ``FEW``.

    They come in any order. Of equal entries those that stand first are chosen. One thread looks for them: after a
    product those of torch stay awake a while, and others would only take the cores from them.
    """
    out = np.empty((len(S), k), dtype=np.int32)
    _winners(S, out)
    return out


_FAST = {"nnan", "nsz", "reassoc"}  # so that many numbers are looked at a time; min() and max() would prevent it


@njit(nogil=True, cache=True, fastmath=_FAST)
def range_of(values):
    """Return the smallest and the largest value."""
    low = high = values[0]
    for i in range(len(values)):
        low = values[i] if values[i] < low else low
        high = values[i] if values[i] > high else high
    return low, high


@njit(nogil=True, cache=True, fastmath=_FAST)
def _over(values, floor):
    """Return how many values exceed the floor."""
    count = np.float32(0)
    for i in range(len(values)):
        count += np.float32(1) if values[i] > floor else np.float32(0)
    return count


@njit(nogil=True, cache=True)
def floor_of(values, k, least, most, guess):
    """Return a floor, twice, that k values exceed, or where no number does that, two bounds of the k-th value.

    Then fewer than k exceed the upper bound, and those in between are equal to it. The floor is ``least`` if at most k
    values exceed that; ``most`` is the largest value, and a ``guess`` may be out of place.
    """
    low, high, over, above = least, most, np.float32(len(values)), np.float32(0)  # how many exceed either bound
    half, sure, halve = np.float32(0.5), False, False
    floor = guess
    if not low < floor < high:
        floor = low + (high - low) * ((over - np.float32(k)) / over)
    while True:
        if not low < floor < high:
            floor = half * low + half * high
            if not low < floor < high:
                return low, high
        count = _over(values, floor)
        if count == k:
            return floor, floor
        if count > k:
            low, over, sure = floor, count, True
        else:
            high, above = floor, count
            if not sure:
                over, sure = _over(values, least), True
                if over <= k:
                    return least, least
        halve = not halve
        floor = half * low + half * high
        if halve:  # every other time on the line through both counts
            floor = low + (high - low) * ((over - np.float32(k)) / (over - above))


@njit(nogil=True, cache=True)
def _winners(S, out):
    """Fill out with the winners: what exceeds a floor, and of what is equal to it those that stand first."""
    m, k, floor = S.shape[1], out.shape[1], np.float32(np.nan)
    best, found = np.empty(k, S.dtype), np.empty(m + 1, np.int32)
    for i in range(len(S)):
        row = S[i]
        if m > _RARE * k and largest(row, -np.inf, best, out[i]) == k:
            continue
        least, most = range_of(row)
        if not most - least < np.inf:
            out[i] = np.argsort(-row, kind="mergesort")[:k]
            continue
        low, high = floor_of(row, k, least, most, floor)
        count, floor = 0, high
        for j in range(m):
            found[count] = j
            count += row[j] > high
        out[i, :count] = found[:count]
        for j in range(m if count < k else 0):
            if count < k and (low < row[j] or low == high) and row[j] <= high:
                out[i, count] = j
                count += 1
