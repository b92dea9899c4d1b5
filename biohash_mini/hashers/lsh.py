"""Random hyperplanes: the classical locality-sensitive hash for angles."""

import torch
from torch import Tensor

from .base import Hasher


class LSH(Hasher):
    r"""SimHash (Charikar, 2002): the signs of random projections.

    .. math:: h(x) = \mathrm{sign}(Wx), \qquad W \in \mathbb{R}^{k\times d},\ W_{\mu i}\sim\mathcal N(0,1)
    """

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        self.weights_ = torch.randn(self.hash_length, X.shape[1], generator=rng).to(X.device)
