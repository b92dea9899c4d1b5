r"""The learning rule on features that are mostly zero, as channel inhibition leaves them, at a cost that shows it.

A step of the rule moves every synapse of a winner, since it subtracts the mean of the features and shrinks what was
there. Both are one number per unit when the synapses are held as

.. math:: W_\mu = \alpha_\mu V_\mu + \beta_\mu \bar f, \qquad x = f - \bar f,

so that a step touches :math:`V` only where the features f of a minibatch are not zero, and so does a product: the
fewer channels are active at a position, the less it costs.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import get_num_threads, njit, prange
from torch import Tensor

from ...plasticity import FAINT, row_norms
from .maps import ByteFeatures

_CACHED = 1 << 18  # synapses worked on at a time: 1 MB of float32, about a second-level cache
_SMALL = 1e-6  # an alpha below this is multiplied out


class LazySynapses:
    """Synapses of a layer on stored features, a copy of W (m, d) first, for the mean or implicit step on a CPU."""

    def __init__(self, W: Tensor, features: ByteFeatures, implicit: bool = False) -> None:
        self.implicit = implicit
        self.features, self.V = features, W.T.contiguous()  # (d, m): the units of a feature are neighbours
        self.alpha, self.beta = np.ones(len(W)), np.zeros(len(W))
        self.along_mean = (features.mean @ self.V).double().numpy()  # <W, mean>

    def step_(self, rows: Tensor, lr: float) -> None:
        r"""Move the winner of each row by the mean of its samples, as :func:`~biohash_mini.plasticity.step_` does.

        .. math:: W_\mu \leftarrow (1 - \epsilon \bar s_\mu)\,W_\mu + \epsilon\,(\bar f_\mu - \bar f)

        with means over the :math:`n_\mu` samples that unit :math:`\mu` wins, each by an overlap s. The implicit step
        divides by :math:`1 + \epsilon [\bar s_\mu]_+` instead, the new part too.
        """
        mean, beta, threads = self.features.mean, self.beta, get_num_threads()
        block = max(1, _CACHED // len(beta))
        active = _active(self.features.levels.numpy(), self.features.scale.numpy(), rows.numpy(), block)
        of_mean = _product(*active, mean[:, None].numpy(), 1)[:, 0].astype(np.float64)  # <f, mean>
        S = self.alpha * _product(*active, self.V.numpy(), threads)
        S += np.outer(of_mean, beta) - self.along_mean  # (b, m)
        winner = S.argmax(1)
        s = S[np.arange(len(S)), winner]
        won = np.bincount(winner, minlength=len(beta))
        moved = won.nonzero()[0]
        n = won[moved]
        mean_s = np.bincount(winner, s)[moved] / n
        shrink = 1 / (1 + lr * np.maximum(mean_s, 0)) if self.implicit else 1 - lr * mean_s
        gain = np.zeros(len(beta))  # of the features of a unit
        gain[moved] = lr * shrink if self.implicit else lr
        self.alpha[moved] *= shrink
        beta[moved] = shrink * beta[moved] - gain[moved]
        rise = np.bincount(winner, of_mean)[moved] / n - float(mean.double() @ mean.double())
        self.along_mean[moved] = shrink * self.along_mean[moved] + gain[moved] * rise
        _multiply_out(self.V.numpy(), self.alpha, beta, mean.numpy(), moved[abs(self.alpha[moved]) < _SMALL])
        _add(*active, self.V.numpy(), winner, (gain / won.clip(1) / self.alpha)[winner].astype(np.float32), threads)

    def weights(self) -> Tensor:
        """Return W, shape (m, d), and hold it as V from now on."""
        alpha, beta = (torch.from_numpy(a).to(self.V) for a in (self.alpha, self.beta))
        self.V.mul_(alpha).addr_(self.features.mean, beta)
        self.alpha[:], self.beta[:] = 1, 0
        return self.V.T

    def mean_norm(self) -> float:
        """Return the mean norm of the units."""
        return row_norms(self.weights()).mean().item()


def level_products(levels: Tensor, scale: Tensor, V: Tensor) -> Tensor:
    r"""Return :math:`\langle V_\mu, f\rangle` of stored features with every unit, shape (n, m); V has shape (d, m)."""
    if levels.device.type != "cpu":
        return (levels.to(scale.dtype) * scale) @ V
    block = max(1, _CACHED // V.shape[1])
    active = _active(levels.numpy(), scale.numpy(), np.arange(len(levels)), block)
    return torch.from_numpy(_product(*active, V.numpy(), get_num_threads()))


@njit(parallel=True, cache=True)
def _active(levels, scale, rows, block):
    """Return what is not zero in some rows: where each block of features begins, (b, blocks + 1), indices, values.

    Every feature is written behind the last one, and over it if that was zero: a row needs a place to spare.
    """
    b, d = len(rows), levels.shape[1]
    blocks = (d + block - 1) // block
    starts = np.zeros((b, blocks + 1), dtype=np.int64)
    for i in prange(b):
        row = levels[rows[i]]
        for j in range(blocks):
            count = 0
            for level in row[j * block : (j + 1) * block]:
                count += level != 0
            starts[i, j + 1] = count
    total = 0
    for i in range(b):
        starts[i, 0] = total
        for j in range(blocks):
            total += starts[i, j + 1]
            starts[i, j + 1] = total
        total += 1
    index, value = np.empty(total, dtype=np.int32), np.empty(total, dtype=scale.dtype)
    for i in prange(b):
        row, end = levels[rows[i]], starts[i, 0]
        for j in range(d):
            index[end], value[end] = j, row[j] * scale[j]
            end += row[j] != 0
    return starts, index, value


@njit(parallel=True, fastmath=True, cache=True)
def _product(starts, index, value, V, threads):
    """Return the product of the active features with V (d, m), shape (b, m); a block of V serves all rows at once."""
    b, m = len(starts), V.shape[1]
    out = np.zeros((b, m), dtype=V.dtype)
    for t in prange(threads):
        units = slice(m * t // threads, m * (t + 1) // threads)
        for block in range(starts.shape[1] - 1):
            for i in range(b):
                y, a, end = out[i, units], starts[i, block], starts[i, block + 1]
                while a + 2 < end:  # three features at a time: a third of the traffic to y
                    v0, v1, v2 = V[index[a], units], V[index[a + 1], units], V[index[a + 2], units]
                    x0, x1, x2 = value[a], value[a + 1], value[a + 2]
                    for u in range(len(y)):
                        y[u] += x0 * v0[u] + x1 * v1[u] + x2 * v2[u]
                    a += 3
                for last in range(a, end):
                    v, x = V[index[last], units], value[last]
                    for u in range(len(y)):
                        y[u] += x * v[u]
    return out


@njit(parallel=True, cache=True)
def _add(starts, index, value, V, winner, factor, threads):
    """Add the active features of each row, times a factor of its own, to its winner in V; a thread has its features."""
    blocks = starts.shape[1] - 1
    for t in prange(threads):
        first, last = blocks * t // threads, blocks * (t + 1) // threads
        for i in range(len(winner)):
            for a in range(starts[i, first], starts[i, last]):
                V[index[a], winner[i]] += factor[i] * value[a]


@njit(cache=True)
def _multiply_out(V, alpha, beta, mean, units):
    """Make some units' alpha one and their beta zero."""
    for u in units:
        for j in range(len(V)):
            v = alpha[u] * V[j, u] + beta[u] * mean[j]
            V[j, u] = v if abs(v) > FAINT else 0.0
        alpha[u], beta[u] = 1, 0
