"""The fly's own hash: random sparse expansion, then winner-take-all (FlyHash) or a threshold (DenseFly)."""

import torch
from torch import Tensor

from ..inputs import require
from .base import Hasher


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
    expansion : float > 0
        Units per input: m = round(expansion · d); the paper uses 10.
    fan_in : float in (0, 1]
        Fraction of the inputs that a unit reads; the paper uses 0.1.
    center : bool
        Whether the mean of the training data is subtracted first. Off: on raw pixels FlyHash comes nearest to the
        paper's numbers.
    """

    sparse_codes = free_length = one_layer = True

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
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.expansion = expansion
        self.fan_in = fan_in

    def _planned_units(self) -> int:
        raise AttributeError("FlyHash has as many units as the data ask for: fit it first")

    def _units_for(self, d: int) -> int:
        return round(min(self.expansion * d, 2.0**62))

    def _check_shape(self, n: int, d: int) -> None:
        m = self._units_for(d)
        require(self.hash_length <= m, f"hash_length must be at most the number of units {m}, got {self.hash_length}")

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        d = X.shape[1]
        self.weights_ = sample_inputs(self._units_for(d), d, self.fan_in, rng).to(X.device)


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
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.activity = activity
        self.fan_in = fan_in

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        self.weights_ = sample_inputs(self._planned_units(), X.shape[1], self.fan_in, rng).to(X.device)
