"""What must be true of the parameters, the images and the files of a convolution; ValueError says what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...inputs import is_number, require
from ..ranges import LARGEST, are_counts


def filters(hasher: Any) -> None:
    """Check the parameters of the filters that depend on one another."""
    sizes, shape, delta, r, count = (
        getattr(hasher, name) for name in ("kernel_sizes", "image_shape", "delta", "anti_rank", "n_filters")
    )
    k_ci = hasher.channel_winners
    require(k_ci <= count, f"channel_winners must be at most the number of filters {count}, got {k_ci}")
    words = "kernel_sizes must name at least one size, and sizes must be integers of at least 1"
    require(are_counts(sizes) and len(sizes) >= 1, f"{words}, got {sizes!r}")
    each = is_number(delta) or len(delta) == len(sizes)
    require(each, f"delta must be one number or one for each of {len(sizes)} kernel sizes")
    ranked = not np.any(delta) or 2 <= r <= count
    require(ranked, f"anti_rank must lie between 2 and the number of filters {count}, got {r}")
    whole = shape is None or (are_counts(shape) and len(shape) == 3)
    require(whole, f"image_shape must be channels, height and width, each at least 1, got {shape!r}")


def images(hasher: Any, shape: Sequence[int]) -> None:
    """Check that images (n, c, h, w) are large enough for the filters, and the filters not too many."""
    _, c, h, w = shape
    largest, pool = max(hasher.kernel_sizes), hasher.pool
    size = hasher.n_filters * c * largest**2
    require(size <= LARGEST, f"{size} weights of filters are more than {LARGEST}: lower n_filters, {hasher.n_filters}")
    fits = min(h, w) >= largest + pool - 1
    require(fits, f"images of {h} × {w} are too small for kernels of {largest} pooled by {pool}")


def same_shape(X: object, shape: Sequence[int]) -> None:
    """Check that images (n, c, h, w) have the shape that the filters have learned from."""
    given = tuple(getattr(X, "shape", ()))[1:]
    same = len(given) != 3 or given == tuple(shape)
    require(same, f"images have shape {given}, but filters were learned from {tuple(shape)}")


def restored(hasher: Any) -> None:
    """Check that the state read from a file belongs to images and filters of one shape."""
    c, h, w = shape = hasher.image_shape_
    require(are_counts(shape), f"image_shape_ is {shape}")
    require(c * h * w == hasher.n_features_in_, f"image_shape_ {shape} has not {hasher.n_features_in_} values")
    d = 0
    for size in hasher.kernel_sizes:
        found, want = tuple(hasher.filters(size).shape), (hasher.n_filters, c * size**2)
        require(found == want, f"filters_{size}_ has shape {found}, not {want}")
        sides = (max(0, (side - size + 1 - hasher.pool) // hasher.stride + 1) for side in (h, w))
        d += hasher.n_filters * math.prod(sides)
    shapes = [tuple(v.shape) for v in (hasher.mean_, hasher.scale_, hasher.weights_[0])]
    require(shapes == [(d,)] * 3, f"mean_, scale_ and synapses have shapes {shapes}, not ({d},)")
