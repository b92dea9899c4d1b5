"""An autoencoder whose middle layer is binary: UH-BNN."""

from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from ..inputs import require
from .deep import Network, signs
from .pca import ITQ


def bnn_loss(
    H: Tensor, B: Tensor, quantisation: float = 0.05, independence: float = 0.01, balance: float = 0.03
) -> Tensor:
    r"""Return the loss of UH-BNN's encoder, a scalar: outputs near given codes, uncorrelated and of zero mean.

    .. math::

       L = \frac{\lambda_2}{2n}\|H-B\|_F^2 + \frac{\lambda_3}{2}\Bigl\|\frac1n H^\top H-I\Bigr\|_F^2
           + \frac{\lambda_4}{2}\|\bar h\|^2

    Parameters
    ----------
    H, B : Tensor of shape (n, k)
        Outputs of the network and codes of ±1.
    quantisation, independence, balance : float >= 0
        Weights of the three terms.
    """
    n, k = H.shape
    gram = (H.T @ H / n - torch.eye(k).to(H)).square().sum()
    return (quantisation * (H - B).square().sum() / n + independence * gram + balance * H.mean(0).square().sum()) / 2


def decoder(B: Tensor, X: Tensor, ridge: float = 1e-5) -> tuple[Tensor, Tensor]:
    r"""Return the linear map (k, d) and offset (d,) that rebuild X from codes B best.

    .. math:: \arg\min_{D,c}\ \frac1n\|X-BD-\mathbf 1c^\top\|_F^2+\lambda_1\|D\|_F^2
    """
    bits, mean = B - B.mean(0), X.mean(0)
    gram = bits.T @ bits / len(B) + ridge * torch.eye(B.shape[1]).to(B)
    D = torch.linalg.solve(gram, bits.T @ (X - mean) / len(B))
    return D, mean - B.mean(0) @ D


def best_bits(B: Tensor, X: Tensor, H: Tensor, D: Tensor, quantisation: float = 0.05, sweeps: int = 10) -> Tensor:
    r"""Return codes of ±1, shape (n, k), that rebuild X and stay near H: one bit after the other, the others fixed.

    .. math:: \min_{B\in\{-1,1\}^{n\times k}}\ \|X-BD\|_F^2+\lambda_2\|H-B\|_F^2

    The decoder's offset is to be subtracted from X.
    """
    B, drive, gram = B.clone(), quantisation * H + X @ D.T, D @ D.T
    gram.fill_diagonal_(0)
    for _ in range(sweeps):
        for j in range(B.shape[1]):
            B[:, j] = signs(drive[:, j] - B @ gram[j])
    return B


class UHBNN(Network):
    r"""UH-BNN (Do et al., 2016): an autoencoder whose middle layer is binary, solved for in alternation.

    .. math:: h = W_3\,\sigma(W_2\,\sigma(W_1x+c_1)+c_2)+c_3, \qquad y_\mu = 1 \text{ iff } h_\mu > 0

    Codes begin as those of ITQ. The encoder learns to give them (:func:`~biohash_mini.hashers.autoencoder.bnn_loss`, by
    L-BFGS on all rows). A round then has three steps: the decoder that rebuilds the data from the codes
    (:func:`~biohash_mini.hashers.autoencoder.decoder`), the codes that suit decoder and encoder
    (:func:`~biohash_mini.hashers.autoencoder.best_bits`), and the encoder again.

    Parameters
    ----------
    hash_length : int in [1, d]
        Bits of a code (k).
    hidden : pair of int, optional
        Widths of the hidden layers, by default k + 74 and k + 14: 90 and 30 for 16 bits.
    quantisation, independence, balance : float >= 0
        Weights of the terms of the encoder's loss.
    weight_decay : float >= 0
        Weight of half the squared norm of the weights, those of the decoder too.
    n_rounds : int >= 0
        Rounds of the alternation.
    n_iterations : int >= 1
        Iterations of L-BFGS in a round.

    Attributes
    ----------
    weights1_, bias1_, weights2_, bias2_, weights_, bias_ : Tensor
        Learned weights and offsets of the three layers; ``weights_`` has shape (k, second width).
    scale_ : float
        Range of the training data, by which inputs are divided.
    losses_ : list of float
        The encoder's loss after every round.

    Notes
    -----
    Weights of the penalties, widths and starting codes are those of the authors' program (``balance`` is theirs times
    the number of digits that it learns from). It stops when a round no longer helps to find the nearest neighbours of a
    validation set, after 20 rounds at most, each of 400 iterations.
    """

    _squash = torch.sigmoid
    _wider = (74, 14)

    def __init__(
        self,
        hash_length: int = 16,
        *,
        hidden: tuple[int, int] | None = None,
        quantisation: float = 0.05,
        independence: float = 0.01,
        balance: float = 0.03,
        weight_decay: float = 1e-5,
        n_rounds: int = 1,
        n_iterations: int = 100,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.hidden = hidden
        self.quantisation = quantisation
        self.independence = independence
        self.balance = balance
        self.weight_decay = weight_decay
        self.n_rounds = n_rounds
        self.n_iterations = n_iterations
        self.verbose = verbose

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        first = ITQ(self.hash_length, center=False, seed=self.seed, device=str(X.device)).fit(X)
        B = signs(X @ first.weights_.T)
        self.scale_ = (X.max() - X.min()).item() or 1.0
        X = X / self.scale_
        layers, losses = self._start(X), []
        for round_ in tqdm(range(self.n_rounds + 1), unit="round", disable=not self.verbose):
            if round_:
                D, c = decoder(B, X, self.weight_decay)
                B = best_bits(B, X - c, self._outputs(X, layers).detach(), D, self.quantisation)
            losses.append(self._descend(layers, X, B))
            if self._told_to_stop(round_ + 1, losses[-1]):
                break
        self._keep(layers, losses)

    def _descend(self, layers: list[Tensor], X: Tensor, B: Tensor) -> float:
        given: dict[str, Any] = {"line_search_fn": "strong_wolfe", "tolerance_grad": 1e-9, "tolerance_change": 1e-12}
        optimizer = torch.optim.LBFGS(layers, max_iter=self.n_iterations, history_size=20, **given)

        def loss() -> Tensor:
            with torch.enable_grad():
                fit = bnn_loss(self._outputs(X, layers), B, self.quantisation, self.independence, self.balance)
                value = fit + self.weight_decay / 2 * sum(W.square().sum() for W in layers[::2])
                optimizer.zero_grad()
                value.backward()
            return value

        optimizer.step(loss)
        return loss().item()

    def _check_params(self) -> None:
        super()._check_params()
        require(self.n_iterations >= 1, f"n_iterations must be at least 1, got {self.n_iterations}")
