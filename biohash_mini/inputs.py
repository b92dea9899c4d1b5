"""What a method takes: rows of real numbers, checked, a block at a time where they lie in a file."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

_BLOCK = 1 << 23  # values of a mapped file that are looked at together: 32 MB of float32
_ORDINARY = 30  # powers of two, up and down, within which float32 holds squares, their sums and their quotients
REACH = 2.0**50  # the largest entry, after scaling, of which that is still true


def require(ok: bool, message: str) -> None:
    """Raise ValueError with the message unless ok."""
    if not ok:
        raise ValueError(message)


def is_whole(value: object) -> bool:
    """Return whether a value is an integer, Python's or numpy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_number(value: object) -> bool:
    """Return whether a value is a finite real number, Python's or numpy's; True and False are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def count(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return the value if it is an integer from ``least`` to ``most``; ValueError names it and the range."""
    words = f"of at least {least}" if most is None else f"from {least} to {most}"
    allowed = is_whole(value) and least <= value and (most is None or value <= most)  # type: ignore[operator]
    require(allowed, f"{name} must be an integer {words}, got {value!r}")
    return int(value)  # type: ignore[call-overload]


def real_numbers(name: str, value: object) -> np.ndarray:
    """Return the value as an array of float64, NaN and infinity refused; ValueError names it."""
    array = real_array(name, value).astype(np.float64)
    require(bool(np.isfinite(array).all()), f"{name} must be finite numbers")
    return array


def real_array(name: str, value: object) -> np.ndarray:
    """Return the value as an array of real numbers, of which none is masked; ValueError names it."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different length
        array = np.asarray(None)
    require(array.dtype.kind in "fiub", f"{name} must be real numbers, got {type(value).__name__} of {array.dtype}")
    require(not np.ma.is_masked(value), f"{name} must all be known, and some of them are masked")
    return array


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


def as_labels(*given: object) -> list[np.ndarray]:
    """Return arrays of labels that may be compared: all numbers or all of another one type, and none of them NaN."""
    labels = [_labels(a) for a in given]
    kinds = {"number" if a.dtype.kind in "iuf" else a.dtype.kind for a in labels if a.size}
    types = " and ".join(str(a.dtype) for a in labels)
    require(len(kinds) <= 1 and "O" not in kinds, f"labels must be of one type, numbers or texts, got {types}")
    if kinds == {"number"}:  # a common type of large integers may be one that rounds them
        common = np.result_type(*labels)
        with np.errstate(invalid="ignore"):
            exact = all((a == a.astype(common).astype(a.dtype)).all() for a in labels)
        require(exact, f"labels of {types} have no type in common that holds them all: give both the same")
    return labels


def _labels(given: object) -> np.ndarray:
    """Return labels as an array; a list of numbers and texts, of which numpy would make texts, stays what it is."""
    try:
        labels = np.asarray(given)
        listed = labels.dtype.kind in "US" and not hasattr(given, "dtype")
        labels = np.asarray(given, object) if listed else labels
    except ValueError:
        raise ValueError("labels must be an array, and not lists of different length") from None
    for kind in (str, bytes):
        if labels.dtype.kind == "O" and all(isinstance(v, kind) for v in labels.flat):
            labels = labels.astype(kind)
    require(not np.ma.is_masked(given), "labels must all be known, and some of these are masked")
    require(labels.dtype.kind == "O" or bool((labels == labels).all()), "labels must not be NaN")
    return labels


def as_rows(X: object) -> np.ndarray | Tensor:
    """Return X as an array or tensor of real numbers, shape (n, d), neither copied nor looked through.

    Images of shape (n, c, h, w) become rows, an image in the order channel, row, column.
    """
    require(not sp.issparse(X), "X is a scipy sparse matrix; pass X.toarray()")
    require(not np.ma.is_masked(X), "X is a masked array, some values of which are missing; pass X.filled(value)")
    strided = not isinstance(X, Tensor) or X.layout == torch.strided
    require(strided, f"X is a tensor of layout {getattr(X, 'layout', '')}; pass X.to_dense()")
    try:
        rows = X.detach() if isinstance(X, Tensor) else np.asanyarray(X)
    except ValueError:
        raise ValueError("X must be an array of shape (n, d), and its rows have different lengths") from None
    real = not rows.is_complex() if isinstance(rows, Tensor) else rows.dtype.kind in "fiub"
    words = "Complex data not supported: " * ("complex" in str(rows.dtype))
    require(real, f"{words}X must hold real numbers, got {rows.dtype}")
    shape = tuple(rows.shape)
    words = f"X must have shape (n, d) with n, d >= 1, got {shape}"
    require(len(shape) in (2, 4), f"{words}. Reshape your data: X[None] is one row, X[:, None] a column")
    require(0 not in shape[1:], f"{words}: 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    require(0 not in shape, words)
    return rows if len(shape) == 2 else rows.reshape(len(rows), -1)


def as_matrix(X: object, first: int = 0, finite: bool = True) -> Tensor:
    """Return X as a finite float32 tensor of shape (n, d); ValueError says what is wrong with it.

    Takes numpy arrays and torch tensors of any real type and layout, read-only ones too, and never changes them.
    ``first`` is the number of the first row, for the message. Without ``finite`` the numbers are not looked at.
    """
    rows = as_rows(X)
    if not isinstance(rows, Tensor):
        with np.errstate(over="ignore"):  # what does not fit float32 is reported as infinite below
            rows = np.require(np.asarray(rows), np.float32, ("C", "W"))
        rows = torch.from_numpy(rows if min(rows.strides) > 0 else rows.copy())  # numpy lets one row run backwards
    rows = rows.to(torch.float32)
    if finite and not all(map(math.isfinite, torch.stack(rows.aminmax()).tolist())):
        row, column = (~torch.isfinite(rows)).nonzero()[0].tolist()
        value = str(rows[row, column].item()).replace("nan", "NaN")
        raise ValueError(f"X must be finite in float32, but X[{first + row}, {column}] is {value}")
    return rows


def unit_of(span: float) -> float:
    """Return the power of two that brings values as large as ``span`` near 1, and 1 for all of ordinary size.

    Float32 would lose the squares of very large or very small values. Scaling by a power of two changes no digit.
    """
    exponent = math.frexp(span)[1]
    return 1.0 if abs(exponent) <= _ORDINARY else math.ldexp(1.0, -min(max(exponent, -126), 126))


def rows_near_one(X: np.ndarray) -> np.ndarray:
    """Return rows X (n, d), each times the power of two that brings its largest entry near 1: directions stay, exactly.

    The squares of very large or very small entries would be lost.
    """
    return np.ldexp(X, -np.frexp(np.abs(X).max(1, initial=0, keepdims=True))[1])


def span(X: Tensor, center: bool) -> float:
    """Return the largest distance between two entries of a column of X (n, d), or without ``center`` from zero."""
    low, high = X.amin(0).double(), X.amax(0).double()
    return (high - low if center else torch.maximum(-low, high)).max().item()


def centred(X: Tensor, mean: Tensor, unit: float = 1.0, first: int = 0) -> Tensor:
    """Return (X - mean) · unit for rows X (n, d), refusing what lies so far off that float32 would lose it."""
    return within_reach(X - mean if unit == 1 else X * unit - mean * unit, unit, first)


def within_reach(X: Tensor, unit: float = 1.0, first: int = 0) -> Tensor:
    """Return rows X (n, d) that were multiplied by unit, if float32 holds their squares; ValueError names one else."""
    low, high = X.aminmax()
    if not max(-low.item(), high.item()) <= REACH:
        row = int((~(X.abs() <= REACH)).any(1).nonzero()[0])
        raise ValueError(f"X[{first + row}] lies too far from the rows of the fit: at most {REACH / unit:.1e} away")
    return X


def blocks(X: np.ndarray | Tensor, rows: int, finite: bool = True) -> Iterator[Tensor]:
    """Yield the rows of :func:`as_rows`, so many at a time, as :func:`as_matrix` has them.

    Of a mapped file only the block at hand is in memory: its pages are given back to the system afterwards.
    """
    for start in range(0, len(X), rows):
        yield as_matrix(X[start : start + rows], start, finite)
        forget(X)


def forget(X: object) -> None:
    """Give back the pages of a read-only mapped file that were read; they can be read again."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and getattr(X, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class ReadRows:
    """Rows (n, d) that are read a minibatch at a time, less their mean and times their unit; they know both."""

    device: torch.device
    shape: tuple[int, ...]
    mean: Tensor
    unit: float


