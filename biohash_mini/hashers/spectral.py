"""Spectral hashing: the slowest waves along the principal components."""

import math

import numpy as np
import torch
from torch import Tensor

from .base import products
from .pca import PCAHash, principal_axes

_NARROWEST = 1e-12  # data are of ordinary size here; across a narrower interval waves would be too fast for float32


class SpectralHash(PCAHash):
    r"""Thresholded eigenfunctions of a uniform density on the box of the principal components (Weiss et al., 2009).

    .. math:: h_j(x) = \mathrm{sign}\cos\bigl(\omega_j (v_{i_j} - a_{i_j})\bigr), \qquad
              \omega = \frac{n\pi}{b_i - a_i},\ n = 1, 2, \dots

    Of all waves along the k components v, on the interval [a, b] of each, the k with the lowest frequency are kept.

    Parameters
    ----------
    hash_length : int in [1, d]
        Bits of a code (k).
    percentile : float in [0, 50)
        The interval runs from this percentile to its mirror image; 0 takes minimum and maximum.
    """

    learns = PCAHash.learns + " low_ omega_"

    def __init__(
        self,
        hash_length: int = 16,
        *,
        percentile: float = 5.0,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.percentile = percentile

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        k = self.hash_length
        axes = principal_axes(X, k).to(X)
        low, high = np.percentile((X @ axes.T).cpu().numpy(), [self.percentile, 100 - self.percentile], axis=0)
        width = np.maximum(high - low, _NARROWEST)
        omega = math.pi * np.arange(1, k + 1)[:, None] / width  # (waves, components)
        slowest = np.argsort(omega, axis=None, kind="stable")[:k]
        component = slowest % k
        self.weights_ = axes[component]  # (k, d), repeated where one component carries several waves
        self.low_ = torch.from_numpy(low[component]).to(X)
        self.omega_ = torch.from_numpy(omega.ravel()[slowest]).to(X)

    def _activations(self, X: Tensor) -> Tensor:
        return torch.cos(self.omega_ * (products(X, self.weights_) - self.low_))
