"""Average precision from how many items, and how many relevant ones, stand at each distance."""

import numpy as np
from numba import njit
from scipy.special import gammaln


@njit(cache=True)
def _expected_sum(n, h, N, R, H):
    """Return the expected sum of precisions at the h relevant of n tied items that follow N items, R relevant."""
    if h == 0:
        return 0.0
    dH = H[N + n] - H[N]
    spread = (h - 1) / (n - 1) * (n - (N + 1) * dH) if n > 1 else 0.0
    return h / n * ((R + 1) * dH + spread)


@njit(cache=True)
def _extreme_sum(n, h, N, R, H, best):
    """Return the same sum when the relevant items stand first (best) or last inside the tie."""
    before = N if best else N + n - h
    return h + (R - before) * (H[before + h] - H[before])


@njit(cache=True)
def _quotient(S, R, all_relevant):
    """Return a sum of precisions divided by the R relevant items retrieved, or by ``all_relevant`` if that is not 0."""
    divisor = all_relevant if all_relevant > 0 else R
    return S / divisor if divisor > 0 else 0.0


@njit(cache=True)
def _cut(n, h, T, N, R, S, H, L, ties, all_relevant):
    """Return AP when only T of n tied items are retrieved, so that the number of relevant ones among them varies.

    In expectation it is hypergeometric. The best and worst case also choose it: retrieving one more relevant item
    late can lower AP, where AP divides by the relevant items retrieved. L holds log-factorials.
    """
    total = weight = 0.0
    extreme = -1.0
    for x in range(max(0, T - (n - h)), min(h, T) + 1):
        if ties == 0:
            w = np.exp(L[h] - L[x] - L[h - x] + L[n - h] - L[T - x] - L[n - h - T + x] - L[n] + L[T] + L[n - T])
            weight += w
            total += w * _quotient(S + _expected_sum(T, x, N, R, H), R + x, all_relevant)
        else:
            ap = _quotient(S + _extreme_sum(T, x, N, R, H, ties == 1), R + x, all_relevant)
            if extreme < 0 or (ap > extreme) == (ties == 1):
                extreme = ap
    return total / weight if ties == 0 else extreme


@njit(nogil=True, cache=True)
def average_precisions(counts, relevant, at, ties, H, L, all_relevant, out):
    """Fill out with AP, shape (q,), from how many items and relevant ones stand at each distance, (q, bins)."""
    for q in range(len(counts)):
        N = R = 0
        S = 0.0
        for b in range(counts.shape[1]):
            n, h = counts[q, b], relevant[q, b]
            if n == 0:
                continue
            if N + n > at:
                out[q] = _cut(n, h, at - N, N, R, S, H, L, ties, all_relevant[q])
                break
            S += _expected_sum(n, h, N, R, H) if ties == 0 else _extreme_sum(n, h, N, R, H, ties == 1)
            N += n
            R += h
            out[q] = _quotient(S, R, all_relevant[q])
            if N == at:
                break


def harmonics(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return harmonic numbers and log-factorials of 0 … n."""
    return np.concatenate([[0.0], (1 / np.arange(1, n + 1)).cumsum()]), gammaln(np.arange(n + 1) + 1.0)
