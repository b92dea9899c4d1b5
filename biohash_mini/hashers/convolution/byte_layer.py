r"""The learning rule on stored features of which many are not zero: products of whole bytes decide who wins.

The synapses are float32, and each unit has a second copy of one byte a synapse, in steps of its own. With features that
are bytes already, a processor multiplies and adds several times as many of them as of floats:

.. math:: \langle W_\mu, f\rangle \approx u_\mu \sum_j q_{\mu j}\, l_j, \qquad
          q_{\mu j} = \mathrm{round}(W_{\mu j}\sigma_j / u_\mu), \qquad u_\mu = \max_j |W_{\mu j}\sigma_j| / 127

with levels l and the activation :math:`\sigma_j` that a level stands for. The error is a hundredth of the overlap that
unrelated vectors have, so it turns near ties only. Only the choice of winners and the size of their step see it; what
moves a unit is computed from the features as they are.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from ...plasticity import FAINT, row_norms
from .maps import ByteFeatures

MANY = 0.05  # share of features that are not zero from which it is faster to multiply all than to skip those that are


def many_are_active(features: ByteFeatures) -> bool:
    """Return whether so many features are not zero that products of bytes pay, and the processor has them."""
    return bool(torch.cpu._is_vnni_supported()) and (features.levels[:256] != 0).float().mean().item() >= MANY


class ByteSynapses:
    """Synapses W (m, d) of a layer on stored features, moved in place by the mean or the implicit step on a CPU."""

    def __init__(self, W: Tensor, features: ByteFeatures, implicit: bool = False) -> None:
        self.implicit, self.features, self.W = implicit, features, W.contiguous()
        m, d = W.shape
        self.brief, self.unit = torch.empty(m, d, dtype=torch.int8), torch.empty(m)
        self.total, self.along_mean = torch.empty(m, dtype=torch.int32), torch.empty(m)
        nobody = np.zeros(m + 1, np.int64)
        self._move(np.empty((0, d), np.uint8), np.arange(m), nobody, np.zeros(m, np.float32), np.ones(m, np.float32))

    def step_(self, rows: Tensor, lr: float) -> None:
        """Move the winner of each row by the mean of its samples, as :func:`~biohash_mini.plasticity.step_` does."""
        levels = self.features.levels.index_select(0, rows)
        s, winner = self.overlaps(levels).max(1)
        order = winner.argsort(stable=True).numpy()
        moved, first = np.unique(winner.numpy()[order], return_index=True)
        ends = np.append(first, len(order))
        mean_s = np.add.reduceat(s.double().numpy()[order], first) / np.diff(ends)
        shrink = 1 / (1 + lr * np.maximum(mean_s, 0)) if self.implicit else 1 - lr * mean_s
        gain = lr * shrink if self.implicit else np.full_like(shrink, lr)
        self._move(levels.numpy()[order], moved, ends, gain.astype(np.float32), shrink.astype(np.float32))

    def overlaps(self, levels: Tensor) -> Tensor:
        """Return the overlaps of centred rows of stored features (b, d) with every unit, shape (b, m)."""
        products = torch._int_mm((levels ^ 128).view(torch.int8), self.brief.T)  # a level less 128 is a signed byte
        return (products + self.total) * self.unit - self.along_mean

    def _move(
        self, levels: np.ndarray, moved: np.ndarray, ends: np.ndarray, gain: np.ndarray, shrink: np.ndarray
    ) -> None:
        """Move some units, and make their bytes and what goes with them."""
        about = (a.numpy() for a in (self.features.scale, self.features.mean, self.W, self.brief))
        _move(levels, moved, ends, gain, shrink, *about, *(a.numpy() for a in (self.unit, self.total, self.along_mean)))

    def weights(self) -> Tensor:
        """Return W, shape (m, d)."""
        return self.W

    def mean_norm(self) -> float:
        """Return the mean norm of the units."""
        return row_norms(self.W).mean().item()


@njit(parallel=True, fastmath=True, cache=True)
def _move(levels, moved, ends, gain, shrink, scale, mean, W, brief, unit, total, along_mean):
    """Move some units, each by the mean of a range of the levels, and make their bytes and what goes with them anew."""
    for t in prange(len(moved)):
        w, q, first, last = W[moved[t]], brief[moved[t]], ends[t], ends[t + 1]
        if last > first:
            won = np.zeros(len(w), np.int32)
            for i in range(first, last):
                row = levels[i]
                for j in range(len(w)):
                    won[j] += row[j]
            share = np.float32(1 / (last - first))
            for j in range(len(w)):
                v = shrink[t] * w[j] + gain[t] * (share * won[j] * scale[j] - mean[j])
                w[j] = v if abs(v) > FAINT else np.float32(0)
        most, along = np.float32(0), 0.0
        for j in range(len(w)):
            most = max(most, abs(w[j] * scale[j]))
            along += w[j] * mean[j]
        step = max(most / np.float32(127), np.float32(1e-30))
        inverse, added = np.float32(1) / step, np.int32(0)
        for j in range(len(w)):
            level = np.int32(np.rint(w[j] * scale[j] * inverse))
            q[j] = level
            added += level
        unit[moved[t]], total[moved[t]], along_mean[moved[t]] = step, 128 * added, along
