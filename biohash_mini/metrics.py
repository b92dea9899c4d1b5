"""Average precision that knows about ties, recall, and functional smoothness.

A code of k active units has only k + 1 distances, so most of a ranking is ties, and an arbitrary order inside them
moves mAP by tens of points at k = 2. Every number here is therefore the exact expectation over all orders inside
ties, or the best or the worst of them, from how many items, and how many relevant ones, stand at each distance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from .codes import Codes
from .counting.precision import average_precisions, harmonics
from .counting.threads import share, shares
from .inputs import as_labels, is_number, is_whole, real_array, real_numbers, require, rows_near_one
from .search import HammingIndex

Ties = Literal["expected", "best", "worst", "index"]
Divisor = Literal["retrieved", "relevant"]
_BLOCK = 1 << 23  # entries of sets of relevant items, or of histograms and rankings, held at a time


def _check_options(at: int | None, n: int, ties: tuple[Ties, ...], divisor: Divisor) -> int:
    """Return R, the length of the ranking; ValueError if an option is none of the allowed."""
    for name, value, kind in [("divisor", divisor, Divisor), *(("ties", order, Ties) for order in ties)]:
        require(value in get_args(kind), f"{name} must be one of {', '.join(get_args(kind))}, got {value!r}")
    require(at is None or (is_whole(at) and at >= 1), f"at must be None or at least 1, an integer, got {at!r}")
    return n if at is None else min(at, n)


def average_precision(
    distances: np.ndarray,
    relevant: np.ndarray,
    at: int | None = None,
    ties: Ties = "expected",
    *,
    divisor: Divisor = "retrieved",
) -> np.ndarray:
    r"""Return the average precision of each query, shape (q,), in [0, 1]; 0 where nothing relevant is retrieved.

    .. math:: \mathrm{AP}@R = \frac{1}{\sum_{l\le R}\mathrm{Rel}(l)}\sum_{l=1}^{R}\mathrm{Precision}(l)\,\mathrm{Rel}(l)

    Parameters
    ----------
    distances, relevant : arrays (q, n) or (n,)
        Distance of each database item to each query, equal values being ties, and whether the item is relevant.
    at : int or None
        R; None ranks the whole database.
    ties : {"expected", "best", "worst", "index"}
        The exact mean over all orders inside ties, the best order, the worst order, or the order of the columns.
    divisor : {"retrieved", "relevant"}
        What the sum is divided by: the relevant items among the first R, as in the paper, or all that could be there,
        min(R, relevant items of the database), so that a list with a single early hit does not score well.
    """
    distances, relevant = np.atleast_2d(real_array("distances", distances)), np.atleast_2d(relevant)
    known = relevant.dtype.kind in "fiub" and not np.ma.is_masked(relevant)
    yes_or_no = known and ((relevant == 0) | (relevant == 1)).all()
    require(bool(yes_or_no), f"relevant must be True or False, or 0 and 1, got {relevant.dtype}")
    relevant = relevant.astype(bool)
    shapes = f"distances {distances.shape} and relevant {relevant.shape} must be equal, non-empty (q, n)"
    require(distances.shape == relevant.shape and distances.ndim == 2 and distances.size > 0, shapes)
    require(not np.isnan(distances).any(), "distances must not be NaN")
    R = _check_options(at, distances.shape[1], (ties,), divisor)
    groups = np.stack([np.unique(row, return_inverse=True)[1] for row in distances])
    if ties == "index":
        hits = np.take_along_axis(relevant, np.argsort(groups, axis=1, kind="stable")[:, :R], 1).astype(np.int64)
        counts = np.ones_like(hits)
    else:
        counts, hits = np.zeros((2, len(groups), int(groups.max()) + 1), dtype=np.int64)
        for q, (row, good) in enumerate(zip(groups, relevant, strict=True)):
            counts[q] = np.bincount(row, minlength=counts.shape[1])
            hits[q] = np.bincount(row[good], minlength=counts.shape[1])
    return _precisions(counts, hits, R, ties, relevant.sum(1), divisor, *harmonics(distances.shape[1]))


def _precisions(
    counts: np.ndarray,
    hits: np.ndarray,
    at: int,
    ties: Ties,
    relevant: np.ndarray,
    divisor: Divisor,
    H: np.ndarray,
    L: np.ndarray,
) -> np.ndarray:
    """Return AP, shape (q,), from items and relevant ones at each distance, (q, bins), and all relevant ones, (q,)."""
    all_relevant = np.minimum(at, relevant) if divisor == "relevant" else np.zeros(len(counts), dtype=np.int64)
    order, out = {"best": 1, "worst": 2}.get(ties, 0), np.zeros(len(counts))

    def work(a: int, b: int) -> None:
        average_precisions(counts[a:b], hits[a:b], at, order, H, L, all_relevant[a:b], out[a:b])

    share(work, shares(len(counts), 32))
    return out


class TieBounds(NamedTuple):
    """One mean average precision under three orders inside ties."""

    expected: float
    best: float
    worst: float


@dataclass(frozen=True, eq=False)
class Truth:
    """What each of q queries should find among n items, made by :meth:`of_labels` or :meth:`of_neighbours`."""

    query_labels: np.ndarray | None = None  #: (q,), labels as numbers
    database_labels: np.ndarray | None = None  #: (n,)
    neighbours: np.ndarray | None = None  #: (q, r), row numbers of the relevant items, in place of labels
    exclude: np.ndarray | None = None  #: (q,), the row that a query must not find: itself, if it is there

    @classmethod
    def of_labels(cls, query_labels: ArrayLike, database_labels: ArrayLike, exclude: ArrayLike | None = None) -> Self:
        """Return the truth that the items of a query's label are relevant, from labels of shapes (q,) and (n,)."""
        q, d = as_labels(query_labels, database_labels)
        numbers = np.unique(np.concatenate([q, d], axis=None), return_inverse=True)[1].astype(np.int32)
        rows = None if exclude is None else np.asarray(exclude)
        return cls(numbers[: q.size].reshape(q.shape), numbers[q.size :].reshape(d.shape), exclude=rows)

    @classmethod
    def of_neighbours(cls, ids: ArrayLike, exclude: ArrayLike | None = None) -> Self:
        """Return the truth that the items of the row numbers ids, shape (q, r), are relevant."""
        return cls(neighbours=np.asarray(ids), exclude=None if exclude is None else np.asarray(exclude))

    def check(self, q: int, n: int) -> None:
        """Raise ValueError unless this can be the truth of q queries and n items."""
        require(q > 0 and n > 0, f"there are no {'database' if q else 'query'} codes")
        for name, length in {"query_labels": q, "database_labels": n, "neighbours": q, "exclude": q}.items():
            if (array := getattr(self, name)) is not None:
                fits = array.ndim == 1 + (name == "neighbours") and len(array) == length
                require(fits, f"{name} has shape {array.shape}, but there are {q} query codes and {n} database codes")
                rows = array.dtype.kind in "ui" and ((array >= 0) & (array < n)).all()
                require(rows or "labels" in name, f"{name} must be row numbers, integers in [0, {n}), got {array}")

    def blocks(self, n: int, longest: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield up to ``longest`` queries at a time: rows (b,), sets of relevant items, bool (r, n), which each has.

        Queries of one label share their set.
        """
        few = max(1, _BLOCK // n)  # sets
        if self.neighbours is not None:
            for rows in _chunks(np.arange(len(self.neighbours)), min(few, longest)):
                sets = np.zeros((len(rows), n), dtype=bool)
                np.put_along_axis(sets, self.neighbours[rows], True, 1)
                yield rows, sets, np.arange(len(rows))
            return
        for labels in _chunks(np.unique(self.query_labels), few):
            sets = labels[:, None] == self.database_labels
            for rows in _chunks(np.flatnonzero(np.isin(self.query_labels, labels)), longest):
                yield rows, sets, np.searchsorted(labels, self.query_labels[rows])


def _chunks(array: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (array[i : i + size] for i in range(0, len(array), size))


def _code_precisions(
    queries: Codes, database: Codes, truth: Truth, at: int | None, ties: tuple[Ties, ...], divisor: Divisor
) -> np.ndarray:
    """Return AP per query for each treatment of ties, shape (len(ties), q), block by block of queries."""
    truth.check(len(queries), len(database))
    index = HammingIndex(database)
    R, sums = _check_options(at, len(index), ties, divisor), harmonics(len(index))
    out = np.empty((len(ties), len(queries)))
    longest = R if "index" in ties else database.max_distance + 1
    for rows, sets, which in truth.blocks(len(index), max(1, _BLOCK // longest)):
        block, exclude, relevant = queries[rows], None, sets.sum(1)[which]
        if truth.exclude is not None:
            exclude = truth.exclude[rows]
            relevant -= sets[which, exclude]
        if ties != ("index",):
            counts, hits = index.histograms(block, sets, which, exclude, R)
        for i, name in enumerate(ties):
            if name == "index":
                hits = _hits_in_order(index, block, sets, which, exclude, R)
                counts = np.ones_like(hits)
            out[i, rows] = _precisions(counts, hits, R, name, relevant, divisor, *sums)
    return out


def _hits_in_order(
    index: HammingIndex, queries: Codes, sets: np.ndarray, which: np.ndarray, exclude: np.ndarray | None, at: int
) -> np.ndarray:
    """Return whether each of the first ``at`` items is relevant, shape (q, at), 0 or 1; an excluded one comes last."""
    ids = index.search(queries, at if exclude is None else at + 1)[1]
    hits = sets[which[:, None], ids].astype(np.int64)
    if exclude is not None:
        own = ids == exclude[:, None]
        hits = np.take_along_axis(np.where(own, 0, hits), np.argsort(own, axis=1, kind="stable"), 1)
    return hits[:, :at]


def _one_truth(truth: Truth | None, query_labels: np.ndarray | None, database_labels: np.ndarray | None) -> Truth:
    given = [x is not None for x in (truth, query_labels, database_labels)]
    require(given in ([True, False, False], [False, True, True]), "give either both arrays of labels or a truth")
    return truth or Truth.of_labels(query_labels, database_labels)


def mean_average_precision(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: np.ndarray | None = None,
    database_labels: np.ndarray | None = None,
    at: int | None = None,
    ties: Ties = "expected",
    *,
    truth: Truth | None = None,
    divisor: Divisor = "retrieved",
) -> float:
    r"""Return the mean over queries of :func:`average_precision`, in [0, 1]; ``truth`` may stand in place of labels.

    .. math:: \mathrm{mAP}@R = \frac{1}{|Q|}\sum_{q\in Q}\mathrm{AP}(q)@R
    """
    truth = _one_truth(truth, query_labels, database_labels)
    return float(_code_precisions(query_codes, database_codes, truth, at, (ties,), divisor).mean())


def tie_bounds(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: np.ndarray | None = None,
    database_labels: np.ndarray | None = None,
    at: int | None = None,
    *,
    truth: Truth | None = None,
    divisor: Divisor = "retrieved",
) -> TieBounds:
    """Return :func:`mean_average_precision` expected over ties, with its best and worst order, in one pass."""
    truth = _one_truth(truth, query_labels, database_labels)
    return TieBounds(
        *_code_precisions(query_codes, database_codes, truth, at, get_args(Ties)[:3], divisor).mean(1).tolist()
    )


def recall(ids: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean share of the true row numbers, truth (q, r), that are among ids (q, top); repeats count once."""
    ids, truth = np.asarray(ids), np.asarray(truth)
    shapes = f"ids {ids.shape} and truth {truth.shape} must have shapes (q >= 1, top) and (q, r >= 1), row numbers"
    whole = truth.dtype.kind in "iu" and (ids.dtype.kind in "iu" or ids.size == 0)
    require(whole and ids.ndim == truth.ndim == 2 and len(ids) == len(truth) and truth.size > 0, shapes)
    require(truth.min() >= 0, shapes)
    return float(np.mean([np.isin(np.unique(t), i).mean() for t, i in zip(truth, ids, strict=True)]))


def expected_recall(query_codes: Codes, database_codes: Codes, truth: np.ndarray, top: int = 100) -> float:
    r"""Return the mean share of the true row numbers, truth (q, r), among the first ``top`` codes, expected over ties.

    .. math:: \frac{1}{r}\sum_{d} h_d\,\min\!\Bigl(1, \frac{(R - \sum_{d' < d} c_{d'})_+}{c_d}\Bigr)

    Here :math:`c_d` items, :math:`h_d` of them true, lie at distance d of the query, and R is ``top``.
    """
    true, index = Truth.of_neighbours(truth), HammingIndex(database_codes)
    true.check(len(query_codes), len(index))
    found = np.empty(len(query_codes))
    for rows, sets, which in true.blocks(len(index), max(1, _BLOCK // (database_codes.max_distance + 1))):
        counts, hits = index.histograms(query_codes[rows], sets, which, at=top)
        room = np.clip(top - (counts.cumsum(1) - counts), 0, counts)
        found[rows] = (hits * room / np.maximum(counts, 1)).sum(1) / sets.sum(1)[which]
    return float(found.mean())


def functional_smoothness(
    X: np.ndarray, codes: Codes, fraction: float = 0.1, self_pairs: bool = True
) -> tuple[float, float]:
    """Return Pearson's r between similarity in input and in hash space, for the most and for the least similar pairs.

    Parameters
    ----------
    X : array (n, d)
        The inputs; their cosine similarity is compared (centre them first to follow the paper), 0 for a row of zeros.
    codes : Codes
        Their n codes. The cosine of two codes written with ±1, and for sparse codes also with 0 and 1, is affine in
        their Hamming distance, so r is the same for both.
    fraction : float in (0, 1]
        Share of all pairs in each group: 0.1 compares the top with the bottom 10%. Where all distances tie, r is NaN.
    self_pairs : bool
        Whether a row is paired with itself too. The paper's table is matched with them; they raise the top group.
    """
    X = real_numbers("X", X)
    require(X.ndim == 2, f"X must have shape (n, d), got {X.shape}")
    require(len(X) == len(codes) >= 2, f"need at least two rows and as many codes, got {len(X)} and {len(codes)}")
    require(is_number(fraction) and 0 < fraction <= 1, f"fraction must lie in (0, 1], got {fraction!r}")
    X = rows_near_one(X)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    i, j = np.triu_indices(len(X), k=0 if self_pairs else 1)
    similarity, distance = (X @ X.T)[i, j], codes.hamming(codes)[i, j].astype(float)
    order, take = np.argsort(similarity, kind="stable"), max(2, round(fraction * len(i)))
    top, bottom = (_pearson(similarity[rows], -distance[rows]) for rows in (order[-take:], order[:take]))
    return top, bottom


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")
