"""The largest of many numbers: the units of a code, the channels that stay active at a position."""

import numpy as np
from numba import njit

from .threads import share, shares

FEW = 64  # winners that are worth being kept in order as they are found


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
    """Return the numbers of the k largest entries of each row of S (n, m), shape (n, k); k is at most ``FEW``."""
    out = np.empty((len(S), k), dtype=np.int32)
    share(lambda a, b: _winners(S[a:b], out[a:b]), shares(len(S), 256))
    return out


@njit(nogil=True, cache=True)
def _winners(S, out):
    best = np.empty(out.shape[1], dtype=S.dtype)
    for i in range(len(S)):
        if largest(S[i], -np.inf, best, out[i]) < len(best):  # some are not finite
            out[i] = np.argsort(-S[i], kind="mergesort")[: len(best)]
