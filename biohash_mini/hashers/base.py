"""What every hashing method shares: input checks, centring, chunked encoding, storage, the scikit-learn contract."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor

from ..codes import Codes, DenseCodes, SparseCodes, concatenate
from ..storage import load_arrays, save_arrays

_BLOCK = 1 << 22  # activations held at a time while encoding: 16 MB of float32, which the allocator reuses


def as_matrix(X: object) -> Tensor:
    """Return X as a finite float32 tensor of shape (n, d); ValueError says what is wrong with it.

    Takes numpy arrays and torch tensors of any real type and layout, read-only ones too, and never changes them.
    """
    if sp.issparse(X):
        raise ValueError("X is a scipy sparse matrix; pass X.toarray()")
    if not isinstance(X, Tensor):
        X = np.asarray(X)
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, got {X.dtype}")
        with np.errstate(over="ignore"):  # what does not fit float32 is reported as infinite below
            X = torch.from_numpy(np.require(X, np.float32, ("C", "W")))
    elif X.is_complex():
        raise ValueError(f"X must hold real numbers, got {X.dtype}")
    X = X.detach().to(torch.float32)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have shape (n, d) with n, d >= 1, got {tuple(X.shape)}")
    finite = torch.isfinite(X)
    if not finite.all():
        row, column = (~finite).nonzero()[0].tolist()
        raise ValueError(f"X must be finite in float32, but X[{row}, {column}] is {X[row, column].item()}")
    return X


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


def require(ok: bool, message: str) -> None:
    """Raise ValueError with the message unless ok."""
    if not ok:
        raise ValueError(message)


class Hasher(TransformerMixin, BaseEstimator):
    """A method that turns vectors into hash codes.

    A subclass stores its parameters in ``__init__`` (``hash_length``, ``seed``, ``device``, ``center`` among them),
    learns in ``_fit`` and names its kind of code in ``sparse_codes``. Learned state ends in an underscore; whatever
    does is saved and loaded. Most methods only need ``weights_``, shape (m, d).
    """

    sparse_codes: ClassVar[bool] = False
    weights_: Tensor

    def fit(self, X: object, y: object = None) -> Self:
        """Learn from the rows of X, shape (n, d), and return self; ``y`` is ignored."""
        self._check_params()
        X = as_matrix(X)
        self._check_shape(*X.shape)
        device = torch_device(self.device)
        X = X.to(device)
        mean = X.mean(0) if self.center else torch.zeros(X.shape[1], device=device)
        self._fit(X - mean if self.center else X, torch.Generator().manual_seed(self.seed))
        self.mean_, self.n_features_in_ = mean, X.shape[1]
        return self

    def encode(self, X: object) -> Codes:
        """Return the codes of the rows of X, shape (n, d).

        Every row has one: a row of zeros is a point like any other, and where activations are equal the unit with
        the lower number is on (sparse codes) or the bit is off (an activation of exactly zero, dense codes).
        """
        return concatenate([self._encode(part) for part in self._parts(X)])

    def _parts(self, X: object) -> Iterator[Tensor]:
        """Yield the rows of X, checked and centred, as many at a time as their activations leave memory for."""
        self._check_fitted()
        X = as_matrix(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} was fitted with {self.n_features_in_}"
            )
        rows = max(1, _BLOCK // max(self.n_features_in_, len(self.weights_)))
        for part in X.split(rows):
            yield part.to(self.mean_.device) - self.mean_

    def transform(self, X: object) -> np.ndarray | sp.csr_array:
        """Return the codes as a 0/1 matrix, shape (n, m): CSR for sparse codes, uint8 for dense ones."""
        return self.encode(X).to_matrix()

    def save(self, path: str | os.PathLike) -> None:
        """Write parameters and learned state to a safetensors file, whole or not at all."""
        self._check_fitted()
        state = {name: v for name, v in vars(self).items() if name.endswith("_") and not name.startswith("_")}
        arrays = {name: v.cpu().numpy() for name, v in state.items() if isinstance(v, Tensor)}
        values = {name: v for name, v in state.items() if name not in arrays}
        save_arrays(path, arrays, hasher=type(self).__name__, params=self.get_params(), state=values)

    @classmethod
    def load(cls, path: str | os.PathLike, device: str = "auto") -> Self:
        """Return the hasher of a file written by :meth:`save`, on ``device``; ValueError if it is not intact."""
        arrays, about = load_arrays(path)
        kind = {c.__name__: c for c in _descendants(Hasher)}.get(about.get("hasher"))
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"{path} holds {about.get('hasher') or 'no hasher'}, not {cls.__name__}")
        hasher = kind(**{**about["params"], "device": device})
        target = torch_device(device)
        vars(hasher).update(about["state"], **{name: torch.from_numpy(a).to(target) for name, a in arrays.items()})
        return hasher

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        """Set the learned state from centred X, shape (n, d)."""
        raise NotImplementedError

    def _activations(self, X: Tensor) -> Tensor:
        """Return what is thresholded or ranked to give codes, shape (n, m)."""
        return X @ self.weights_.T

    def _encode(self, X: Tensor) -> Codes:
        S = self._activations(X)
        return SparseCodes.top_k(S, self.hash_length) if self.sparse_codes else DenseCodes.signs(S)

    def _check_params(self) -> None:
        """Raise ValueError for parameters no data could suit."""
        require(
            isinstance(self.hash_length, int | np.integer) and self.hash_length >= 1,
            f"hash_length must be an integer of at least 1, got {self.hash_length!r}",
        )

    def _check_shape(self, n: int, d: int) -> None:
        """Raise ValueError for data of a shape that the parameters cannot serve."""

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")


def _descendants(cls: type) -> set[type]:
    return {cls}.union(*(_descendants(c) for c in cls.__subclasses__()))
