"""Sparse codes from an orthogonal transform that is learned: POSH alternates winners and Procrustes."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from .base import Hasher


def nearest_orthogonal(A: Tensor) -> Tensor:
    r"""Return the matrix with orthonormal rows, or columns if those are fewer, that is nearest to A, shape (m, d).

    .. math:: A = U\Sigma V^\top \mapsto UV^\top
    """
    U, _, Vh = torch.linalg.svd(A, full_matrices=False)
    return U @ Vh


class POSH(Hasher):
    r"""Procrustean orthogonal sparse hashing (Tepper, Sengupta and Willke, 2020).

    .. math:: \max_{W, B} \operatorname{tr}(W X^\top B), \qquad B\in\{0,1\}^{n\times m},\ B e_m = k\,e_n

    The synapses W have orthonormal rows, or where there are more units than features, orthonormal columns. Given W the
    best B switches on the k winners of each row; given B the best W is that nearest to :math:`B^\top X`.

    Parameters
    ----------
    activity : float in (0, 1]
        Fraction of units on (a); fixes the number of units m = round(k / a).
    n_iterations : int >= 0
        Alternations between winners and synapses; with 0 the synapses are a random orthogonal transform.
    n_samples : int >= 1
        Rows that are learned from, at most; they are drawn at random.
    """

    sparse_codes = free_length = True

    def __init__(
        self,
        hash_length: int = 16,
        *,
        activity: float = 0.05,
        n_iterations: int = 20,
        n_samples: int = 10_000,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.activity = activity
        self.n_iterations = n_iterations
        self.n_samples = n_samples

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        m = self._planned_units()
        W = nearest_orthogonal(torch.randn(m, X.shape[1], generator=rng)).to(X)
        if len(X) > self.n_samples:
            X = X[torch.randperm(len(X), generator=rng)[: self.n_samples].to(X.device)]
        X = normalize(X)
        for _ in range(self.n_iterations):
            winners = (X @ W.T).topk(min(self.hash_length, m), dim=1).indices  # (n, k)
            B = torch.zeros(len(X), m, device=X.device).scatter_(1, winners, 1.0)
            W = nearest_orthogonal(B.T @ X)
        self.weights_ = W
