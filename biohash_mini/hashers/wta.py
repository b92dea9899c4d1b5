"""Winner-take-all inside small random windows of the input: codes that see only the order of the features."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..codes import Codes, SparseCodes
from ..inputs import require
from .base import Hasher


class WTAHash(Hasher):
    r"""WTA hash (Yagnik, Strelow, Ross and Lin, 2011): which of a few random inputs is the largest.

    .. math:: y_{\mu j} = 1 \text{ iff } j = \arg\max_{i} x_{W_{\mu i}}

    Parameters
    ----------
    hash_length : int >= 1
        Windows, and so units on in a code (k).
    window : int in [2, d]
        Inputs that a window looks at; a code has m = k · window units.
    center : bool
        Whether the mean of the training data is subtracted first. Off: no monotone change of a row changes its code.

    Notes
    -----
    ``codes.bits_per_item`` counts :math:`k\lceil\log_2 m\rceil` as for any sparse code. Since every window has one
    winner, :math:`k\lceil\log_2\mathrm{window}\rceil` bits would do.
    """

    sparse_codes = True

    def __init__(
        self, hash_length: int = 16, *, window: int = 16, center: bool = False, seed: int = 0, device: str = "auto"
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.window = window

    def _planned_units(self) -> int:
        return self.hash_length * self.window

    def _check_shape(self, n: int, d: int) -> None:
        require(2 <= self.window <= d, f"window must lie in [2, {d}], got {self.window} for n_features = {d}")

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        d = X.shape[1]
        chosen = torch.cat([torch.randperm(d, generator=rng)[: self.window] for _ in range(self.hash_length)])
        self.weights_ = torch.eye(d)[chosen].to(X.device)  # (m, d): each unit reads one input

    def _activations(self, X: Tensor) -> Tensor:
        return X[:, self.weights_.argmax(1)]  # the product with the weights, without the product

    def _encode(self, X: Tensor, hash_lengths: Sequence[int]) -> list[Codes]:
        seen = self._activations(X).reshape(len(X), -1, self.window)  # (n, k, window)
        winner = (seen == seen.amax(2, keepdim=True)).int().argmax(2)  # the first of equal ones
        first = torch.arange(self.hash_length, device=X.device) * self.window
        return [SparseCodes((first + winner).cpu().numpy(), self.n_units)]
