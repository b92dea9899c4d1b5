"""What every hashing method shares: input checks, centring, chunked encoding, storage, the scikit-learn contract."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED
from torch import Tensor

from ..codes import Codes, DenseCodes, SparseCodes, concatenate
from ..counting.centring import subtract
from ..inputs import (
    REACH,
    MappedRows,
    ReadRows,
    as_matrix,
    as_rows,
    blocks,
    centred,
    is_whole,
    require,
    span,
    torch_device,
    unit_of,
)
from ..plasticity import overlaps
from .ranges import LARGEST, RANGES
from .stored import Stored, all_or_nothing

_BLOCK = 1 << 21  # activations held at a time while encoding: 8 MB of float32, which the allocator reuses
_FEWEST = 16  # rows and units of a product: of fewer, libraries add in another order, and near ties fall otherwise
_SAMPLE = 100  # rows of which a fit looks at the codes

#: Called after each pass with its number from 1 and the mean norm of the units or the loss; True ends the training.
Callback = Callable[[int, float], bool | None]


def products(X: Tensor, W: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-inner products of rows and units, shape (..., m), the same wherever a row stands in a batch."""
    many = torch.cat([W, *[W[:1]] * (_FEWEST - len(W))]) if len(W) < _FEWEST else W
    return overlaps(X, many, p)[..., : len(W)]


