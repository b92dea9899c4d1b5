"""The largest of many numbers: the units of a code, the channels that stay active at a position."""

import numpy as np
from numba import njit

FEW = 64  # winners that are worth being kept in order as they are found
_STEPS = 256  # equal parts of the range of a row, whose numbers fit a byte
_RARE = 128  # units per winner from which a look at each is enough: hardly one is kept
_CLOSE = 1e-30  # a range that is not cut: the quotient would leave float32


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


@njit(cache=True, fastmath={"nnan", "nsz"})  # so that many are compared at a time
def _range(values):
    """Return the smallest and the largest value."""
    low = high = values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return low, high


@njit(nogil=True, cache=True)
def _winners(S, out):
    """Fill out with the winners: the range of a row is cut in steps, and only the step of the last winner is sorted."""
    m, k = S.shape[1], out.shape[1]
    step, times = np.empty(m, np.uint8), np.empty(_STEPS, np.int32)
    tied, number = np.empty(m, S.dtype), np.empty(m, np.int32)
    best, which = np.empty(k, S.dtype), np.empty(k, np.int32)
    for i in range(len(S)):
        row = S[i]
        if m > _RARE * k and largest(row, -np.inf, best, out[i]) == k:
            continue
        low, high = _range(row)
        if not 0 <= high - low < np.inf:
            out[i] = np.argsort(-row, kind="mergesort")[:k]
            continue
        scale = np.float32(_STEPS - 1) / (high - low) if high - low > _CLOSE else np.float32(0)
        for j in range(m):
            step[j] = np.uint8(np.int32((row[j] - low) * scale))
        times[:] = 0
        for j in range(m):
            times[step[j]] += 1
        last, above, held = _STEPS - 1, 0, 0  # the last winner stands in step ``last``
        while above + times[last] < k:
            above += times[last]
            last -= 1
        left, above = k - above, 0
        for j in range(m):
            if step[j] > last:
                out[i, above] = j
                above += 1
            elif step[j] == last:
                tied[held], number[held] = row[j], j
                held += 1
        largest(tied[:held], -np.inf, best[:left], which)
        for j in range(left):
            out[i, above + j] = number[which[j]]
