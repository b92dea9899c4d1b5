"""What sparse codes are good for beside neighbours: inner products, read-outs that do not forget, novelty."""

from __future__ import annotations

from typing import Self

import numpy as np

from .codes import Codes
from .inputs import require


def augment_items(X: np.ndarray) -> np.ndarray:
    r"""Return items on the unit sphere, float32 of shape (n, d + 1), whose angles to queries rank inner products.

    .. math:: P(x) = \Bigl[\tfrac{x}{M},\ \sqrt{1 - \tfrac{|x|^2}{M^2}}\Bigr], \qquad M = \max_x |x|

    With :func:`augment_queries`, :math:`\langle P(x), Q(q)\rangle = \langle x, q\rangle / (M |q|)`, so that the nearest
    neighbour by angle is the item of the largest inner product (Bachrach et al., 2014; Neyshabur and Srebro, 2015).
    """
    X = np.asarray(X, np.float32)
    squares = np.einsum("nd,nd->n", X, X, dtype=np.float64)
    most = squares.max(initial=0)
    require(bool(np.isfinite(most) and most > 0), "items need a finite norm, and one of them a norm above zero")
    rest = np.sqrt(1 - squares / most)
    return np.column_stack([X / np.sqrt(most), rest]).astype(np.float32)


def augment_queries(Q: np.ndarray) -> np.ndarray:
    r"""Return queries on the unit sphere beside :func:`augment_items`, float32 of shape (q, d + 1).

    .. math:: Q(q) = [q / |q|,\ 0]

    A query of zeros stays zero: every item has the inner product zero with it.
    """
    Q = np.asarray(Q, np.float32)
    norms = np.linalg.norm(Q, axis=1, keepdims=True)
    return np.column_stack([Q / np.where(norms > 0, norms, 1), np.zeros(len(Q), np.float32)])


class AssociativeReadout:
    r"""A linear function of codes for each class, learned by counting, one class after the other if need be.

    .. math:: f_c(x) = \sum_{\mu\in T_k(x)} \gamma_{c\mu}, \qquad
              \gamma_{c\mu} = \log\frac{n_{c\mu} + s}{n_c\,k/m + s}

    where :math:`n_{c\mu}` of the :math:`n_c` items of class c have unit :math:`\mu` on. What one class has written no
    other class touches, and the order of the items does not matter.

    Parameters
    ----------
    smoothing : float > 0
        s, the sightings that every unit is given beforehand.

    Attributes
    ----------
    counts_ : array of shape (classes, m)
        :math:`n_{c\mu}`; empty before anything is learned.
    """

    def __init__(self, smoothing: float = 1.0) -> None:
        require(smoothing > 0, f"smoothing must be above 0, got {smoothing}")
        self.smoothing = smoothing
        self.counts_ = np.zeros((0, 0), np.int64)

    def learn(self, codes: Codes, labels: np.ndarray) -> Self:
        """Add items with their labels, whole numbers from 0, shape (n,), and return self."""
        labels = np.asarray(labels, np.int64)
        require(labels.shape == (len(codes),), f"{len(codes)} codes need as many labels, got shape {labels.shape}")
        require(labels.min(initial=0) >= 0, "labels must be whole numbers from 0")
        known, m = self.counts_.shape[0], codes.n_units
        require(
            known == 0 or self.counts_.shape[1] == m, f"codes of {self.counts_.shape[1]} units were learned, got {m}"
        )
        grown = np.zeros((max(known, labels.max(initial=-1) + 1), m), np.int64)
        if known:
            grown[:known] = self.counts_
        one_hot = np.eye(len(grown), dtype=np.int64)[labels]
        grown += (codes.to_matrix().astype(np.int64).T @ one_hot).T
        self.counts_ = grown
        return self

    def scores(self, codes: Codes) -> np.ndarray:
        """Return f of every class, shape (n, classes); minus infinity for a class that was never seen."""
        n = self.counts_.sum(1, keepdims=True) / codes.n_units  # n_c k / m
        gamma = np.log((self.counts_ + self.smoothing) / (n + self.smoothing))
        seen = codes.to_matrix().astype(np.float64) @ gamma.T
        return np.where(n.T > 0, seen, -np.inf)

    def predict(self, codes: Codes) -> np.ndarray:
        """Return the class of the largest score, shape (n,)."""
        return self.scores(codes).argmax(1)


class FlyBloomFilter:
    r"""The fly's filter for novelty: a code is familiar as far as its units have been on before.

    .. math:: \mathrm{novelty}(x) = \frac1k\sum_{\mu\in T_k(x)} (1 - \delta)^{n_\mu}

    where :math:`n_\mu` stored items have unit :math:`\mu` on (Dasgupta, Sheehan, Stevens and Navlakha, 2018).

    Parameters
    ----------
    decay : float in (0, 1]
        :math:`\delta`, the share of its synapse that a unit loses each time it is on. With 1 this is a Bloom filter:
        one sighting is enough.
    """

    def __init__(self, decay: float = 1.0) -> None:
        require(0 < decay <= 1, f"decay must lie in (0, 1], got {decay}")
        self.decay = decay
        self.counts_: np.ndarray | None = None  #: (m,), once something is stored

    def store(self, codes: Codes) -> Self:
        """Make codes familiar, and return self."""
        counts = codes.to_matrix().sum(0, dtype=np.int64)
        require(self.counts_ is None or len(self.counts_) == len(counts), "the filter was filled with other units")
        self.counts_ = counts if self.counts_ is None else self.counts_ + counts
        return self

    def novelty(self, codes: Codes) -> np.ndarray:
        """Return the novelty of codes, shape (n,), from 0, often seen, to 1, never."""
        if self.counts_ is None:
            return np.ones(len(codes))
        matrix = codes.to_matrix().astype(np.float64)
        return matrix @ (1 - self.decay) ** self.counts_ / matrix.sum(1)
