"""Average precision that knows about ties, and functional smoothness.

A code of k active units has only k + 1 distances, so most of a ranking is ties, and an arbitrary order inside them
moves mAP by tens of points at k = 2. Every number here is therefore the exact expectation over all orders inside
ties, or the best or the worst of them. All it takes is a histogram: how many items, and how many relevant ones, stand
at each distance.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numba import njit, prange
from scipy.special import gammaln

from .codes import Codes
from .search import HammingIndex, _nearest

Ties = Literal["expected", "best", "worst", "index"]
Divisor = Literal["retrieved", "relevant"]


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


@njit(parallel=True, cache=True)
def _ap(counts, relevant, at, ties, H, L, all_relevant):
    """Return AP, shape (q,), from how many items and how many relevant ones stand at each distance, (q, bins)."""
    out = np.zeros(len(counts))
    for q in prange(len(counts)):
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
    return out


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


def _check_at(at: int | None, n: int) -> int:
    if at is not None and at < 1:
        raise ValueError(f"at must be None or at least 1, got {at}")
    return n if at is None else min(at, n)


def _check_one_of(name: str, value: str, kind: object) -> None:
    if value not in get_args(kind):
        raise ValueError(f"{name} must be one of {', '.join(get_args(kind))}, got {value!r}")


def _tables(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return harmonic numbers and log-factorials of 0 … n."""
    return np.concatenate([[0.0], (1 / np.arange(1, n + 1)).cumsum()]), gammaln(np.arange(n + 1) + 1.0)


def average_precision(
    distances: np.ndarray,
    relevant: np.ndarray,
    at: int | None = None,
    ties: Ties = "expected",
    *,
    divisor: Divisor = "retrieved",
) -> np.ndarray:
    r"""Return the average precision of each query, shape (q,), in [0, 1].

    .. math:: \mathrm{AP}@R = \frac{1}{\sum_{l\le R}\mathrm{Rel}(l)}\sum_{l=1}^{R}\mathrm{Precision}(l)\,\mathrm{Rel}(l)

    Parameters
    ----------
    distances : array (q, n) or (n,)
        Distance of each database item to each query; equal values are ties.
    relevant : array of bool, same shape
        Whether the item is relevant.
    at : int or None
        R; None ranks the whole database.
    ties : {"expected", "best", "worst", "index"}
        The exact mean over all orders inside ties, the best order, the worst order, or the order of the columns.
    divisor : {"retrieved", "relevant"}
        What the sum is divided by: the relevant items among the first R, as in the paper, or all that could be there,
        min(R, relevant items of the database), so that a list with a single early hit does not score well.

    Notes
    -----
    With nothing relevant retrieved AP is 0.
    """
    distances, relevant = np.atleast_2d(distances), np.atleast_2d(relevant).astype(bool)
    if distances.shape != relevant.shape or distances.ndim != 2 or distances.size == 0:
        raise ValueError(f"distances {distances.shape} and relevant {relevant.shape} must be equal, non-empty (q, n)")
    if np.isnan(distances).any():
        raise ValueError("distances must not be NaN")
    _check_one_of("ties", ties, Ties)
    groups = np.stack([np.unique(row, return_inverse=True)[1] for row in distances])
    n = distances.shape[1]
    return _block_precisions(groups, relevant, _check_at(at, n), ties, divisor, *_tables(n))


def _block_precisions(
    D: np.ndarray, relevant: np.ndarray, at: int, ties: Ties, divisor: Divisor, H: np.ndarray, L: np.ndarray
) -> np.ndarray:
    """Return AP of a block of queries, shape (q,), from integer distances and relevance, each (q, n)."""
    _check_one_of("divisor", divisor, Divisor)
    all_relevant = np.minimum(at, relevant.sum(1)) if divisor == "relevant" else np.zeros(len(D), dtype=np.int64)
    bins = int(D.max()) + 1
    if ties == "index":
        _, ids = _nearest(D, bins, at)
        hits = np.take_along_axis(relevant, ids, 1).astype(np.int64)
        counts = np.ones_like(hits)
    else:
        counts, hits = _histograms(D, relevant, bins)
    return _ap(counts, hits, at, {"best": 1, "worst": 2}.get(ties, 0), H, L, all_relevant)


class TieBounds(NamedTuple):
    """One mean average precision under three orders inside ties."""

    expected: float
    best: float
    worst: float


