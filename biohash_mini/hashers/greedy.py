"""Signs of a linear layer learned by backpropagation through the sign: GreedyHash without labels."""

import math

import torch
from torch import Tensor
from torch.nn.functional import hardshrink, normalize

from ..inputs import require
from ..plasticity import FAINT
from .base import Hasher, products
from .deep import descent, signs


class StraightThroughSign(torch.autograd.Function):
    r"""The sign whose gradient is taken to be that of the identity.

    .. math:: b = \mathrm{sgn}(h), \qquad \frac{\partial L}{\partial h} := \frac{\partial L}{\partial b}
    """

    @staticmethod
    def forward(ctx: object, H: Tensor) -> Tensor:
        """Return +1 where H > 0 and -1 elsewhere, as codes have it."""
        return signs(H)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        """Return the gradient as it came."""
        return gradient


def greedy_loss(X: Tensor, H: Tensor, penalty: float = 0.1) -> Tensor:
    r"""Return the loss of a minibatch, a scalar: how far cosines of codes are from cosines of inputs, and h from ±1.

    .. math::

       L = \frac{1}{n(n-1)}\sum_{i\ne j}\bigl(\cos(b_i,b_j)-\cos(x_i,x_j)\bigr)^2
           + \frac{\alpha}{nk}\sum_{i\mu}\bigl|\,|h_{i\mu}|-1\,\bigr|^3, \qquad b=\mathrm{sgn}(h)

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Inputs, n >= 2.
    H : Tensor of shape (n, k)
        Their activations in the hash layer.
    penalty : float >= 0
        Weight of the second term (alpha).
    """
    B = StraightThroughSign.apply(H)
    n = len(B)
    U, V = normalize(X, dim=1), normalize(B, dim=1)  # the gradient of a cosine leaves the length of b alone
    gap = V @ V.T - U @ U.T  # zero on the diagonal
    return gap.square().sum() / (n * (n - 1)) + penalty * ((H.abs() - 1).abs() ** 3).mean()


class GreedyHash(Hasher):
    r"""Unsupervised GreedyHash (Su et al., 2018): a linear layer, trained by gradients that pass the sign unchanged.

    .. math:: y_\mu = 1 \text{ iff } h_\mu = W_\mu\cdot x/\|x\| + c_\mu > 0

    W and c descend on :func:`~biohash_mini.hashers.greedy.greedy_loss`, minibatch by minibatch, with momentum. Cosines
    are those of centred inputs, where ``center`` is true.

    Parameters
    ----------
    penalty : float >= 0
        Weight of the term that draws activations to ±1.
    learning_rate : float > 0
        First learning rate for a bit, whose share in the loss is 1 / k: W and c move with k times as much. It falls
        linearly to zero over ``max_epochs``.
    momentum : float in [0, 1)
        Share of the last step that the next one keeps.
    weight_decay : float >= 0
        Weight of half the squared norm of W and c.
    max_epochs : int >= 1
        Passes over the data.
    batch_size : int >= 2
        Rows of a minibatch; all their pairs enter the loss.

    Attributes
    ----------
    weights_ : Tensor of shape (k, d)
        Learned weights, one row per bit.
    bias_ : Tensor of shape (k,)
        Learned offsets.
    losses_ : list of float
        Mean loss over the minibatches of each epoch.

    Notes
    -----
    The layer reads unit vectors: cosines know no other, and one learning rate then serves pixels and features alike.
    The authors' own program draws disjoint pairs from a minibatch, has a constant learning rate and reads inputs as
    they are; all pairs cost hardly more, and their gradient is less noisy.
    """

    learns = Hasher.learns + " bias_ losses_"

    def __init__(
        self,
        hash_length: int = 16,
        *,
        penalty: float = 0.1,
        learning_rate: float = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        max_epochs: int = 20,
        batch_size: int = 100,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.verbose = verbose

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        W = torch.randn(self.hash_length, X.shape[1], generator=rng).to(X.device).requires_grad_()
        c = torch.zeros(self.hash_length, device=X.device, requires_grad=True)
        rate = self.hash_length * self.learning_rate
        optimizer = torch.optim.SGD([W, c], rate, self.momentum, weight_decay=self.weight_decay)

        def loss(U: Tensor) -> Tensor:
            return greedy_loss(U, U @ W.T + c, self.penalty)

        losses = []
        advice = f"lower the learning_rate, {self.learning_rate}, or the penalty, {self.penalty}"
        for value in descent(self, optimizer, loss, normalize(X, dim=1), rng, fewest=2):  # a row alone has no pair
            W.data = hardshrink(W.data, FAINT)  # weights on inputs that never vary only decay
            require(math.isfinite(value), f"training diverges: {advice}")
            losses.append(value)
        self.weights_, self.bias_, self.losses_ = W.detach(), c.detach(), losses

    def _activations(self, X: Tensor) -> Tensor:
        return products(normalize(X, dim=1), self.weights_) + self.bias_

    def _check_params(self) -> None:
        super()._check_params()
        require(self.batch_size >= 2, f"batch_size must be at least 2, for pairs, got {self.batch_size}")
