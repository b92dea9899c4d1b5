"""What BioHash may read in place of the rows: transformers that learn from the database, without labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from torch.nn import functional as F

from ..hashers import BioHash
from ..wiring import Wiring, gradients

Shape = tuple[int, int, int]  # channels, height, width


def edges(X: np.ndarray, shape: Shape) -> np.ndarray:
    """Return :func:`~biohash_mini.wiring.gradients` of images that come as rows."""
    return gradients(X.reshape(-1, *shape))


def even_contrast(X: np.ndarray, shape: Shape, side: int = 7, least: float = 0.1) -> np.ndarray:
    """Return images, as rows, whose pixels are measured from the mean around them, by the spread around them."""
    parts = []
    for images in torch.from_numpy(X).reshape(-1, *shape).split(2048):
        around = partial(F.avg_pool2d, kernel_size=side, stride=1, padding=side // 2, count_include_pad=False)
        away = images - around(images).mean(1, keepdim=True)
        spread = around(away.square()).mean(1, keepdim=True).sqrt()
        parts.append((away / spread.clamp_min(least)).flatten(1))
    return torch.cat(parts).numpy()


class FirstLayer(TransformerMixin, BaseEstimator):
    """The overlaps of a row with the units of a BioHash layer, less their ``1 - activity`` quantile, never negative."""

    def __init__(self, n_units: int = 1000, *, activity: float = 0.1, seed: int = 0) -> None:
        self.n_units = n_units
        self.activity = activity
        self.seed = seed

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        """Learn the layer and return self."""
        self.layer_ = BioHash(self.n_units, activity=1.0, seed=self.seed, device="cpu").fit(X)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the activations, float32 of shape (n, n_units); about ``activity`` of a row's are not zero."""
        S = (torch.from_numpy(X) - self.layer_.mean_) @ F.normalize(self.layer_.weights_, dim=1).T
        kept = round(self.activity * S.shape[1])
        return (S - S.topk(kept, 1).values[:, -1:]).clamp_min_(0).numpy()


def _whitened(rank: int) -> Any:
    return make_pipeline(PCA(rank, whiten=True, svd_solver="covariance_eigh"), Normalizer())


def _edges(shape: Shape | None) -> Any:
    return FunctionTransformer(edges, kw_args={"shape": shape})


#: Transformers by the name of their variant, each of the shape of an image and a seed; None leaves rows as they are.
VARIANTS: dict[str, Callable[[Any, int], Any]] = {
    "as it is": lambda shape, seed: None,
    "unit vectors": lambda shape, seed: Normalizer(),
    "principal components": lambda shape, seed: make_pipeline(PCA(64, svd_solver="covariance_eigh"), Normalizer()),
    "whitened components": lambda shape, seed: _whitened(64),
    "even contrast": lambda shape, seed: FunctionTransformer(even_contrast, kw_args={"shape": shape}),
    "two layers": lambda shape, seed: FirstLayer(seed=seed),
    "wiring": lambda shape, seed: Wiring(seed=seed),
    "gradients": lambda shape, seed: _edges(shape),
    "gradients, whitened": lambda shape, seed: make_pipeline(_edges(shape), _whitened(128)),
    "gradients, wiring": lambda shape, seed: make_pipeline(_edges(shape), Wiring(seed=seed)),
}
