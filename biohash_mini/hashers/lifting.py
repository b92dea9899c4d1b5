"""Sparse codes from an expansion that is optimised: SOLHash, sparse optimal lifting by the Frank–Wolfe algorithm.

Both problems of the method live on matrices with entries in [0, 1] whose rows have a given sum. A corner of that set is
a 0/1 matrix with as many ones in each row, so the linear program of a Frank–Wolfe step is a top-k.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize
from tqdm.auto import tqdm

from .base import Hasher


def corner(gradient: Tensor, ones: int) -> Tensor:
    """Return the 0/1 matrix S with so many ones in each row that minimises the inner product with the gradient."""
    chosen = gradient.topk(ones, dim=1, largest=False).indices
    return torch.zeros_like(gradient).scatter_(1, chosen, 1.0)


def lifting_loss(Z: Tensor, U: Tensor, hash_length: int) -> float:
    r"""Return how far overlaps of codes are from cosines of inputs, without a matrix of pairs.

    .. math:: f(Z) = \|ZZ^\top - k\,UU^\top\|_F^2 = \|Z^\top Z\|_F^2 - 2k\|U^\top Z\|_F^2 + k^2\|U^\top U\|_F^2

    Parameters
    ----------
    Z : Tensor of shape (n, m)
        Relaxed codes, rows in [0, 1] with sum k.
    U : Tensor of shape (n, d)
        Inputs as unit vectors.
    hash_length : int
        Overlap that identical inputs should have (k).
    """
    k = hash_length
    return _square(Z.T @ Z) - 2 * k * _square(U.T @ Z) + k * k * _square(U.T @ U)


def lifting_gradient(Z: Tensor, U: Tensor, hash_length: int) -> Tensor:
    r"""Return the gradient of :func:`lifting_loss`, shape (n, m): :math:`4\,(Z(Z^\top Z) - k\,U(U^\top Z))`."""
    return 4 * (Z @ (Z.T @ Z) - hash_length * (U @ (U.T @ Z)))


def best_step(Z: Tensor, D: Tensor, U: Tensor, hash_length: int) -> tuple[float, float]:
    r"""Return the t in [0, 1] where :math:`f(Z + tD) - f(Z)`, of degree four in t, is smallest, and its value there."""
    k, ZD, DD, G = hash_length, Z.T @ D, D.T @ D, Z.T @ Z
    UZ, UD = U.T @ Z, U.T @ D
    slope = 4 * _inner(G, ZD) - 4 * k * _inner(UZ, UD)
    curvature = 2 * _inner(G, DD) + 2 * _inner(ZD, ZD.T) + 2 * _square(ZD) - 2 * k * _square(UD)
    f = np.polynomial.Polynomial([0.0, slope, curvature, 4 * _inner(ZD, DD), _square(DD)])
    roots = f.deriv().roots()
    inside = np.real(roots[np.isreal(roots)])
    t = min([0.0, 1.0, *inside[(inside > 0) & (inside < 1)]], key=f)
    return float(t), float(f(t))


def _inner(A: Tensor, B: Tensor) -> float:
    return (A.double() * B).sum().item()


def _square(A: Tensor) -> float:
    return A.double().square().sum().item()


class SOLHash(Hasher):
    r"""SOLHash (Li et al., 2018): codes whose overlaps match cosines, then an operator that maps inputs to them.

    With U the inputs as unit vectors, first codes Y of the training rows are found, then weights W:

    .. math::

       \min_{Y\in[-1,1]^{n\times m},\; Ye_m=(2k-m)e_n} \|T-YY^\top\|_F^2, \qquad
       \min_{W\in[-1,1]^{m\times d},\; We_d=(2c-d)e_m} \|Y-UW^\top\|_F^2,

    and new points switch on the k units with the largest activations.

    Parameters
    ----------
    activity : float in (0, 1]
        Fraction of units on; fixes the number of units m = round(k / activity).
    fan_in : float in (0, 1]
        Fraction of the inputs that a unit reads with weight 1 (c / d).
    n_samples : int >= 1
        Random rows that are learned from; all, if there are no more.
    n_steps, n_operator_steps : int >= 1
        Frank–Wolfe steps for the codes and for the weights.

    Attributes
    ----------
    weights_ : Tensor of shape (m, d)
        The operator W.
    losses_, operator_losses_ : list of float
        ||T - YY'||² per pair of rows, and ||Y - UW'||² per row, before the first step and after each.

    Notes
    -----
    The computation is done with Z = (Y + 1) / 2, the codes with entries in [0, 1], and likewise for W. An overlap of Y
    is :math:`m - 4k + 4\,z\cdot z'`, so cosines can only be matched after the same shift and stretch:
    :math:`T = m - 4k + 4k\,UU^\top`. The published problems also have terms :math:`\gamma\|Y\|_p` and
    :math:`\beta\|W\|_p` of unpublished weight. They are left out: for entries in [-1, 1] such a norm is largest at the
    corners, so it would favour units that are half on.
    """

    sparse_codes = free_length = True
    learns = Hasher.learns + " losses_ operator_losses_"

    def __init__(
        self,
        hash_length: int = 16,
        *,
        activity: float = 0.05,
        fan_in: float = 0.3,
        n_samples: int = 2000,
        n_steps: int = 30,
        n_operator_steps: int = 30,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.activity = activity
        self.fan_in = fan_in
        self.n_samples = n_samples
        self.n_steps = n_steps
        self.n_operator_steps = n_operator_steps
        self.verbose = verbose

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        rows = torch.randperm(len(X), generator=rng)[: self.n_samples].to(X.device)
        U = normalize(X[rows], dim=1)
        Z = corner(torch.rand(len(U), self._planned_units(), generator=rng).to(X.device), self.hash_length)
        with tqdm(total=self.n_steps + self.n_operator_steps, unit="step", disable=not self.verbose) as bar:
            Z, losses = self._lift(Z, U, bar)
            V, operator_losses = self._operator(Z, U, bar)
        self.weights_, self.losses_, self.operator_losses_ = 2 * V - 1, losses, operator_losses

    def _lift(self, Z: Tensor, U: Tensor, bar: tqdm) -> tuple[Tensor, list[float]]:
        """Return the codes, shape (n, m), and the loss along the way."""
        k, f = self.hash_length, [lifting_loss(Z, U, self.hash_length)]
        for _ in range(self.n_steps):
            D = corner(lifting_gradient(Z, U, k), k) - Z
            t, change = best_step(Z, D, U, k)
            Z = Z + t * D
            f.append(f[-1] + change)
            bar.update()
        return Z, [16 * value / len(U) ** 2 for value in f]

    def _operator(self, Z: Tensor, U: Tensor, bar: tqdm) -> tuple[Tensor, list[float]]:
        """Return the operator with entries in [0, 1], shape (m, d), and the loss along the way.

        Each unit is a problem of its own, convex and quadratic, with a step of its own.
        """
        d, ones = U.shape[1], max(1, round(self.fan_in * U.shape[1]))
        target = Z - (1 - U.sum(1, keepdim=True)) / 2  # Y - UW' = 2 (target - UV')
        G, R, total = U.T @ U, target.T @ U, _square(target)
        V = torch.full((Z.shape[1], d), ones / d, device=U.device)
        losses = []
        for step in range(self.n_operator_steps + 1):
            VG = V @ G
            losses.append(4 * (total + _inner(VG - 2 * R, V)) / len(U))
            if step < self.n_operator_steps:
                slope = VG - R
                D = corner(slope, ones) - V
                curvature = (D * (D @ G)).sum(1).clamp_min(torch.finfo(U.dtype).tiny)
                V = V + (-(slope * D).sum(1) / curvature).clamp(0, 1)[:, None] * D
                bar.update()
        return V, losses
