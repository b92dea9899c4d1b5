"""Hash codes as stored: k active units of m (sparse), or packed bits (dense)."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from .counting.winners import FEW, winners
from .inputs import count, zeros_and_ones
from .storage import load_arrays, save_arrays

if TYPE_CHECKING:
    import faiss

_MOST = (1 << 31) - 1  # units of a code, so that their numbers fit 32 bits
_BLOCK = 1 << 24  # distances computed at a time, so that temporaries stay near 100 MB


class Codes(ABC):
    """A column of n hash codes: ``len``, slicing, Hamming distance, storage."""

    array: np.ndarray  #: (n, ·), what is stored
    n_units: int  #: bits of a code (m)
    max_distance: int  #: the largest Hamming distance two codes can have
    bits_per_item: int  #: storage of one code in bits

    @abstractmethod
    def __init__(self, array: np.ndarray, n_units: int) -> None: ...

    def _like(self, array: np.ndarray) -> Self:
        """Return the same kind of codes around other rows."""
        return type(self)(array, self.n_units)

    @abstractmethod
    def to_matrix(self) -> np.ndarray | sp.csr_array:
        """Return the codes as a 0/1 matrix, shape (n, m); CSR for sparse codes."""

    @classmethod
    def from_matrix(cls, matrix: np.ndarray | sp.sparray | sp.spmatrix) -> Self:
        """Return the codes of a 0/1 matrix, shape (n, m), the inverse of :meth:`to_matrix`.

        A sparse matrix gives :class:`SparseCodes` and an array :class:`DenseCodes`; called on one of these classes,
        either layout gives that class.
        """
        return (SparseCodes if sp.issparse(matrix) else DenseCodes).from_matrix(matrix)  # type: ignore[return-value]

    @abstractmethod
    def packed(self) -> np.ndarray:
        """Return the bits as ``numpy.packbits`` lays them, shape (n, ceil(m / 8)), uint8; bits past m are zero."""

    def to_faiss(self) -> faiss.IndexBinaryFlat:
        """Return a faiss index of the n codes, m rounded up to a multiple of 8 bits; its queries are :meth:`packed`."""
        try:
            import faiss
        except ImportError:
            raise ImportError('to_faiss needs faiss: pip install "biohash-mini[faiss]"') from None
        packed = np.ascontiguousarray(self.packed())
        index = faiss.IndexBinaryFlat(8 * packed.shape[1])
        index.add(packed)
        return index

    @abstractmethod
    def _distance_block(self, other: Self) -> np.ndarray:
        """Return the distances of a few codes to all of the others."""

    def hamming(self, other: Codes) -> np.ndarray:
        r"""Return the Hamming distance of each code to each other code, shape (q, n), in the smallest integer type."""
        self.check_comparable(other)
        out = np.empty((len(self), len(other)), dtype=np.min_scalar_type(self.max_distance))
        step = max(1, _BLOCK // max(1, len(other)))
        for i in range(0, len(self), step):
            out[i : i + step] = self[i : i + step]._distance_block(other)
        return out

    def check_comparable(self, other: Codes) -> None:
        """Raise ValueError unless both are codes of one kind and size."""
        if type(self) is not type(other) or self._shape() != other._shape():
            raise ValueError(f"cannot compare {self!r} with {other!r}")

    def _shape(self) -> tuple[int, int]:
        return self.n_units, self.array.shape[1]

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: slice | int | np.ndarray) -> Self:
        """Return the codes of the chosen rows; a single number gives a column of one."""
        if isinstance(rows, tuple):
            raise IndexError(f"rows of codes are chosen, and no units of them, got {rows}")
        return self._like(self.array[[rows] if isinstance(rows, int | np.integer) else rows])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Codes):
            return NotImplemented
        return type(self) is type(other) and self._shape() == other._shape() and np.array_equal(self.array, other.array)

    __hash__ = None

    def save(self, path: str | os.PathLike, model: str = "") -> None:
        """Write the codes to a safetensors file, whole or not at all.

        ``model`` is the digest of the hasher that made them, ``hasher.digest()``, if it is to be asked for on reading.
        """
        save_arrays(path, {"array": self.array}, codes=type(self).__name__, n_units=self.n_units, model=model)

    @staticmethod
    def load(path: str | os.PathLike, model: str = "") -> Codes:
        """Return the codes of a file written by :meth:`save`; ValueError if it is not intact.

        With a ``model``, the digest of a hasher, also if the file names another one.
        """
        arrays, about = load_arrays(path)
        name, n_units = about.get("codes"), about.get("n_units")
        if name not in ("SparseCodes", "DenseCodes") or set(arrays) != {"array"} or type(n_units) is not int:
            raise ValueError(f"{path} does not hold codes")
        if model and about.get("model") not in (model, "", None):
            raise ValueError(f"{path} holds codes of another model: hash the vectors anew")
        try:
            return (SparseCodes if name == "SparseCodes" else DenseCodes)(arrays["array"], n_units)
        except ValueError as error:
            raise ValueError(f"{path} does not hold codes: {error}") from None


class SparseCodes(Codes):
    r"""Codes with exactly k of m units on, stored as k sorted unit numbers in the smallest unsigned type.

    Two of them differ in an even number of bits: :math:`d_H = 2\,(k - |A\cap B|)`. One takes
    :math:`k\,\lceil\log_2 m\rceil` bits (sec. 2.3).

    Parameters
    ----------
    active : array of int, shape (n, k)
        The units switched on in each code, distinct, in any order.
    n_units : int
        m, at least k.
    """

    def __init__(self, active: np.ndarray, n_units: int) -> None:
        active, n_units = np.asarray(active), count("n_units", n_units, 1, _MOST)
        if active.ndim != 2 or active.shape[1] < 1 or active.dtype.kind not in "ui":
            raise ValueError(f"active units must be integers of shape (n, k >= 1), got {active.dtype} {active.shape}")
        active = np.sort(active, axis=1)
        if active.size and (active[:, 0].min() < 0 or active[:, -1].max() >= n_units):
            raise ValueError(f"active units must lie in [0, {n_units})")
        if (active[:, 1:] == active[:, :-1]).any():
            raise ValueError("active units of a code must be distinct")
        self.n_units = n_units
        self.array = active.astype(np.min_scalar_type(self.n_units - 1), copy=False)
        self.max_distance = 2 * min(self.hash_length, self.n_units - self.hash_length)
        self.bits_per_item = self.hash_length * (self.n_units - 1).bit_length()

    @property
    def active(self) -> np.ndarray:
        """The units switched on, shape (n, k), ascending."""
        return self.array

    @property
    def hash_length(self) -> int:
        """Units on in each code (k)."""
        return self.array.shape[1]

    @classmethod
    def top_k(cls, S: Tensor, k: int) -> SparseCodes:
        """Return the codes that switch on the k largest entries of each row of S, shape (n, m).

        Equal entries are taken in the order of their units, so the code of a row of zeros is units 0 … k-1.
        """
        if count("hash_length", k, least=0) not in range(1, S.shape[-1] + 1):
            raise ValueError(f"hash_length must be between 1 and the number of units {S.shape[-1]}, got {k}")
        _check_activations(S)
        if S.device.type == "cpu" and k <= FEW:
            return cls(winners(S.detach().numpy(), k), S.shape[1])
        units, tied = largest(S, k)
        if tied.any():
            units[tied] = S[tied].sort(dim=1, descending=True, stable=True).indices[:, :k]
        return cls(units.cpu().numpy(), S.shape[1])

    def to_matrix(self) -> sp.csr_array:
        """Return the codes as a 0/1 CSR matrix, shape (n, m)."""
        n, k = self.array.shape
        ones = np.ones(n * k, dtype=np.uint8)
        return sp.csr_array((ones, self.array.ravel().astype(np.int32), np.arange(0, n * k + 1, k)), (n, self.n_units))

    @classmethod
    def from_matrix(cls, matrix: np.ndarray | sp.sparray | sp.spmatrix) -> SparseCodes:
        """Return the codes of a 0/1 matrix, shape (n >= 1, m), whose rows all have the same number of ones, k >= 1."""
        matrix = sp.csr_array(zeros_and_ones(matrix))
        k = np.unique(np.diff(matrix.indptr))
        if len(k) != 1 or k[0] < 1:
            raise ValueError(f"every row needs the same number of ones, at least 1, got {k.tolist()}")
        return cls(matrix.indices.reshape(-1, k[0]), matrix.shape[1])

    def packed(self) -> np.ndarray:
        """Return the bits as ``numpy.packbits`` lays them, shape (n, ceil(m / 8)), uint8; bits past m are zero."""
        out, rows = np.zeros((len(self), -(-self.n_units // 8)), dtype=np.uint8), np.arange(len(self))
        for units in self.array.T:  # one unit of every code at a time, so temporaries have n entries
            out[rows, units // 8] |= np.uint8(0x80) >> (units % 8).astype(np.uint8)
        return out

    def _distance_block(self, other: SparseCodes) -> np.ndarray:
        shared = self.to_matrix().astype(np.int32) @ other.to_matrix().astype(np.int32).T
        return 2 * (self.hash_length - shared.toarray())

    def __repr__(self) -> str:
        return f"SparseCodes({len(self)} codes, {self.hash_length} of {self.n_units} units on)"


class DenseCodes(Codes):
    """Codes of m bits, eight to a byte; a code of m bits takes m bits.

    Parameters
    ----------
    packed : array of uint8, shape (n, ceil(m / 8))
        Bits as ``numpy.packbits`` lays them; bits past m are zero.
    n_units : int
        m, at least 1.
    """

    def __init__(self, packed: np.ndarray, n_units: int) -> None:
        packed, n_units = np.asarray(packed), count("n_units", n_units, 1, _MOST)
        if packed.ndim != 2 or packed.dtype != np.uint8 or packed.shape[1] != -(-n_units // 8):
            raise ValueError(f"{n_units} packed bits need uint8 of shape (n, {-(-n_units // 8)}), got {packed.shape}")
        if n_units % 8 and (packed[:, -1] & (0xFF >> n_units % 8)).any():
            raise ValueError(f"bits past {n_units} must be zero")
        self.array, self.n_units = packed, n_units
        self.max_distance = self.bits_per_item = self.n_units

    @classmethod
    def signs(cls, S: Tensor) -> DenseCodes:
        """Return the codes whose bits are the positive entries of S, shape (n, m); zero counts as not positive."""
        _check_activations(S)
        return cls(np.packbits((S > 0).cpu().numpy(), axis=1), S.shape[1])

    def to_matrix(self) -> np.ndarray:
        """Return the codes as a 0/1 matrix, shape (n, m), uint8."""
        return np.unpackbits(self.array, axis=1, count=self.n_units)

    @classmethod
    def from_matrix(cls, matrix: np.ndarray | sp.sparray | sp.spmatrix) -> DenseCodes:
        """Return the codes of a 0/1 matrix, shape (n, m >= 1)."""
        bits = zeros_and_ones(matrix)
        bits = bits.toarray() if sp.issparse(bits) else bits
        return cls(np.packbits(bits, axis=1), bits.shape[1])

    def packed(self) -> np.ndarray:
        """Return the bits as they are stored, shape (n, ceil(m / 8)), uint8; bits past m are zero."""
        return self.array

    def words(self) -> np.ndarray:
        """Return the bits in 64-bit words, shape (n, ceil(m / 64)), padded with zeros."""
        pad = -self.array.shape[1] % 8
        return np.pad(self.array, ((0, 0), (0, pad))).view(np.uint64)

    def _distance_block(self, other: DenseCodes) -> np.ndarray:
        A, B = self.words(), other.words()
        out = np.zeros((len(A), len(B)), dtype=np.int32)
        for a, b in zip(A.T, B.T, strict=True):
            out += np.bitwise_count(a[:, None] ^ b)
        return out

    def __repr__(self) -> str:
        return f"DenseCodes({len(self)} codes of {self.n_units} bits)"


def _check_activations(S: Tensor) -> None:
    """Raise ValueError unless activations have shape (n, m) and are comparable: NaN is neither large nor small."""
    if S.ndim != 2 or (S.numel() and S.amax().isnan()):
        raise ValueError(f"activations must have shape (n, m) and no NaN, got shape {tuple(S.shape)}")


def largest(S: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of each row of S (n, m), as columns (n, k), and whether others equal the last (n,).

    Nothing waits for the device.
    """
    values, units = S.topk(k, dim=1)
    return units, (S >= values[:, -1:]).sum(1) > k


def concatenate(parts: list[Codes]) -> Codes:
    """Return one column with the codes of all parts, in their order."""
    for part in parts[1:]:
        parts[0].check_comparable(part)
    return parts[0]._like(np.concatenate([part.array for part in parts]))