class Hasher(Stored, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A method that turns vectors into hash codes.

    A subclass stores its parameters in ``__init__``, learns in ``_fit`` and names its kind of code in ``sparse_codes``.
    Learned state ends in an underscore and is named in ``learns``; it is saved and loaded. Most methods only need
    ``weights_``, shape (m, d). One whose layer reads features of the input, rather than the input, overrides
    ``fit_features`` and ``features``.

    Parameters
    ----------
    hash_length : int >= 1
        Units on in a code (k), or its bits.
    center : bool
        Whether the mean of the training data is subtracted first.
    seed : int
        Seed of all that is random in the method: its initial weights, the order of the data.
    device : str
        "auto", "cpu", "cuda" or "mps".
    verbose : bool
        Whether a method that learns in passes shows a progress bar.

    Attributes
    ----------
    mean_ : Tensor of shape (d,)
        What is subtracted from every input.
    unit_ : float
        What every input is then multiplied by: 1, and a power of two for data so large or small that float32 would lose
        their squares.
    """

    sparse_codes: ClassVar[bool] = False
    free_length: ClassVar[bool] = False  # whether a fitted layer has codes of any length
    one_layer: ClassVar[bool] = False  # whether all lengths have the same layer
    takes_images: ClassVar[bool] = False
    reads_minibatches: ClassVar[bool] = False  # whether training needs no more than a minibatch in memory
    layer_params: ClassVar[frozenset[str]] = frozenset()  # parameters that do not touch the features

    __metadata_request__fit: ClassVar[dict] = {"callback": UNUSED}  # of fit itself, not for scikit-learn to route

    def __init__(self, hash_length: int = 16, *, center: bool = True, seed: int = 0, device: str = "auto") -> None:
        self.hash_length = hash_length
        self.center = center
        self.seed = seed
        self.device = device

    @all_or_nothing
    def fit(self, X: object, y: object = None, *, callback: Callback | None = None) -> Self:
        """Learn from the rows of X, shape (n, d), and return self; ``y`` is ignored.

        ``callback(number, value)`` is called after each pass of a method that learns in passes, with the mean norm of
        its units or its loss; training ends if it returns True.

        Notes
        -----
        X is held in memory as float32, 4 n d bytes, and once more where it is centred. Where ``reads_minibatches``, a
        mapped file (``np.load(path, mmap_mode="r")``) stays on disk, and memory holds the synapses and a minibatch.
        What was learned before is forgotten; if this fails or is interrupted, it is all still there.
        """
        self._check_params()
        for name in self._learned():
            delattr(self, name)
        self._callback = callback
        try:
            self.fit_features(X).fit_layer(self.features(X))
            self.n_features_in_ = as_rows(X).shape[1]
            self._look_at_codes(as_rows(X)[:_SAMPLE])
            return self
        finally:
            del self._callback

    def _look_at_codes(self, rows: np.ndarray | Tensor) -> None:
        """Warn if rows of the training data, which are not all the same, all have one code without being asked to."""
        all_on = self.sparse_codes and self.hash_length >= self.n_units
        if not all_on and len(rows) >= _FEWEST and bool((rows != rows[0]).any()):
            codes = self.encode(rows).array
            if (codes == codes[0]).all():
                words = f"{type(self).__name__} gives the first {len(rows)} rows of X, which differ, one code"
                warnings.warn(f"{words}: what tells them apart is lost on it", stacklevel=2)

    def fit_features(self, X: object) -> Self:
        """Learn what comes before the layer, for most methods nothing, and return self."""
        return self

    def features(self, X: object) -> Any:
        """Return what the layer reads of the rows of X, n rows; for most methods the rows themselves."""
        return as_rows(X)

    @all_or_nothing
    def fit_layer(self, features: Any) -> Self:
        """Learn the layer from what :meth:`features` returned, and return self."""
        self._check_params()
        self._check_shape(*features.shape)
        self._check_size(features.shape[1])
        device = torch_device(self.device)
        if self.reads_minibatches and isinstance(features, np.memmap):
            features = MappedRows(features, self.center, device)
        if isinstance(features, ReadRows):
            rows: Any = features
            mean, unit = rows.mean, rows.unit
        else:
            rows = as_matrix(features).to(device)
            unit = unit_of(span(rows, self.center))
            rows = rows if unit == 1 else rows * unit
            mean = rows.mean(0) if self.center else torch.zeros(rows.shape[1], device=device)
            rows, mean = rows - mean if self.center else rows, mean / unit
        require(bool(torch.isfinite(mean).all()), "X is too large: the mean of its rows is not finite in float32")
        self._fit(rows, self._generator())
        self.mean_, self.unit_, self.n_features_in_ = mean, unit, rows.shape[1]
        return self

    def share_features(self, other: Self) -> Self:
        """Take over what another hasher, of which only the features are learned, knows, and return self."""
        self.__dict__.update(other._learned())
        return self

    def training_facts(self) -> dict[str, Any]:
        """Return what training came to: its passes and the mean norm of the units, for methods that have them."""
        norms = getattr(self, "mean_norms_", None)
        return {"epochs": len(norms), "mean_norm": round(norms[-1], 4)} if norms else {}

    @property
    def n_units(self) -> int:
        """Units of a code (m), those of ``weights_`` once fitted, before that those that the parameters ask for."""
        return len(self.weights_) if self._is_fitted() else self._planned_units()

    def encode(self, X: object, hash_length: int | None = None) -> Codes:
        """Return the codes of the rows of X, shape (n, d), with ``hash_length`` units on where that is free.

        Every row has one: a row of zeros is a point like any other, and where activations are equal the unit with
        the lower number is on (sparse codes) or the bit is off (an activation of exactly zero, dense codes). A mapped
        file is read a block at a time. The code of a row alone is its code in a batch, on one machine with the same
        number of threads: products are never taken of fewer than 16 rows or units, for which libraries add in another
        order.
        """
        k = self.hash_length if hash_length is None else hash_length
        return self.encode_lengths(X, [k])[k]

    def encode_lengths(self, X: object, hash_lengths: Iterable[int]) -> dict[int, Codes]:
        """Return the codes of the rows of X, shape (n, d), at each of several hash lengths, from one pass."""
        return self.encode_features(self.features(self._known(X)), hash_lengths)

    def encode_features(self, features: Any, hash_lengths: Iterable[int]) -> dict[int, Codes]:
        """Return the codes of what :meth:`features` returned, at each of several hash lengths."""
        lengths = self._allowed(hash_lengths)
        step = max(_FEWEST, _BLOCK // max(features.shape[1], self.n_units))
        room = np.empty((min(step, len(features)), features.shape[1]), np.float32)
        parts = [
            [codes[: len(part)] for codes in self._encode(self._read(part, i * step, room), lengths)]
            for i, part in enumerate(blocks(features, step, finite=False))
        ]
        return {k: concatenate(list(codes)) for k, codes in zip(lengths, zip(*parts, strict=True), strict=True)}

    def transform(self, X: object) -> np.ndarray | sp.csr_array:
        """Return the codes as a 0/1 matrix, shape (n, m): CSR for sparse codes, uint8 for dense ones."""
        return self.encode(X).to_matrix()

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        """Set the learned state from centred X, shape (n, d)."""
        raise NotImplementedError

    def _activations(self, X: Tensor) -> Tensor:
        """Return what is thresholded or ranked to give codes, shape (n, m)."""
        return products(X, self.weights_)

    def _encode(self, X: Tensor, hash_lengths: Sequence[int]) -> list[Codes]:
        """Return the codes of centred rows for each of the lengths."""
        S = self._activations(X)
        if self.sparse_codes:
            return [SparseCodes.top_k(S, k) for k in hash_lengths]
        return [DenseCodes.signs(S) for _ in hash_lengths]

    def _read(self, rows: Tensor, first: int, room: np.ndarray) -> Tensor:
        """Return rows as the layer reads them, centred, in the room if it can be, with zeros behind them if few."""
        rows, minus = rows.to(self.mean_.device), room[: len(rows)]
        plain = rows.device.type == "cpu" and self.unit_ == 1
        if plain and subtract(rows.numpy(), self.mean_.numpy(), REACH, minus):
            rows = torch.from_numpy(minus)
        else:  # slower, and says what is wrong with the rows
            rows = centred(as_matrix(rows, first), self.mean_, self.unit_, first)
        return torch.cat([rows, rows.new_zeros(few, rows.shape[1])]) if (few := _FEWEST - len(rows)) > 0 else rows

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(int(self.seed))

    def _told_to_stop(self, number: int, value: float) -> bool:
        """Tell the callback of ``fit``, if there is one, where training stands; return whether it ends here."""
        callback = getattr(self, "_callback", None)
        return callback is not None and bool(callback(number, value))

    def _planned_units(self) -> int:
        """Return m before fitting: k / a of a method that has an ``activity``, else k."""
        return round(min(self.hash_length / getattr(self, "activity", 1), 2.0**62))

    def _known(self, X: object) -> np.ndarray | Tensor:
        """Return X as rows of the size that the hasher was fitted with."""
        self._check_fitted()
        rows, d = as_rows(X), self.n_features_in_
        words = f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {d} features as input"
        require(rows.shape[1] == d, words)
        return rows

    def _allowed(self, hash_lengths: Iterable[int]) -> list[int]:
        """Return the lengths if this hasher, which must be fitted, has codes of them."""
        self._check_fitted()
        lengths, k = list(hash_lengths), self.hash_length
        whole = all(is_whole(length) and length >= 1 for length in lengths)
        require(whole, f"hash_length must be an integer of at least 1, got {lengths}")
        possible = self.free_length or set(lengths) == {k}
        require(possible, f"{type(self).__name__} has codes of hash_length {k} only, got {lengths}")
        return lengths

    def _check_params(self) -> None:
        """Raise ValueError for parameters no data could suit."""
        defaults = inspect.signature(type(self)).parameters
        for name, value in self.get_params().items():
            if name in RANGES and not (value is None and defaults[name].default is None):
                RANGES[name].check(name, value)

    def _check_size(self, d: int) -> None:
        """Raise ValueError for more weights than any machine could hold."""
        m = self._units_for(d)
        words = f"{m:.3g} units with {d} inputs each, but weights must be at least 1 and at most {LARGEST}"
        require(1 <= m * d <= LARGEST, f"hash_length {self.hash_length} asks for {words}")

    def _units_for(self, d: int) -> int:
        """Return m for data of d features."""
        return self._planned_units()

    def _check_shape(self, n: int, d: int) -> None:
        """Raise ValueError for data of a shape that the parameters cannot serve."""

    def _is_fitted(self) -> bool:
        return hasattr(self, "n_features_in_")

    __sklearn_is_fitted__ = _is_fitted

    def _check_fitted(self) -> None:
        if not self._is_fitted():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are bytes, whatever the input was
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_units
