"""BioHash on images: a layer of it on the features of learned filters (sec. 2.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from ...codes import Codes, SparseCodes, concatenate
from ...inputs import as_matrix, as_rows, blocks, is_number, require, span, torch_device, unit_of, within_reach
from ...plasticity import Epoch, Reduction, Start, anneal, default_passes, start_on_rows_, train
from ..base import Hasher, products
from ..stored import all_or_nothing
from . import checks
from .byte_layer import ByteSynapses, many_are_active
from .maps import ByteFeatures, inhibit_and_pool, mean_norm, sample_patches, unit_patches
from .sparse_layer import LazySynapses, level_products

_BLOCK = 1 << 20  # activations of all channels held at a time: 4 MB of float32
_IMAGES = 256  # images hashed at a time
_PASSES = 3  # of the layer at least: its many faint features overlap little, so norms fall more slowly than on pixels


class BioConvHash(Hasher):
    r"""Sparse codes of images: a BioHash layer on learned convolutional features.

    .. math:: a_{fs} = \Bigl[\frac{\langle W_f, x_s\rangle}{\lVert x_s\rVert}\Bigr]_+
              \text{ if among the } k_{\mathrm{CI}} \text{ largest of position } s, \text{ else } 0

    .. math:: y = \mathrm{BioHash}\bigl(\mathrm{maxpool}(a)\bigr)

    It takes images of shape (n, c, h, w), or as rows where their shape is known. An image is stored as one byte per
    feature while the layer learns. On a CPU products skip the features that are zero (``sparse_layer``) or, where many
    are not and the processor multiplies bytes, take synapses as bytes to find winners (``byte_layer``). Filters
    learn by the mean step of :func:`~biohash_mini.plasticity.step_`, the layer by that of ``reduction``.
    Learning rates are meant for inputs of unit length: they are divided by the mean norm of patches or features, so
    that they suit images of any size.

    Parameters
    ----------
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
    reduction : {"mean", "max", "implicit"}
        How the layer scales the step of a minibatch, as in :func:`~biohash_mini.plasticity.step_`; with "max" its
        learning rate is taken as it is.
    smooth, max_epochs, batch_size, norm_tol, start, init_norm : bool, int, int, float, str, float
        Schedule, stopping rule and start of the layer, as in :class:`~biohash_mini.hashers.BioHash`.
    center : bool
        Whether the mean of the training features is subtracted.
    image_shape : (channels, height, width), optional
        Shape of an image, where images come as rows.

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

    sparse_codes = free_length = takes_images = True
    learns = Hasher.learns + " mean_norms_ scale_ image_shape_"
    layer_params = frozenset(
        "hash_length activity learning_rate reduction smooth max_epochs norm_tol start init_norm center".split()
    )

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
        learning_rate: float = 0.5,
        reduction: Reduction = "implicit",
        smooth: bool = True,
        max_epochs: int | None = None,
        batch_size: int = 100,
        norm_tol: float = 0.0,
        start: Start = "rows",
        init_norm: float = 3.0,
        center: bool = True,
        image_shape: tuple[int, int, int] | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
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
        self.smooth = smooth
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.norm_tol = norm_tol
        self.start = start
        self.init_norm = init_norm
        self.image_shape = image_shape

    @all_or_nothing
    def fit_features(self, X: object) -> Self:
        """Learn the filters from patches of images, and return self."""
        self._check_params()
        given = len(getattr(X, "shape", ())) == 4
        X = self._images(X, None if given else self.image_shape, anew=True)
        checks.images(self, X.shape)
        rng = self._generator()
        deltas: Any = [self.delta] * len(self.kernel_sizes) if is_number(self.delta) else self.delta
        for size, delta in zip(self.kernel_sizes, deltas, strict=True):
            patches = sample_patches(X, size, self.n_patches, self.normalize, rng)
            filters = torch.randn(self.n_filters, patches.shape[1], generator=rng).to(patches.device)
            train(
                patches,
                filters,
                anti_rank=self.anti_rank,
                delta=delta,
                reduction="mean",
                learning_rate=self.filter_learning_rate / mean_norm(patches),
                max_epochs=self.filter_epochs,
                batch_size=int(self.batch_size),
                norm_tol=0.0,
                rng=rng,
            )
            setattr(self, f"filters_{size}_", filters)
        self.image_shape_ = list(X.shape[1:])
        self.scale_ = self._scale(X[:1000])
        return self

    def training_facts(self) -> dict[str, Any]:
        """Return passes of the layer, mean norm of its units, and the median and the largest norm of the filters."""
        norms = torch.cat([self.filters(size).norm(dim=1) for size in self.kernel_sizes])
        return {"filter_norms": [round(n.item(), 3) for n in (norms.median(), norms.max())], **super().training_facts()}

    def filters(self, size: int) -> Tensor:
        """Return the filters of one kernel size, shape (F, c·size²)."""
        return getattr(self, f"filters_{size}_")

    def features(self, X: object) -> Tensor:
        """Return the features of images, shape (n, d), each as one of 256 levels, uint8."""
        checks.same_shape(X, self.image_shape_)
        X = self._images(X, self.image_shape_)
        out = torch.empty(len(X), len(self.scale_), dtype=torch.uint8, device=X.device)
        start = 0
        for size in self.kernel_sizes:
            step = int(max(1, _BLOCK // (self.n_filters * X.shape[2] * X.shape[3])))
            for rows in torch.arange(len(X)).split(step):
                pooled = self._pooled(X[rows], size)
                columns = slice(start, start + pooled.shape[1])
                out[rows, columns] = (pooled / self.scale_[columns]).round_().clamp_(0, 255).to(torch.uint8)
            start += pooled.shape[1]
        return out

    @all_or_nothing
    def fit_layer(self, features: Tensor) -> Self:
        """Learn the layer from stored features, shape (n, d), of :meth:`features`, and return self."""
        self._check_params()
        stored = ByteFeatures(features, self.scale_, None if self.center else torch.zeros_like(self.scale_))
        rng = self._generator()
        d, m = len(self.scale_), self._planned_units()
        self._check_size(d)
        weights = torch.empty(d, m, device=features.device).T  # the units of a feature are neighbours
        if self.start == "normal":
            weights.copy_(torch.randn(m, d, generator=rng))
        else:
            start_on_rows_(weights, stored, self.init_norm, rng)
        unit = 1.0 if self.reduction == "max" else mean_norm(stored)
        schedule: dict[str, Any] = {
            "learning_rate": self.learning_rate / unit,
            "max_epochs": self.max_epochs or default_passes(len(features), m, _PASSES),
            "batch_size": int(self.batch_size),
            "norm_tol": self.norm_tol,
            "smooth": self.smooth,
            "rng": rng,
            "progress": self._progress,
        }
        if features.device.type == "cpu" and self.reduction != "max":
            kind = ByteSynapses if many_are_active(stored) else LazySynapses
            synapses = kind(weights, stored, self.reduction == "implicit")
            del weights
            history = anneal(synapses.step_, synapses.mean_norm, len(stored), **schedule)
            weights = synapses.weights()
        else:
            history = train(stored, weights, reduction=self.reduction, **schedule)
        self.weights_, self.mean_, self.n_features_in_ = weights, stored.mean, math.prod(self.image_shape_)
        self.mean_norms_ = [epoch.mean_norm for epoch in history]
        return self

    def _progress(self, epoch: Epoch) -> bool:
        return self._told_to_stop(epoch.number, epoch.mean_norm)

    def encode_lengths(self, X: object, hash_lengths: Iterable[int]) -> dict[int, Codes]:
        """Return the codes of images at each of several hash lengths, features made of a few images at a time."""
        self._check_fitted()
        checks.same_shape(X, self.image_shape_)
        parts = (self.features(part) for part in blocks(self._known(X), _IMAGES))
        return self._encode_parts(parts, hash_lengths)

    def encode_features(self, features: Tensor, hash_lengths: Iterable[int]) -> dict[int, Codes]:
        """Return the codes of stored features, shape (n, d), at each of several hash lengths."""
        return self._encode_parts(features.split(_IMAGES), hash_lengths)

    def _encode_parts(self, features: Iterable[Tensor], hash_lengths: Iterable[int]) -> dict[int, Codes]:
        lengths = self._allowed(hash_lengths)
        V = self.weights_.T.contiguous()  # no copy after training on a CPU
        along_mean = self.mean_ @ V
        activations = (level_products(part, self.scale_, V) - along_mean for part in features)
        parts = [[SparseCodes.top_k(S, k) for k in lengths] for S in activations]
        return {k: concatenate([codes[i] for codes in parts]) for i, k in enumerate(lengths)}

    def _pooled(self, X: Tensor, size: int) -> Tensor:
        """Return the features of one kernel size, shape (n, pools · F)."""
        A = products(unit_patches(X, size, self.normalize), self.filters(size))
        return inhibit_and_pool(A, X.shape[2] - size + 1, self.channel_winners, self.pool, self.stride).flatten(1)

    def _scale(self, X: Tensor) -> Tensor:
        """Return the step between levels for each feature: the largest activation of its kernel size is level 255."""
        parts = [self._pooled(X, size) for size in self.kernel_sizes]
        return torch.cat([(p.max() / 255).clamp_min(torch.finfo(p.dtype).tiny).expand(p.shape[1]) for p in parts])

    def _images(self, X: object, shape: Sequence[int] | None, anew: bool = False) -> Tensor:
        """Return X as a finite float32 tensor of shape (n, c, h, w) on the device of this hasher.

        ``shape`` is what images must have, where that is known; ``anew``, the unit is taken from these images.
        """
        given, rows = tuple(getattr(X, "shape", ())), as_rows(X)
        if shape is None and len(given) == 4:
            shape = given[1:]
        require(
            shape is not None and math.prod(shape) == rows.shape[1],
            f"X must be images of shape (n, c, h, w), or rows with image_shape set, got {given or rows.shape}",
        )
        images = as_matrix(rows)
        if anew:
            self.unit_ = unit_of(span(images, center=False))
        images = within_reach(images if self.unit_ == 1 else images * self.unit_, self.unit_)
        return images.reshape(-1, *shape).to(torch_device(self.device))

    def _learns(self) -> set[str]:
        return super()._learns() | {f"filters_{size}_" for size in self.kernel_sizes}

    def _any_row(self) -> Tensor:
        return torch.zeros(1, self.n_features_in_)

    def _check_restored(self) -> None:
        checks.restored(self)

    def _check_params(self) -> None:
        super()._check_params()
        checks.filters(self)
