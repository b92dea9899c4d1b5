"""Choices that the paper leaves open, each as a row on MNIST, so that its effect can be measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..hashers import Hasher
from ..plasticity import row_norms
from .experiment import Row
from .settings import MAX_STEP, PRINTED, settings


def _unit(X: np.ndarray, database: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def _less_one_number(X: np.ndarray, database: np.ndarray) -> np.ndarray:
    return X - database.mean()


def _to_255(X: np.ndarray, database: np.ndarray) -> np.ndarray:
    return X * np.float32(255)


def rank_by_direction(hasher: Hasher) -> None:
    """Scale the units of a fitted hasher to norm one, so that codes rank them by direction alone."""
    hasher.weights_ /= row_norms(hasher.weights_)[:, None]


def _gaussian_synapses(hasher: Hasher) -> None:
    rng = torch.Generator().manual_seed(2**32 + hasher.seed)  # another stream than the one that chose the inputs
    hasher.weights_ *= torch.randn(hasher.weights_.shape, generator=rng)


def _choice(method: str, what: str, params: dict[str, Any] | None = None, **done: Any) -> Row:
    """Return the row of one departure from the max step: parameters, and what is done to inputs or fitted hasher."""
    step = MAX_STEP if "reduction" in settings(method, "mnist") else {}
    return Row(f"{method}: {what}", method, {**settings(method, "mnist"), **step, **(params or {})}, once=(8,), **done)


CHOICES: dict[str, Row] = {
    row.label: row
    for row in (
        _choice("BioHash", "max step"),
        _choice("BioHash", "30 epochs, annealed to rate zero", {"norm_tol": 0.0, "max_epochs": 30}),
        _choice("BioHash", "stop at mean norm 1.01", {"norm_tol": 1.01}),
        _choice("BioHash", "learning rate 0.005", {"learning_rate": 5e-3}),
        _choice("BioHash", "pixels from 0 to 255", inputs=_to_255),
        _choice("BioHash", "not centred", {"center": False}),
        _choice("BioHash", "centred by one number", {"center": False}, inputs=_less_one_number),
        _choice("BioHash", "mean step", {"reduction": "mean"}),
        _choice("BioHash", "implicit step", PRINTED),
        _choice("BioHash", "implicit step, one number", {**PRINTED, "center": False}, inputs=_less_one_number),
        _choice("BioHash", "mean step, one number", {"center": False, "reduction": "mean"}, inputs=_less_one_number),
        _choice("BioHash", "unit vectors, then centred", inputs=_unit),
        _choice("BioHash", "delta 0.1", {"delta": 0.1}),
        _choice("BioHash", "delta 0.4", {"delta": 0.4}),
        _choice("BioHash", "p = 3", {"p": 3.0}),
        _choice("BioHash", "minibatches of 10", {"batch_size": 10}),
        _choice("BioHash", "minibatches of 1000", {"batch_size": 1000}),
        _choice("BioHash", "codes ranked by direction", amend=rank_by_direction),
        _choice("BioHash", "synapses start with norm 1", {"init_std": 784**-0.5}),
        _choice("FlyHash", "as in the tables"),
        _choice("FlyHash", "centred", {"center": True}),
        _choice("FlyHash", "Gaussian synapses", amend=_gaussian_synapses),
        _choice("FlyHash", "m = d", {"expansion": 1}),
        _choice("FlyHash", "unit vectors", inputs=_unit),
        _choice("NaiveBioHash", "max step"),
        _choice("NaiveBioHash", "not centred", {"center": False}),
        _choice("NaiveBioHash", "30 epochs, annealed to rate zero", {"norm_tol": 0.0, "max_epochs": 30}),
        _choice("SH", "as in the tables"),
        _choice("SH", "minimum to maximum", {"percentile": 0.0}),
        _choice("LSH", "as in the tables"),
        _choice("LSH", "not centred", {"center": False}),
        _choice("PCAHash", "as in the tables"),
        _choice("PCAHash", "not centred", {"center": False}),
        _choice("ITQ", "as in the tables"),
    )
}

#: The rows that together come nearest to the paper's on MNIST; they are measured at every hash length.
NEAREST = tuple(
    f"BioHash: {what}"
    for what in ("centred by one number", "mean step", "mean step, one number", "implicit step, one number")
)
