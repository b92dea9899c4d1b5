"""Hashes from principal components: their signs (PCAHash), or their signs after the best rotation (ITQ)."""

import scipy.linalg
import torch
from torch import Tensor

from ..inputs import require
from .base import Hasher


def principal_axes(X: Tensor, k: int) -> Tensor:
    """Return the k leading principal axes of centred X as rows, shape (k, d), in float64 precision on the CPU.

    An axis is defined up to its sign; here its largest entry is positive.
    """
    covariance = (X.T @ X).double().cpu().numpy() / len(X)
    d = len(covariance)
    _, columns = scipy.linalg.eigh(covariance, subset_by_index=[d - k, d - 1], driver="evr")
    axes = torch.from_numpy(columns.T.copy()).flip(0)
    return axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()


class PCAHash(Hasher):
    r"""The signs of the k leading principal components (Gong and Lazebnik, 2011).

    .. math:: h(x) = \mathrm{sign}(Px), \qquad P \in \mathbb{R}^{k\times d} \text{ the leading axes}

    Parameters
    ----------
    hash_length : int in [1, d]
        Bits of a code (k).
    """

    def _check_shape(self, n: int, d: int) -> None:
        k = self.hash_length
        require(k <= d, f"hash_length must be at most the number of features {d}, got {k}")

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        self.weights_ = principal_axes(X, self.hash_length).to(X)


class ITQ(PCAHash):
    r"""Iterative quantisation (Gong and Lazebnik, 2011): principal components rotated to lie near their signs.

    .. math:: \min_{R^\top R = I,\ B\in\{-1,1\}^{n\times k}} \|B - VR\|_F^2, \qquad V = XP^\top

    Parameters
    ----------
    hash_length : int in [1, d]
        Bits of a code (k).
    n_iterations : int >= 0
        Alternations between signs B and rotation R; the paper uses 50.
    """

    def __init__(
        self, hash_length: int = 16, *, n_iterations: int = 50, center: bool = True, seed: int = 0, device: str = "auto"
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.n_iterations = n_iterations

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        super()._fit(X, rng)
        k = self.hash_length
        V = X @ self.weights_.T  # (n, k)
        R = torch.linalg.qr(torch.randn(k, k, generator=rng)).Q.to(X)
        for _ in range(self.n_iterations):
            B = torch.where(V @ R > 0, 1.0, -1.0)
            U, _, Vh = torch.linalg.svd(V.T @ B)  # orthogonal Procrustes
            R = U @ Vh
        self.weights_ = R.T @ self.weights_
