"""Signs of a small network that learns without labels: DH, and what it shares with UH-BNN and GreedyHash."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.nn.functional import linear
from torch.optim import Adam, Optimizer
from tqdm.auto import tqdm

from ..inputs import require
from ..plasticity import annealed
from .base import Hasher, products
from .pca import principal_axes
from .ranges import are_counts

_NORM = 3  # the power of two below which short rows are brought
_SAMPLE = 1000  # rows whose bits are looked at after training


def dh_loss(H: Tensor, weights: Sequence[Tensor], spread: float = 1.0, orthogonality: float = 1.0) -> Tensor:
    r"""Return the loss of DH for a minibatch, a scalar: codes near ±1, bits that vary, layers that rotate.

    .. math::

       L = \frac{1}{2n}\sum_i\|b_i-h_i\|^2 - \frac{\lambda_1}{2n}\sum_i\|h_i-\bar h\|^2
           + \frac{\lambda_2}{2}\sum_l\|W_lW_l^\top-I\|_F^2, \qquad b=\mathrm{sgn}(h)

    Parameters
    ----------
    H : Tensor of shape (n, k)
        Outputs of the network.
    weights : sequence of Tensors of shape (width, width before)
        Of its layers.
    spread, orthogonality : float >= 0
        Weights of the second and the third term.
    """
    B = signs(H).detach()
    rotation = sum((W @ W.T - torch.eye(len(W)).to(W)).square().sum() for W in weights)
    vary = (H - H.mean(0)).square().sum() / len(H)
    return ((B - H).square().sum() / len(H) - spread * vary + orthogonality * rotation) / 2


def signs(H: Tensor) -> Tensor:
    """Return +1 where H > 0 and -1 elsewhere, as codes have it."""
    return torch.where(H > 0, 1.0, -1.0).to(H)


def descent(
    hasher: Any, optimizer: Optimizer, loss: Callable[[Tensor], Tensor], X: Tensor, rng: Generator, fewest: int = 1
) -> Iterator[float]:
    """Yield the mean loss of each pass of a hasher over X, at a learning rate that falls linearly to zero.

    A minibatch with less than ``fewest`` rows is passed over.
    """
    (group,) = optimizer.param_groups
    first = group["lr"]

    def step(rows: Tensor) -> float:
        with torch.enable_grad():
            value = loss(X[rows])
            optimizer.zero_grad()
            value.backward()
        optimizer.step()
        return value.item()

    for epoch in tqdm(range(hasher.max_epochs), unit="epoch", disable=not hasher.verbose):
        group["lr"] = annealed(first, epoch, hasher.max_epochs)
        order = torch.randperm(len(X), generator=rng).to(X.device)
        batches = [rows for rows in order.split(int(hasher.batch_size)) if len(rows) >= fewest]
        mean = sum(map(step, batches)) / max(1, len(batches))
        yield mean
        if hasher._told_to_stop(epoch + 1, mean):
            return


class Network(Hasher):
    """Three layers, the last of which gives the bits."""

    _squash: ClassVar[Callable[[Tensor], Tensor]]
    _wider: ClassVar[tuple[int, int]]  # units that the hidden layers have more than the last by default
    _LAYERS = ("weights1_", "bias1_", "weights2_", "bias2_", "weights_", "bias_")
    learns = " ".join([Hasher.learns, *_LAYERS, "scale_ losses_"])
    scale_: float = 1.0

    def _start(self, X: Tensor) -> list[Tensor]:
        """Return W1, c1, W2, c2, W3, c3 of a network that takes principal components and passes the leading ones on."""
        k = self.hash_length
        hidden = [k + more for more in self._wider] if self.hidden is None else self.hidden
        weights = [torch.eye(width, before) for before, width in pairwise((X.shape[1], *hidden, k))]
        axes = principal_axes(X, min(weights[0].shape))
        weights[0][: len(axes)] = axes
        return [p.to(X).requires_grad_() for W in weights for p in (W, torch.zeros(len(W)))]

    def _outputs(self, X: Tensor, layers: Sequence[Tensor], take: Callable[..., Tensor] = linear) -> Tensor:
        """Return what the layers make of X, shape (n, k); the last of them does not squash."""
        W1, c1, W2, c2, W3, c3 = layers
        squash = type(self)._squash
        return take(squash(take(squash(take(X, W1, c1)), W2, c2)), W3, c3)

    def _keep(self, layers: Sequence[Tensor], losses: list[float]) -> None:
        require(math.isfinite(losses[-1]), "training diverges: lower the weights of the loss or the learning rate")
        self.__dict__.update(zip(self._LAYERS, (p.detach() for p in layers), strict=True), losses_=losses)

    def _activations(self, X: Tensor) -> Tensor:
        layers = [getattr(self, name) for name in self._LAYERS]
        return self._outputs(X / self.scale_, layers, lambda X, W, c: products(X, W) + c)

    def _check_params(self) -> None:
        super()._check_params()
        pair = self.hidden is None or (are_counts(self.hidden) and len(self.hidden) == 2)
        require(pair, f"hidden must be two widths of at least 1, got {self.hidden}")


class DH(Network):
    r"""Deep hashing (Lu et al., 2017): the signs of three layers that rotate the data and spread it over the bits.

    .. math:: h = \tanh(W_3\tanh(W_2\tanh(W_1x+c_1)+c_2)+c_3), \qquad y_\mu = 1 \text{ iff } h_\mu > 0

    The network starts as PCAHash and descends on :func:`~biohash_mini.hashers.deep.dh_loss`, minibatch by minibatch.

    Parameters
    ----------
    hidden : pair of int, optional
        Widths of the hidden layers, by default k + 44 and k + 14: 60 and 30 for 16 bits.
    spread, orthogonality : float >= 0
        Weights of the terms of the loss.
    weight_decay : float >= 0
        Weight of half the squared norm of all parameters.
    learning_rate : float > 0
        First learning rate of Adam; it falls linearly to zero over ``max_epochs``.
    max_epochs, batch_size : int >= 1
        Passes over the data, and rows of a minibatch.

    Attributes
    ----------
    weights1_, bias1_, weights2_, bias2_, weights_, bias_ : Tensor
        Learned weights and offsets of the three layers; ``weights_`` has shape (k, second width).
    scale_ : float
        What inputs are divided by: 1, and a power of two for rows whose mean norm is below 4, which it brings to
        between 4 and 8. Digits have a norm of 7; of rows much shorter the loss would make bits that never change.
    losses_ : list of float
        Mean loss over the minibatches of each epoch.

    Notes
    -----
    The authors take the variance of a bit about zero, on the assumption that bits are balanced; a bit that is always on
    then has the largest one. Here it is taken about the mean.
    """

    _squash = torch.tanh
    _wider = (44, 14)

    def __init__(
        self,
        hash_length: int = 16,
        *,
        hidden: tuple[int, int] | None = None,
        spread: float = 1.0,
        orthogonality: float = 1.0,
        weight_decay: float = 1e-3,
        learning_rate: float = 1e-3,
        max_epochs: int = 20,
        batch_size: int = 100,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.hidden = hidden
        self.spread = spread
        self.orthogonality = orthogonality
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.verbose = verbose

    def _fit(self, X: Tensor, rng: Generator) -> None:
        norm = torch.linalg.vector_norm(X, dim=1).mean().item()
        self.scale_ = math.ldexp(1.0, math.frexp(norm)[1] - _NORM) if 0 < norm < 4 else 1.0
        X = X / self.scale_
        layers = self._start(X)

        def loss(rows: Tensor) -> Tensor:
            return dh_loss(torch.tanh(self._outputs(rows, layers)), layers[::2], self.spread, self.orthogonality)

        optimizer = Adam(layers, lr=self.learning_rate, weight_decay=self.weight_decay)
        self._keep(layers, list(descent(self, optimizer, loss, X, rng)))
        bits, some = signs(self._outputs(X[:_SAMPLE], layers)), X[:_SAMPLE]
        constant = int((bits == bits[0]).all(0).sum())
        if constant and (some != some[0]).any():
            words = f"{constant} of {self.hash_length} bits of DH are the same for the first {len(some)} rows"
            warnings.warn(f"{words}: raise the spread, {self.spread}, or multiply the rows", stacklevel=2)

    def _look_at_codes(self, rows: object) -> None:
        """Do nothing: training has looked at every bit."""