def _relevance(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: np.ndarray | None,
    database_labels: np.ndarray | None,
    neighbours: np.ndarray | None,
) -> Callable[[slice], np.ndarray]:
    """Return a function that gives the relevance of the database to some of the queries, bool (rows, n)."""
    for name, codes in ("query", query_codes), ("database", database_codes):
        if len(codes) == 0:
            raise ValueError(f"there are no {name} codes")
    if neighbours is not None:
        truth = np.asarray(neighbours)
        if truth.ndim != 2 or len(truth) != len(query_codes):
            raise ValueError(f"neighbours must have shape ({len(query_codes)}, r), got {truth.shape}")

        def by_neighbours(rows: slice) -> np.ndarray:
            relevant = np.zeros((len(truth[rows]), len(database_codes)), dtype=bool)
            np.put_along_axis(relevant, truth[rows], True, 1)
            return relevant

        return by_neighbours
    q, d = np.asarray(query_labels), np.asarray(database_labels)
    for name, labels, codes in ("query", q, query_codes), ("database", d, database_codes):
        if labels.shape != (len(codes),):
            raise ValueError(f"{name}_labels has shape {labels.shape}, but there are {len(codes)} {name} codes")
    numbers = np.unique(np.concatenate([q, d]), return_inverse=True)[1].astype(np.int32)
    return lambda rows: numbers[: len(q)][rows, None] == numbers[len(q) :]


def _precisions(
    relevance: Callable[[slice], np.ndarray],
    query_codes: Codes,
    database_codes: Codes,
    at: int | None,
    ties: Sequence[Ties],
    exclude: np.ndarray | None,
    divisor: Divisor,
) -> np.ndarray:
    """Return AP per query for each treatment of ties, shape (len(ties), q), block by block of queries."""
    for name in ties:
        _check_one_of("ties", name, Ties)
    index = HammingIndex(database_codes)
    R, tables = _check_at(at, len(index)), _tables(len(index))
    out = np.empty((len(ties), len(query_codes)))
    for rows, D in index.distances(query_codes):
        relevant = relevance(rows)
        if exclude is not None:  # behind all others and irrelevant, an item counts for nothing
            out_of_list = np.arange(len(D)), exclude[rows]
            D[out_of_list], relevant[out_of_list] = index.codes.max_distance + 1, False
        for i, name in enumerate(ties):
            out[i, rows] = _block_precisions(D, relevant, R, name, divisor, *tables)
    return out


def mean_average_precision(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: np.ndarray | None = None,
    database_labels: np.ndarray | None = None,
    at: int | None = None,
    ties: Ties = "expected",
    *,
    neighbours: np.ndarray | None = None,
    exclude: np.ndarray | None = None,
    divisor: Divisor = "retrieved",
) -> float:
    r"""Return the mean over queries of :func:`average_precision`, in [0, 1].

    .. math:: \mathrm{mAP}@R = \frac{1}{|Q|}\sum_{q\in Q}\mathrm{AP}(q)@R

    Relevant are the items of the query's label or, where ``neighbours`` is given, shape (q, r), the items of those
    row numbers. ``exclude``, shape (q,), is the row of the database that a query must not find: itself, if it is there.
    """
    relevance = _relevance(query_codes, database_codes, query_labels, database_labels, neighbours)
    return float(_precisions(relevance, query_codes, database_codes, at, [ties], exclude, divisor).mean())


def tie_bounds(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: np.ndarray | None = None,
    database_labels: np.ndarray | None = None,
    at: int | None = None,
    *,
    neighbours: np.ndarray | None = None,
    exclude: np.ndarray | None = None,
    divisor: Divisor = "retrieved",
) -> TieBounds:
    """Return :func:`mean_average_precision` expected over ties, with its best and worst order, in one pass."""
    relevance = _relevance(query_codes, database_codes, query_labels, database_labels, neighbours)
    bounds = _precisions(relevance, query_codes, database_codes, at, TieBounds._fields, exclude, divisor)
    return TieBounds(*bounds.mean(1).tolist())


def functional_smoothness(
    X: np.ndarray, codes: Codes, fraction: float = 0.1, self_pairs: bool = True
) -> tuple[float, float]:
    """Return Pearson's r between similarity in input and in hash space, for the most and for the least similar pairs.

    Parameters
    ----------
    X : array (n, d)
        The inputs; their cosine similarity is compared (centre them first to follow the paper).
    codes : Codes
        Their n codes. The cosine of two codes written with ±1, and for sparse codes also with 0 and 1, is affine in
        their Hamming distance, so r is the same for both.
    fraction : float in (0, 1]
        Share of all pairs in each group: 0.1 compares the top with the bottom 10%.
    self_pairs : bool
        Whether a row is paired with itself too. The paper's table is matched with them; they raise the top group.

    Notes
    -----
    A row of zeros has cosine 0 with everything. r is NaN where all pairs of a group have the same distance.
    """
    X = np.asarray(X, dtype=np.float64)
    if len(X) != len(codes) or len(X) < 2:
        raise ValueError(f"need at least two rows and as many codes, got {len(X)} rows and {len(codes)} codes")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must lie in (0, 1], got {fraction}")
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    i, j = np.triu_indices(len(X), k=0 if self_pairs else 1)
    similarity, distance = (X @ X.T)[i, j], codes.hamming(codes)[i, j].astype(float)
    order, take = np.argsort(similarity, kind="stable"), max(2, round(fraction * len(i)))
    return tuple(_pearson(similarity[rows], -distance[rows]) for rows in (order[-take:], order[:take]))


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")
