"""What a method takes: rows of real numbers, checked, a block at a time where they lie in a file."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

_BLOCK = 1 << 23  # values of a mapped file that are looked at together: 32 MB of float32


def require(ok: bool, message: str) -> None:
    """Raise ValueError with the message unless ok."""
    if not ok:
        raise ValueError(message)


def torch_device(name: str) -> torch.device:
    """Return the device of that name; "auto" takes cuda, then mps, then cpu."""
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, there in present.items() if there))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f'device must be "auto" or a torch device, got {name!r}') from None
    if not present.get(device.type, False):
        raise ValueError(f"device {name!r} is not available here; try {[k for k, v in present.items() if v]}")
    return device


def as_rows(X: object) -> np.ndarray | Tensor:
    """Return X as an array or tensor of real numbers, shape (n, d), neither copied nor looked through.

    Images of shape (n, c, h, w) become rows, an image in the order channel, row, column.
    """
    require(not sp.issparse(X), "X is a scipy sparse matrix; pass X.toarray()")
    rows = X.detach() if isinstance(X, Tensor) else np.asanyarray(X)
    real = not rows.is_complex() if isinstance(rows, Tensor) else rows.dtype.kind in "fiub"
    require(real, f"X must hold real numbers, got {rows.dtype}")
    shape = tuple(rows.shape)
    require(len(shape) in (2, 4) and 0 not in shape, f"X must have shape (n, d) with n, d >= 1, got {shape}")
    return rows if len(shape) == 2 else rows.reshape(len(rows), -1)


def as_matrix(X: object, first: int = 0) -> Tensor:
    """Return X as a finite float32 tensor of shape (n, d); ValueError says what is wrong with it.

    Takes numpy arrays and torch tensors of any real type and layout, read-only ones too, and never changes them.
    ``first`` is the number of the first row, for the message.
    """
    rows = as_rows(X)
    if not isinstance(rows, Tensor):
        with np.errstate(over="ignore"):  # what does not fit float32 is reported as infinite below
            rows = torch.from_numpy(np.require(np.asarray(rows), np.float32, ("C", "W")))
    rows = rows.to(torch.float32)
    finite = torch.isfinite(rows)
    if not finite.all():
        row, column = (~finite).nonzero()[0].tolist()
        raise ValueError(f"X must be finite in float32, but X[{first + row}, {column}] is {rows[row, column].item()}")
    return rows


def blocks(X: np.ndarray | Tensor, rows: int) -> Iterator[Tensor]:
    """Yield the rows of :func:`as_rows`, so many at a time, as :func:`as_matrix` has them.

    Of a mapped file only the block at hand is in memory: its pages are given back to the system afterwards.
    """
    for start in range(0, len(X), rows):
        yield as_matrix(X[start : start + rows], start)
        forget(X)


def forget(X: object) -> None:
    """Give back the pages of a read-only mapped file that were read; they can be read again."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and getattr(X, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class MappedRows:
    """Rows of a mapped file X (n, d), less their mean: ``rows[numbers]`` reads a minibatch, float32 of shape (b, d).

    X is looked through once, block by block, for its mean and for what is not finite; without ``center`` the mean is
    left where it is.
    """

    def __init__(self, X: np.ndarray, center: bool, device: torch.device) -> None:
        step = max(1, _BLOCK // X.shape[1])
        weighted = [(len(part), part.mean(0)) for part in blocks(X, step)]
        mean = weighted[0][1]  # as rows in memory have it, if one block holds all
        if len(weighted) > 1:
            mean = torch.stack([n * part.double() for n, part in weighted]).sum(0) / len(X)
        self.X, self.device, self.shape = X, device, X.shape
        self.mean = (mean if center else torch.zeros_like(mean)).to(torch.float32).to(device)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, numbers: Tensor | slice) -> Tensor:
        chosen = numbers if isinstance(numbers, slice) else numbers.cpu().numpy()
        rows = torch.from_numpy(np.asarray(self.X[chosen]).astype(np.float32)).to(self.device) - self.mean
        forget(self.X)
        return rows
