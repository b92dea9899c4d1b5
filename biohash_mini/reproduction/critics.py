"""What the critics of learned hashes ask for: neighbours found for the candidates looked at, and where units go."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ..datasets import Task, load, nearest
from ..search import HammingIndex
from .measure import Outcome, percent
from .protocols import keep

LOOKS = (10, 20, 50, 100, 200, 500, 1000)  # candidates that may be looked at


@keep
def search_task(data: str, profile: str, seed: int) -> Task:
    """Return the task of finding true neighbours: a thousand random rows are asked, the others stored in random order.

    Of a sample at most a twentieth is asked. Words are made unit vectors, so that the nearest is nearest by angle too.
    """
    dataset = load(data, profile)
    order = np.random.default_rng(seed).permutation(len(dataset))
    asked, stored = np.split(order, [min(1000, len(order) // 20)])
    queries, database = dataset.vectors(asked), dataset.vectors(stored)
    if dataset.words is not None:
        queries, database = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (queries, database))
    return Task(database, queries, database_ids=stored, query_ids=asked, sha256=dataset.sha256)


def found_by(ids: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the mean share of true neighbours, truth (q, r), among the first 1, 2, … of the answers, ids (q, R)."""
    hits = (ids[:, :, None] == truth[:, None]).any(2)  # (q, R)
    return hits.cumsum(1).mean(0) / truth.shape[1]


def candidates(found: Outcome, top: int = 10) -> dict[str, Any]:
    """Return how many of the ten nearest rows, in percent, are among the first answers, and the seconds of searching.

    The value is that of a hundred answers; ``looks`` has those of ten to a thousand.
    """
    truth = nearest(found.task.queries, found.task.database, top)
    index = HammingIndex(found.database)
    index.search(found.queries[:10], max(LOOKS))  # compiled, and its bitmaps made
    start = time.perf_counter()
    _, ids = index.search(found.queries, max(LOOKS))
    took = time.perf_counter() - start
    share = found_by(ids, truth)
    looks = {str(R): percent(share[R - 1]) for R in LOOKS if R <= len(share)}
    return {"value": looks["100"], "looks": looks, "seconds_search": round(took, 4)}


def directions(X: np.ndarray) -> Tensor:
    """Return centred rows as unit vectors, shape (n, d), less those that are zero."""
    rows = torch.from_numpy(np.ascontiguousarray(X - X.mean(0)))
    return normalize(rows[rows.any(1)])


def distances(P: Tensor, X: Tensor, near: int) -> np.ndarray:
    """Return the distances from unit vectors P (q, d) to their nearest in X (n, d), ascending, shape (q, near)."""
    return (2 - 2 * P @ X.T).clamp_min(0).topk(near, dim=1, largest=False).values.sqrt().numpy()


def intrinsic_dimension(r: np.ndarray) -> float:
    r"""Return the dimension in which points grow in number as they do around a point (Levina and Bickel, 2005).

    .. math:: \hat D^{-1} = \operatorname{mean}_x \frac{1}{K-2}\sum_{j<K}\log\frac{r_K(x)}{r_j(x)}

    The mean is taken of the inverse, as MacKay and Ghahramani advise.

    Parameters
    ----------
    r : array (n, K)
        Distances from points to their neighbours, ascending, none of them zero.
    """
    return float((r.shape[1] - 2) / np.log(r[:, -1:] / r[:, :-1]).sum(1).mean())


def two_nearest(r: np.ndarray, kept: float = 0.9) -> float:
    r"""Return the dimension that the two nearest neighbours give (Facco et al., 2017).

    .. math:: -\log(1 - F(\mu)) = D\log\mu, \qquad \mu = r_2/r_1

    It is the slope of a line through zero; the largest ratios, a tenth, are left out.
    """
    ratio = np.log(np.sort(r[:, 1] / r[:, 0]))
    share = np.arange(1, len(ratio) + 1) / (len(ratio) + 1)
    x, y = (values[: int(kept * len(ratio))] for values in (ratio, -np.log(1 - share)))
    return float(x @ y / (x @ x))


def cells(U: Tensor, W: Tensor) -> tuple[np.ndarray, np.ndarray]:
    r"""Return what part of the unit vectors U (n, d) each unit of W (m, d) wins, and their mean distortion, (m,) each.

    .. math:: p_\mu = \Pr[\mu \text{ wins}], \qquad s_\mu = \operatorname{E}[1 - \cos(x, W_\mu)\mid \mu \text{ wins}]
    """
    cosine, winner = torch.cat([part @ normalize(W).T for part in U.split(8192)]).max(1)
    won = np.bincount(winner, minlength=len(W))
    return won / len(U), np.bincount(winner, weights=1 - cosine, minlength=len(W)) / np.maximum(won, 1)


def evenness(U: Tensor, W: Tensor, fewest: int = 5) -> dict[str, float]:
    """Return how unevenly units are used, and how unevenly they share the distortion; units that win few are left out.

    Both are standard deviations over means. ``slope`` is that of the logarithm of a unit's use against that of its
    mean distortion, and ``correlation`` theirs; where all shares are equal, both are -1.
    """
    p, s = cells(U, W)
    kept = (p * len(U) >= fewest) & (s > 0)
    p, s = p[kept], s[kept]
    x, y = np.log(s), np.log(p)
    fields = {"use": p.std() / p.mean(), "shares": (p * s).std() / (p * s).mean()}
    fields |= {"slope": np.polyfit(x, y, 1)[0], "correlation": np.corrcoef(x, y)[0, 1]}
    return {name: round(float(value), 4) for name, value in fields.items()}


def shared_energy(found: Outcome) -> dict[str, Any]:
    """Return the unevenness of the units' shares in percent, with :func:`evenness` and the dimension of the rows."""
    U = directions(found.task.train[:20_000])  # they are in random order
    r = distances(U[:: max(1, len(U) // 1000)], U, 21)[:, 1:]
    r = r[r[:, 0] > 1e-3]  # less those that have a double
    even = evenness(U, found.hasher.weights_)
    dimensions = {"dimension": round(intrinsic_dimension(r), 2), "two_nearest": round(two_nearest(r), 2)}
    return {"value": round(100 * even["shares"], 2), **even, **dimensions}


def neighbours_found(found: Outcome, top: int = 10, at: int = 100) -> dict[str, Any]:
    """Return how many of the ten nearest rows, in percent, are among the first hundred answers."""
    _, ids = HammingIndex(found.database).search(found.queries[:1000], at)
    truth = nearest(found.task.queries[:1000], found.task.database, top)
    return {"neighbours": percent(found_by(ids, truth)[-1])}
