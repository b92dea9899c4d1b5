"""What a convolution does in the paper (sec. 2.4): unit patches, channel inhibition, pooling; features as bytes."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor
from torch.nn import functional as F

from ...counting.winners import floor_of, range_of

BLANK = 1e-3  # a patch of a smaller norm has no direction: its activations are zero, and no filter learns from it


def unit_patches(X: Tensor, size: int, normalize: bool = True) -> Tensor:
    r"""Return every patch of the images X (n, c, h, w) as a unit vector, shape (n, positions, c·size²).

    .. math:: \hat x_s = x_s / \lVert x_s\rVert, \qquad \hat x_s = 0 \text{ for a blank patch}

    Positions run along rows, one step at a time, without padding. ``normalize=False`` leaves the lengths as they are.
    """
    patches = F.unfold(X, size).transpose(1, 2)  # (n, positions, c size²)
    norms = torch.linalg.vector_norm(patches, dim=2, keepdim=True)
    scale = norms if normalize else torch.ones_like(norms)
    return torch.where(norms > BLANK, patches / scale.clamp_min(torch.finfo(X.dtype).tiny), 0)


def sample_patches(X: Tensor, size: int, count: int, normalize: bool, rng: torch.Generator) -> Tensor:
    """Return random patches of the images X (n, c, h, w) that are not blank, shape (count, c·size²)."""
    n, _, height, width = X.shape
    found, missing = [], count
    for _ in range(100):
        image = torch.randint(n, (missing,), generator=rng)
        y = torch.randint(height - size + 1, (missing,), generator=rng)
        x = torch.randint(width - size + 1, (missing,), generator=rng)
        offsets = torch.arange(size)
        window = X[image[:, None, None], :, (y[:, None] + offsets)[:, :, None], (x[:, None] + offsets)[:, None, :]]
        window = window.movedim(3, 1).flatten(1)  # (missing, c size²)
        norms = torch.linalg.vector_norm(window, dim=1, keepdim=True)
        seen = norms[:, 0] > BLANK
        found.append((window / norms if normalize else window)[seen])
        missing -= int(seen.sum())
        if missing == 0:
            return torch.cat(found)
    raise ValueError(f"hardly a patch of {size} × {size} pixels has a norm above {BLANK}: nothing to learn from")


def inhibit_and_pool(A: Tensor, height: int, winners: int, pool: int, stride: int) -> Tensor:
    """Return the pooled activations of n images, shape (n, pools, channels), from A, shape (n, positions, channels).

    At each position the ``winners`` largest positive channels stay and the others become zero (channel inhibition);
    then each channel keeps its maximum in every window of ``pool`` × ``pool`` positions, ``stride`` apart.
    """
    if A.device.type == "cpu":
        return torch.from_numpy(_inhibit_and_pool(A.contiguous().numpy(), height, winners, pool, stride))
    top, channels = A.topk(winners, dim=2)
    kept = torch.zeros_like(A).scatter_(2, channels, top.clamp_min(0))
    maps = kept.transpose(1, 2).reshape(len(A), A.shape[2], height, -1)
    return F.max_pool2d(maps, pool, stride).flatten(2).transpose(1, 2)


_FAST = {"nnan", "nsz", "reassoc"}  # so that many numbers are looked at a time; max() would prevent it


@njit(parallel=True, fastmath=_FAST, cache=True)
def _inhibit_and_pool(A, height, winners, pool, stride):
    """Do both in one pass: along each line of positions first, whose maxima then join those of the lines above."""
    n, positions, channels = A.shape
    width = positions // height
    rows, columns = (height - pool) // stride + 1, (width - pool) // stride + 1
    out = np.zeros((n, rows, columns, channels), dtype=A.dtype)
    for i in prange(n):
        line, kept, high = np.empty((columns, channels), A.dtype), np.empty(channels, A.dtype), np.float32(0)
        for y in range(height):
            line[:] = 0
            for x in range(width):
                values = A[i, y * width + x]
                low, high = floor_of(values, winners, np.float32(0), max(range_of(values)[1], np.float32(0)), high)
                left = np.float32(winners)
                for c in range(channels):
                    kept[c] = values[c] if values[c] > high else np.float32(0)
                    left -= np.float32(1) if values[c] > high else np.float32(0)
                for c in range(channels if low < high else 0):  # of equal values those that stand first
                    if low < values[c] <= high and left > 0:
                        kept[c], left = values[c], left - 1
                for s in range(max(0, (x - pool + stride) // stride), min(columns, x // stride + 1)):
                    _join(line[s], kept)
            for r in range(max(0, (y - pool + stride) // stride), min(rows, y // stride + 1)):
                for s in range(columns):
                    _join(out[i, r, s], line[s])
    return out.reshape(n, rows * columns, channels)


@njit(fastmath=_FAST, cache=True)
def _join(most, values):
    """Raise what is lower than the values to them."""
    for c in range(len(most)):
        most[c] = values[c] if values[c] > most[c] else most[c]


class ByteFeatures:
    """Pooled activations of n images, one byte each; ``features[rows]`` gives them as centred float32, shape (b, d).

    As float32 the 100,000 features of the 69,000 images of MNIST would fill 28 GB; as bytes they take 6.9 GB. A level,
    uint8 (n, d), stands for an activation of ``scale``, shape (d,). What is subtracted is ``mean``, shape (d,), by
    default that of these rows.
    """

    def __init__(self, levels: Tensor, scale: Tensor, mean: Tensor | None = None) -> None:
        self.levels, self.scale, self.device, self.shape = levels, scale, levels.device, levels.shape
        if mean is None:
            total = sum(part.sum(0, dtype=torch.int64) for part in levels.split(1024))
            mean = total.to(scale.dtype) / len(levels) * scale
        self.mean = mean

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        return torch.addcmul(-self.mean, self.levels[rows].to(self.scale.dtype), self.scale)


def mean_norm(X: Tensor | ByteFeatures) -> float:
    """Return the mean Euclidean norm of the first rows, by which a rate is divided; 1 if they are zero."""
    return torch.linalg.vector_norm(X[:100], dim=1).mean().item() or 1.0
