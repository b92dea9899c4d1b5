"""The fly's own hash: random sparse expansion, then winner-take-all (FlyHash) or a threshold (DenseFly)."""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..codes import Codes, SparseCodes, concatenate
from .base import Hasher, require


def sample_inputs(n_units: int, n_features: int, fan_in: float, rng: torch.Generator) -> Tensor:
    """Return binary synapses, shape (m, d): each unit reads the same number of inputs, chosen at random."""
    count = max(1, round(fan_in * n_features))
    blocks = [torch.rand(min(1024, n_units - i), n_features, generator=rng) for i in range(0, n_units, 1024)]
    chosen = torch.cat([block.topk(count, dim=1).indices for block in blocks])
    return torch.zeros(n_units, n_features).scatter_(1, chosen, 1.0)


class FlyHash(Hasher):
    r"""Random sparse expansion and winner-take-all (Dasgupta, Stevens and Navlakha, 2017).

    .. math:: y_\mu = 1 \text{ iff } (Wx)_\mu \text{ is among the } k \text{ largest}, \qquad W\in\{0,1\}^{m\times d}

    Parameters
    ----------
    hash_length : int >= 1
        Units on in a code (k).
    expansion : float > 0
        Units per input: m = round(expansion · d); the paper uses 10.
    fan_in : float in (0, 1]
        Fraction of the inputs that a unit reads; the paper uses 0.1.
    center : bool
        Whether the mean of the training data is subtracted first. Off: on raw pixels FlyHash comes nearest to the
        paper's numbers.
    seed : int
        Seed of the synapses.
    device : str
        "auto", "cpu", "cuda" or "mps".
    """

    sparse_codes = True

    def __init__(
        self,
        hash_length: int = 16,
        *,
        expansion: float = 10,
        fan_in: float = 0.1,
        center: bool = False,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.hash_length = hash_length
        self.expansion = expansion
        self.fan_in = fan_in
        self.center = center
        self.seed = seed
        self.device = device

    def _check_params(self) -> None:
        super()._check_params()
        require(self.expansion > 0, f"expansion must be positive, got {self.expansion}")
        require(0 < self.fan_in <= 1, f"fan_in must lie in (0, 1], got {self.fan_in}")

    def _check_shape(self, n: int, d: int) -> None:
        m = round(self.expansion * d)
        require(self.hash_length <= m, f"hash_length must be at most the number of units {m}, got {self.hash_length}")

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        d = X.shape[1]
        self.weights_ = sample_inputs(round(self.expansion * d), d, self.fan_in, rng).to(X.device)

    def encode_lengths(self, X: object, hash_lengths: Iterable[int]) -> dict[int, Codes]:
        """Return the codes of the rows of X, shape (n, d), at each of several hash lengths, from one projection.

        Synapses do not depend on k, so ``encode`` of a FlyHash of any length and the same seed gives the same.
        """
        lengths = list(hash_lengths)
        parts = [[SparseCodes.top_k(S, k) for k in lengths] for S in map(self._activations, self._parts(X))]
        return {k: concatenate(list(codes)) for k, codes in zip(lengths, zip(*parts, strict=True), strict=True)}


class DenseFly(Hasher):
    r"""Random sparse expansion with every unit kept as a bit (Sharma and Navlakha, 2018).

    .. math:: y_\mu = 1 \text{ iff } (Wx)_\mu > 0, \qquad W\in\{0,1\}^{m\times d},\ x \text{ centred}

    Parameters
    ----------
    hash_length : int >= 1
        k, the length of the sparse code that it stands beside.
    activity : float in (0, 1]
        Fixes the bits of a code, m = round(k / activity): 20 k by default, as its authors use.
    fan_in : float in (0, 1]
        Fraction of the inputs that a unit reads.
    center : bool
        Whether the mean of the training data is subtracted first; without it hardly any sum is negative.
    seed : int
        Seed of the synapses.
    device : str
        "auto", "cpu", "cuda" or "mps".
    """

    def __init__(
        self,
        hash_length: int = 16,
        *,
        activity: float = 0.05,
        fan_in: float = 0.1,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.hash_length = hash_length
        self.activity = activity
        self.fan_in = fan_in
        self.center = center
        self.seed = seed
        self.device = device

    def _check_params(self) -> None:
        super()._check_params()
        require(0 < self.activity <= 1, f"activity must lie in (0, 1], got {self.activity}")
        require(0 < self.fan_in <= 1, f"fan_in must lie in (0, 1], got {self.fan_in}")

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        m = round(self.hash_length / self.activity)
        self.weights_ = sample_inputs(m, X.shape[1], self.fan_in, rng).to(X.device)
