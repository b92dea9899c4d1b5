"""What may come before a hash layer: units that are wired because they fire together, and gradients of images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn import functional as F

from .hashers import BioHash
from .inputs import as_rows, blocks, count

_ROWS = 2048  # rows that are transformed at a time
_FLAT = 0.02  # a cell whose gradients are shorter than this has no clear direction
_PASSES = 3  # of the first layer over the data


def gradients(images: object, *, cell: int = 4, directions: int = 8) -> np.ndarray:
    r"""Return how edges run in every part of the images (n, c, h, w), float32 of shape (n, parts · directions).

    .. math:: h_{ps} = \sum_{i \in p} \lVert\nabla x_i\rVert\, w_s(\angle\nabla x_i),
              \qquad f_{ps} = \sqrt{h_{ps}/\lVert h_p\rVert}

    A histogram of oriented gradients (Dalal and Triggs, 2005) with nothing to learn: a pixel votes for the two of the
    ``directions`` nearest to that of its gradient (weights w), a part p is a window of twice ``cell`` pixels a side,
    ``cell`` apart from the next, and every part counts alike. Of several channels the steepest at a pixel votes.
    """
    shape = tuple(getattr(images, "shape", ()))
    if len(shape) != 4:
        raise ValueError(f"images must have shape (n, c, h, w), got {shape}")
    cell = count("cell", cell, 1, min(shape[2:]) // 2)
    directions = count("directions", directions, 2)
    parts = [_histograms(part.reshape(-1, *shape[1:]), cell, directions) for part in blocks(as_rows(images), _ROWS)]
    return torch.cat(parts).numpy()


def _histograms(X: Tensor, cell: int, directions: int) -> Tensor:
    """Return :func:`gradients` of a few images."""
    X = F.pad(X, (1, 1, 1, 1), mode="replicate")
    across, down = X[:, :, 1:-1, 2:] - X[:, :, 1:-1, :-2], X[:, :, 2:, 1:-1] - X[:, :, :-2, 1:-1]
    length, steepest = torch.hypot(across, down).max(1, keepdim=True)  # (n, 1, h, w)
    angle = torch.atan2(down.gather(1, steepest), across.gather(1, steepest)) % (2 * math.pi)
    place = angle * directions / (2 * math.pi)
    below = place.floor()
    share = place - below
    votes = length.new_zeros(len(X), directions, *length.shape[2:])
    votes.scatter_add_(1, below.long() % directions, length * (1 - share))
    votes.scatter_add_(1, (below.long() + 1) % directions, length * share)
    h = F.avg_pool2d(votes, 2 * cell, cell)  # (n, directions, rows, columns)
    return (h / (h.norm(dim=1, keepdim=True) + _FLAT)).sqrt().flatten(1)


class Wiring(TransformerMixin, BaseEstimator):
    r"""Where in the data a row lies, told by the units that fire for it and by how these are wired.

    A first layer of BioHash learns ``landmarks`` units, of which ``winners`` fire for a row: z, with entries of one
    over their number. Units that fire together are wired together (Hebb, 1949), and activity that spreads along the
    wires fades slowly only in patterns that change little from a unit to its neighbours:

    .. math:: A = \sum_x z z^\top, \qquad D = \mathrm{diag}(A\mathbf 1), \qquad
              D^{-1/2} A\, D^{-1/2} v_j = \lambda_j v_j, \qquad
              f_j(x) = \lambda_j \sum_\mu z_\mu D_{\mu\mu}^{-1/2}\, v_{j\mu}

    The features are the ``modes`` slowest patterns, read at the units that fire, as a vector of length one: how a row
    relates to the shape of the data as a whole, rather than to what lies nearby. So they know no labels, but rows that
    are joined by a chain of neighbours come close to each other. New rows are transformed as those of the fit were.

    Parameters
    ----------
    landmarks : int >= 1
        Units of the first layer, at most one for every four rows.
    winners : int >= 1
        Units that fire for a row.
    modes : int >= 1
        Patterns that are kept.
    seed : int
        Seed of the first layer.

    Attributes
    ----------
    units_ : Tensor of shape (landmarks, d)
        Directions of the first layer's units.
    mean_ : Tensor of shape (d,)
        What is subtracted from every row.
    rates_ : Tensor of shape (modes,)
        How much of a pattern is left after one step along the wires, the slowest first.
    patterns_ : Tensor of shape (landmarks, modes)
        What a unit adds to each feature of the rows that it fires for.

    Notes
    -----
    This is the graph of Anchor Graph Hashing (Liu et al., 2011) with a BioHash layer for anchors.
    """

    def __init__(self, landmarks: int = 2000, *, winners: int = 5, modes: int = 32, seed: int = 0) -> None:
        self.landmarks = landmarks
        self.winners = winners
        self.modes = modes
        self.seed = seed

    def fit(self, X: object, y: object = None) -> Self:
        """Learn units and wires from the rows of X, shape (n, d), and return self; ``y`` is ignored."""
        rows = as_rows(X)
        m = min(count("landmarks", self.landmarks, 1), max(1, len(rows) // 4))
        winners, modes = (min(count(name, getattr(self, name), 1), m) for name in ("winners", "modes"))
        layer = BioHash(m, activity=1.0, max_epochs=_PASSES, seed=self.seed, device="cpu").fit(rows)
        self.units_, self.mean_ = F.normalize(layer.weights_, dim=1), layer.mean_
        fired = torch.cat(list(self._fired(rows, winners)))  # (n, winners)
        ends = np.arange(0, fired.numel() + 1, winners)
        z = sp.csr_array(
            (np.full(fired.numel(), 1 / winners, np.float32), fired.flatten().numpy(), ends), (len(rows), m)
        )
        wires = torch.from_numpy((z.T @ z).toarray())
        inverse = wires.sum(1).clamp_min(torch.finfo(wires.dtype).eps).rsqrt()  # D^(-1/2), finite for a silent unit
        rates, patterns = torch.linalg.eigh(inverse[:, None] * wires * inverse)
        self.rates_, slowest = rates.flip(0)[:modes].clamp(0, 1), patterns.flip(1)[:, :modes]
        self.patterns_ = inverse[:, None] * slowest * self.rates_ / winners
        return self

    def transform(self, X: object) -> np.ndarray:
        """Return the features of the rows of X, float32 of shape (n, modes)."""
        check_is_fitted(self)
        winners = min(self.winners, len(self.units_))
        parts = [self.patterns_[fired].sum(1) for fired in self._fired(as_rows(X), winners)]
        return F.normalize(torch.cat(parts), dim=1).numpy()

    def _fired(self, rows: np.ndarray | Tensor, winners: int) -> Iterator[Tensor]:
        """Yield the units that fire for each row, shape (b, winners), a few rows at a time."""
        for part in blocks(rows, _ROWS):
            yield ((part - self.mean_) @ self.units_.T).topk(winners, 1).indices
