"""Hashers on disk, and never half new: what is learned is saved, checked when read, and kept if a fit fails."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ..inputs import is_whole, require, torch_device
from ..storage import as_json, digest, load_arrays, save_arrays


def all_or_nothing(method: Callable) -> Callable:
    """Return a method that leaves its hasher as it was if it raises, or is interrupted."""

    @functools.wraps(method)
    def attempt(self: Any, *args: Any, **given: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **given)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return attempt


class Stored:
    """A hasher as a file: parameters, and the learned state that its class names in ``learns``."""

    learns: ClassVar[str] = "weights_ mean_ unit_ n_features_in_"  # names of the learned state
    weights_: Tensor
    mean_: Tensor
    unit_: float = 1.0
    n_features_in_: int

    if TYPE_CHECKING:  # what the hasher itself brings
        n_units: Any
        get_params: Callable[..., dict[str, Any]]
        encode: Any
        _check_params: Any
        _check_fitted: Any

    def save(self, path: str | os.PathLike) -> None:
        """Write parameters and learned state to a safetensors file, whole or not at all."""
        arrays, values = self._state()
        save_arrays(path, arrays, hasher=type(self).__name__, params=self.get_params(), state=values)

    def digest(self) -> str:
        """Return the SHA-256 of what decides the codes: the method, its parameters but the device, the learned state.

        ``codes.save(path, model=hasher.digest())`` ties codes to the hasher that made them.
        """
        arrays, values = self._state()
        params = {name: v for name, v in self.get_params().items() if name not in ("device", "verbose")}
        text = json.dumps([type(self).__name__, params, values], sort_keys=True, default=as_json)
        return digest({**arrays, "about": np.frombuffer(text.encode(), np.uint8)})

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the learned state: arrays, and the values that are none."""
        self._check_fitted()
        state = self._learned()
        arrays = {name: v.cpu().numpy() for name, v in state.items() if isinstance(v, Tensor)}
        return arrays, {name: v for name, v in state.items() if name not in arrays}

    @classmethod
    def load(cls, path: str | os.PathLike, device: str = "auto") -> Self:
        """Return the hasher of a file written by :meth:`save`, on ``device``; ValueError if it is not intact.

        Nothing in the file is executed, and nothing is taken but parameters and learned state that fit together.
        """
        arrays, about = load_arrays(path)
        name = about.get("hasher")
        methods = _descendants(Stored) - {Stored, *Stored.__subclasses__()}  # the base classes hash nothing
        kind = {c.__name__: c for c in methods}.get(name if isinstance(name, str) else "")
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"{path} holds {name or 'no hasher'}, not {cls.__name__}")
        target = torch_device(device)
        try:
            hasher = kind(**{**about["params"], "device": device})
            hasher._check_params()
            hasher._restore(about["state"], {name: torch.from_numpy(a) for name, a in arrays.items()}, target)
        except (TypeError, KeyError, IndexError, AttributeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold a fitted {name}: {error}") from None
        return hasher

    def _restore(self, values: dict[str, Any], arrays: dict[str, Tensor], device: torch.device) -> None:
        """Take over the learned state of a file, after checks of its names, types, numbers and shapes."""
        known = self._learns()
        strange = sorted({*values, *arrays} - known)
        require(not strange, f"it has {', '.join(strange)}, which this method does not learn")
        for name, value in values.items():
            numbers = value if isinstance(value, list) else [value]
            require(all(type(v) in (int, float) and math.isfinite(v) for v in numbers), f"{name} is not finite numbers")
        for name, a in arrays.items():
            require(a.dtype == torch.float32 and bool(torch.isfinite(a).all()), f"{name} is not finite float32")
        vars(self).update(values, **{name: a.to(device) for name, a in arrays.items()})
        self._check_fitted()
        self._check_restored()
        codes = self.encode(self._any_row())  # works if the parts fit together
        require(codes.n_units == self.n_units, f"its codes have {codes.n_units} units, its layer {self.n_units}")

    def _check_restored(self) -> None:
        """Raise ValueError unless weights are a matrix, and the mean has as many entries as there are features."""
        d = self.n_features_in_
        shape = tuple(self.mean_.shape)
        require(self.weights_.ndim == 2, f"weights_ has shape {tuple(self.weights_.shape)}, not that of a matrix")
        require(is_whole(d) and shape == (d,), f"mean_ has shape {shape}, not ({d},)")

    def _any_row(self) -> Tensor:
        """Return a row that can be encoded, shape (1, d)."""
        return self.mean_[None]

    def _learns(self) -> set[str]:
        """Return the names that learned state may have."""
        return set(self.learns.split())

    def _learned(self) -> dict[str, Any]:
        return {name: v for name, v in vars(self).items() if name.endswith("_") and not name.startswith("_")}


def _descendants(cls: type) -> set[type]:
    return {cls}.union(*map(_descendants, cls.__subclasses__()))
