"""Rows less their mean, in one look at each number: what is subtracted is also checked."""

import numpy as np
from numba import njit


def subtract(X: np.ndarray, mean: np.ndarray, reach: float, out: np.ndarray) -> bool:
    """Fill out with X - mean, float32 of shape (n, d), and return whether all of it is numbers within reach."""
    return _subtract(X, mean, np.float32(reach), out) == 0


@njit(nogil=True, cache=True, fastmath={"nsz", "reassoc"})
def _subtract(X, mean, reach, out):
    """Fill out with X - mean, and return how many entries of it are no numbers within reach."""
    far = np.float32(0)
    for i in range(len(X)):
        row, minus = X[i], out[i]
        for j in range(len(mean)):
            value = row[j] - mean[j]
            minus[j] = value
            far += np.float32(0) if abs(value) <= reach else np.float32(1)
    return far