class MappedRows(ReadRows):
    """Rows of a mapped file X (n, d), less their mean: ``rows[numbers]`` reads a minibatch, float32 of shape (b, d).

    X is looked through once, block by block, for its mean and for what is not finite; without ``center`` the mean is
    left where it is. Rows of extraordinary size are multiplied by ``unit``, see :func:`unit_of`.
    """

    def __init__(self, X: np.ndarray, center: bool, device: torch.device) -> None:
        self.X, self.device, self.shape, self.unit = X, device, X.shape, 1.0
        mean, self.unit = self._look(center)
        if self.unit != 1:
            mean = self._look(center)[0] / self.unit
        self.mean = mean.to(device)

    def _look(self, center: bool) -> tuple[Tensor, float]:
        """Return the mean of the rows, times the unit, and the unit that suits them."""
        step = max(1, _BLOCK // self.shape[1])
        weighted, spans = [], []
        for part in blocks(self.X, step):
            weighted.append((len(part), (part * self.unit if self.unit != 1 else part).mean(0)))
            spans.append(torch.stack([part.amin(0), part.amax(0)]).double())
        mean = weighted[0][1]  # as rows in memory have it, if one block holds all
        if len(weighted) > 1:
            mean = torch.stack([n * part.double() for n, part in weighted]).sum(0) / len(self)
        unit = unit_of(span(torch.cat(spans), center))
        return (mean if center else torch.zeros_like(mean)).to(torch.float32), unit

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, numbers: Tensor | slice) -> Tensor:
        chosen = numbers if isinstance(numbers, slice) else numbers.cpu().numpy()
        rows = torch.from_numpy(np.asarray(self.X[chosen]).astype(np.float32)).to(self.device)
        forget(self.X)
        return centred(rows, self.mean, self.unit)


def zeros_and_ones(matrix: Any) -> Any:
    """Return the matrix as bool, shape (n, m), an array or a CSR matrix that stores its ones alone."""
    matrix = matrix if sp.issparse(matrix) else np.asarray(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"a matrix of codes must have shape (n, m), got {matrix.shape}")
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    entries = matrix.data if sp.issparse(matrix) else matrix
    other = entries[(entries != 0) & (entries != 1)]
    if other.size:
        raise ValueError(f"a matrix of codes must hold nothing but 0 and 1, got {other[0]}")
    return matrix.astype(bool)
