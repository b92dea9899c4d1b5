"""BioHash on images: a layer of it on the features of learned filters (sec. 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, get_args

import numpy as np
import torch
from torch import Tensor

from ..codes import Codes, SparseCodes, concatenate
from ..convolution import BLANK, Features, inhibit_and_pool, unit_patches
from ..plasticity import Reduction, anneal, train
from ..sparse_layer import LazySynapses, level_products
from .base import Hasher, as_matrix, require, torch_device

_BLOCK = 1 << 23  # activations of all channels held at a time: 32 MB of float32


class BioConvHash(Hasher):
    r"""Sparse codes of images: a BioHash layer on learned convolutional features.

    .. math:: a_{fs} = \Bigl[\frac{\langle W_f, x_s\rangle}{\lVert x_s\rVert}\Bigr]_+
              \text{ if among the } k_{\mathrm{CI}} \text{ largest of position } s, \text{ else } 0

    .. math:: y = \mathrm{BioHash}\bigl(\mathrm{maxpool}(a)\bigr)

    It takes images of shape (n, c, h, w). An image is stored as one byte per feature while the layer learns, and on a
    CPU its products skip the features that are zero (:mod:`biohash_mini.sparse_layer`). Filters and layer learn with
    ``reduction="mean"`` of :func:`~biohash_mini.plasticity.step_`, which needs far fewer passes than the other.
    Learning rates are meant for inputs of unit length: they are divided by the mean norm of patches or features, so
    that they suit images of any size.

    Parameters
    ----------
    hash_length : int >= 1
        Units on in a code (k).
    activity : float in (0, 1]
        Fraction of units on (a); fixes the number of units of the layer, m = round(k / a).
    kernel_sizes : sequence of int
        Sides of the filters; each size has its own filters, and their features stand side by side.
    n_filters : int >= 1
        Filters of each size (F).
    delta : float or sequence of float
        Strength of the anti-Hebbian update of the filters, one for all sizes or one for each; the layer has none.
    anti_rank : int >= 2
        Rank of the filter that receives it.
    channel_winners : int >= 1
        Channels that stay active at each position (k_CI).
    pool, stride : int >= 1
        Side of a pooling window, and the distance between two.
    normalize : bool
        Whether patches become unit vectors (divisive normalisation).
    n_patches : int >= 1
        Random patches that the filters of a size learn from.
    filter_epochs : int >= 1
        Passes over them, while the learning rate falls linearly to zero.
    filter_learning_rate, learning_rate : float > 0
        First learning rates of filters and layer.
    reduction : {"mean", "max"}
        How the layer scales the step of a minibatch, as in :func:`~biohash_mini.plasticity.step_`; with "max" its
        learning rate is taken as it is.
    max_epochs, batch_size, norm_tol : int, int, float
        Schedule and stopping rule of the layer, as in :class:`~biohash_mini.hashers.BioHash`.
    center : bool
        Whether the mean of the training features is subtracted.
    seed : int
        Seed of patches, filters, synapses and the order of the data.
    device : str
        "auto", "cpu", "cuda" or "mps".

    Attributes
    ----------
    filters_K_ : Tensor
        Filters of kernel size K, shape (F, c·K²), for each of ``kernel_sizes``.
    scale_ : Tensor of shape (d,)
        The activation that one level of a stored feature stands for.
    weights_ : Tensor of shape (m, d)
        Synapses of the layer.
    mean_ : Tensor of shape (d,)
        Mean of the training features.
    mean_norms_ : list of float
        Mean row norm of the layer after each epoch.
    """

    sparse_codes = True

    def __init__(
        self,
        hash_length: int = 16,
        *,
        activity: float = 0.05,
        kernel_sizes: Sequence[int] = (3, 4),
        n_filters: int = 500,
        delta: float | Sequence[float] = 0.1,
        anti_rank: int = 2,
        channel_winners: int = 10,
        pool: int = 7,
        stride: int = 2,
        normalize: bool = True,
        n_patches: int = 400_000,
        filter_epochs: int = 5,
        filter_learning_rate: float = 0.1,
        learning_rate: float = 0.2,
        reduction: Reduction = "mean",
        max_epochs: int = 20,
        batch_size: int = 100,
        norm_tol: float = 1.06,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.hash_length = hash_length
        self.activity = activity
        self.kernel_sizes = kernel_sizes
        self.n_filters = n_filters
        self.delta = delta
        self.anti_rank = anti_rank
        self.channel_winners = channel_winners
        self.pool = pool
        self.stride = stride
        self.normalize = normalize
        self.n_patches = n_patches
        self.filter_epochs = filter_epochs
        self.filter_learning_rate = filter_learning_rate
        self.learning_rate = learning_rate
        self.reduction = reduction
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.norm_tol = norm_tol
        self.center = center
        self.seed = seed
        self.device = device

    @property
    def n_units(self) -> int:
        """Units of the layer, m = round(k / a)."""
        return round(self.hash_length / self.activity)

    def fit(self, X: object, y: object = None) -> Self:
        """Learn filters and layer from images, shape (n, c, h, w), and return self; ``y`` is ignored."""
        return self.fit_filters(X).fit_layer(self.levels(X))

    def fit_filters(self, X: object) -> Self:
        """Learn the filters from patches of images, shape (n, c, h, w), and return self."""
        self._check_params()
        X = self._images(X)
        require(
            min(X.shape[2:]) >= max(self.kernel_sizes) + self.pool - 1,
            f"images of {X.shape[2]} × {X.shape[3]} are too small for kernels of {max(self.kernel_sizes)} pooled by "
            f"{self.pool}",
        )
        rng = torch.Generator().manual_seed(self.seed)
        deltas = [self.delta] * len(self.kernel_sizes) if np.isscalar(self.delta) else self.delta
        for size, delta in zip(self.kernel_sizes, deltas, strict=True):
            patches = self._sample_patches(X, size, rng)
            filters = torch.randn(self.n_filters, patches.shape[1], generator=rng).to(patches.device)
            train(
                patches,
                filters,
                anti_rank=self.anti_rank,
                delta=delta,
                reduction="mean",
                learning_rate=self.filter_learning_rate / _mean_norm(patches),
                max_epochs=self.filter_epochs,
                batch_size=self.batch_size,
                norm_tol=0.0,
                rng=rng,
            )
            setattr(self, f"filters_{size}_", filters)
        self.image_shape_ = list(X.shape[1:])
        self.scale_ = self._scale(X[:1000])
        return self

    def filters(self, size: int) -> Tensor:
        """Return the filters of one kernel size, shape (F, c·size²)."""
        return getattr(self, f"filters_{size}_")

    def fit_layer(self, levels: Tensor) -> Self:
        """Learn the layer from stored features, shape (n, d), of :meth:`levels`, and return self."""
        features = Features(levels, self.scale_, None if self.center else torch.zeros_like(self.scale_))
        rng = torch.Generator().manual_seed(self.seed)
        weights = torch.randn(self.n_units, len(self.scale_), generator=rng).to(levels.device)
        unit = _mean_norm(features) if self.reduction == "mean" else 1.0
        schedule = {
            "learning_rate": self.learning_rate / unit,
            "max_epochs": self.max_epochs,
            "batch_size": self.batch_size,
            "norm_tol": self.norm_tol,
            "rng": rng,
        }
        if levels.device.type == "cpu" and self.reduction == "mean":
            synapses = LazySynapses(weights, features)
            del weights
            history = anneal(synapses.step_, synapses.mean_norm, len(levels), **schedule)
            weights = synapses.weights()
        else:
            history = train(features, weights, reduction=self.reduction, **schedule)
        self.weights_, self.mean_, self.n_features_in_ = weights, features.mean, int(np.prod(self.image_shape_))
        self.mean_norms_ = [epoch.mean_norm for epoch in history]
        return self

    def encode(self, X: object) -> Codes:
        """Return the codes of images, shape (n, c, h, w)."""
        self._check_fitted()
        parts = self._images(X).split(256)
        return concatenate([self.encode_levels(self.levels(part)) for part in parts])

    def encode_levels(self, levels: Tensor) -> Codes:
        """Return the codes of stored features, shape (n, d)."""
        V = self.weights_.T.contiguous()  # no copy after training on a CPU
        along_mean = self.mean_ @ V
        blocks = (level_products(part, self.scale_, V) - along_mean for part in levels.split(256))
        return concatenate([SparseCodes.top_k(S, self.hash_length) for S in blocks])

    def levels(self, X: object) -> Tensor:
        """Return the features of images, shape (n, d), each as one of 256 levels, uint8."""
        X = self._images(X)
        require(
            list(X.shape[1:]) == self.image_shape_,
            f"images have shape {tuple(X.shape[1:])}, but filters were learned from {tuple(self.image_shape_)}",
        )
        out = torch.empty(len(X), len(self.scale_), dtype=torch.uint8, device=X.device)
        start = 0
        for size in self.kernel_sizes:
            step = max(1, _BLOCK // (self.n_filters * X.shape[2] * X.shape[3]))
            for rows in torch.arange(len(X)).split(step):
                pooled = self._pooled(X[rows], size)
                columns = slice(start, start + pooled.shape[1])
                out[rows, columns] = (pooled / self.scale_[columns]).round_().clamp_(0, 255).to(torch.uint8)
            start += pooled.shape[1]
        return out

    def _pooled(self, X: Tensor, size: int) -> Tensor:
        """Return the features of one kernel size, shape (n, pools · F)."""
        A = unit_patches(X, size, self.normalize) @ self.filters(size).T
        return inhibit_and_pool(A, X.shape[2] - size + 1, self.channel_winners, self.pool, self.stride).flatten(1)

    def _scale(self, X: Tensor) -> Tensor:
        """Return the step between levels for each feature: the largest activation of its kernel size is level 255."""
        parts = [self._pooled(X, size) for size in self.kernel_sizes]
        return torch.cat([(p.max() / 255).clamp_min(torch.finfo(p.dtype).tiny).expand(p.shape[1]) for p in parts])

    def _sample_patches(self, X: Tensor, size: int, rng: torch.Generator) -> Tensor:
        """Return random patches that are not blank, shape (n_patches, c·size²)."""
        n, _, height, width = X.shape
        found, missing = [], self.n_patches
        for _ in range(100):
            image = torch.randint(n, (missing,), generator=rng)
            y = torch.randint(height - size + 1, (missing,), generator=rng)
            x = torch.randint(width - size + 1, (missing,), generator=rng)
            offsets = torch.arange(size)
            window = X[image[:, None, None], :, (y[:, None] + offsets)[:, :, None], (x[:, None] + offsets)[:, None, :]]
            window = window.movedim(3, 1).flatten(1)  # (missing, c size²)
            norms = torch.linalg.vector_norm(window, dim=1, keepdim=True)
            seen = norms[:, 0] > BLANK
            found.append((window / norms if self.normalize else window)[seen])
            missing -= int(seen.sum())
            if missing == 0:
                return torch.cat(found)
        raise ValueError(f"hardly a patch of {size} × {size} pixels has a norm above {BLANK}: nothing to learn from")

    def _images(self, X: object) -> Tensor:
        """Return X as a finite float32 tensor of shape (n, c, h, w) on the device of this hasher."""
        shape = tuple(getattr(X, "shape", ()))
        require(len(shape) == 4 and 0 not in shape, f"X must be images of shape (n, c, h, w), got {shape}")
        return as_matrix(X.reshape(len(X), -1)).reshape(shape).to(torch_device(self.device))

    def _check_params(self) -> None:
        super()._check_params()
        require(0 < self.activity <= 1, f"activity must lie in (0, 1], got {self.activity}")
        for name in ("n_filters", "channel_winners", "pool", "stride", "n_patches", "filter_epochs", "max_epochs"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")
        require(
            self.channel_winners <= self.n_filters,
            f"channel_winners must be at most the number of filters {self.n_filters}, got {self.channel_winners}",
        )
        require(self.reduction in get_args(Reduction), f"reduction must be max or mean, got {self.reduction!r}")
        require(len(self.kernel_sizes) >= 1, "kernel_sizes must name at least one size")
        require(
            np.isscalar(self.delta) or len(self.delta) == len(self.kernel_sizes),
            f"delta must be one number or one for each of {len(self.kernel_sizes)} kernel sizes",
        )


def _mean_norm(X: Tensor | Features) -> float:
    """Return the mean Euclidean norm of the first rows."""
    return torch.linalg.vector_norm(X[:100], dim=1).mean().item()
