"""Hashes whose synapses learn by local competition: BioHash, and NaiveBioHash without the expansion."""

import math
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from tqdm.auto import tqdm

from ..inputs import as_matrix, centred, is_number, require, span, torch_device, unit_of
from ..plasticity import (
    Epoch,
    Reduction,
    Rows,
    Start,
    default_passes,
    row_norms,
    start_on_rows_,
    step_,
    train,
)
from .base import Hasher, products
from .stored import all_or_nothing

_SAMPLE = 1000  # rows that the scale of the data is taken from


class BioHash(Hasher):
    r"""Sparse codes from synapses learned by local competition (the paper, sec. 2.1).

    .. math:: y_\mu = 1 \text{ iff } \langle W_\mu, x\rangle_\mu \text{ is among the } k \text{ largest}

    Parameters
    ----------
    activity : float in (0, 1]
        Fraction of units on (a); fixes the number of units m = round(k / a).
    p : float >= 1
        Order of the norm.
    delta : float
        Strength of the anti-Hebbian update.
    anti_rank : int >= 2
        Rank of the unit that receives it, counted from 1; used only with ``delta``.
    reduction : {"max", "mean", "implicit"}
        How a minibatch moves the units, see :func:`~biohash_mini.plasticity.step_`.
    learning_rate : float > 0
        First learning rate; it falls linearly to zero over ``max_epochs``.
    relative_rate : bool
        Whether the rate is divided by the mean norm of the centred rows, so that it suits data of any scale.
    smooth : bool
        Whether the rate falls from minibatch to minibatch, rather than from epoch to epoch.
    max_epochs : int >= 1, optional
        Epochs of that schedule; by default 2 to 4, see :func:`~biohash_mini.plasticity.default_passes`.
    batch_size : int >= 1
        Rows of a minibatch.
    norm_tol : float
        Training ends after the first epoch whose mean row norm is below it; 0 runs the whole schedule.
    start : {"normal", "rows"}
        Where synapses start: at random, or on random rows of the data.
    init_norm : float > 0
        Norm of the synapses that start on rows.
    init_std : float > 0
        Standard deviation of the synapses that start at random. Large norms are no accident: a unit that has never won
        keeps its large norm and so wins soon. From small norms many units never win at all.

    Attributes
    ----------
    weights_ : Tensor of shape (m, d)
        Learned synapses, one row per unit.
    mean_ : Tensor of shape (d,)
        What is subtracted from every input.
    mean_norms_ : list of float
        Mean row norm after each epoch.
    n_samples_seen_ : int
        Rows that the mean was taken over.
    """

    sparse_codes = free_length = reads_minibatches = True
    learns = Hasher.learns + " mean_norms_ n_samples_seen_"
    n_samples_seen_: int

    def __init__(
        self,
        hash_length: int = 16,
        *,
        activity: float = 0.05,
        p: float = 2.0,
        delta: float = 0.0,
        anti_rank: int = 2,
        reduction: Reduction = "implicit",
        learning_rate: float = 0.5,
        relative_rate: bool = True,
        smooth: bool = True,
        max_epochs: int | None = None,
        batch_size: int = 100,
        norm_tol: float = 0.0,
        start: Start = "rows",
        init_norm: float = 3.0,
        init_std: float = 1.0,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(hash_length, center=center, seed=seed, device=device)
        self.activity = activity
        self.p = p
        self.delta = delta
        self.anti_rank = anti_rank
        self.reduction = reduction
        self.learning_rate = learning_rate
        self.relative_rate = relative_rate
        self.smooth = smooth
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.norm_tol = norm_tol
        self.start = start
        self.init_norm = init_norm
        self.init_std = init_std
        self.verbose = verbose

    @all_or_nothing
    def partial_fit(self, X: object, y: object = None) -> Self:
        """Learn from one more batch of a stream, shape (n, d), and return self; the first call starts afresh.

        The rows are taken in their order, in minibatches, once, at the constant rate ``learning_rate`` (a stream has
        no known end to anneal to), and are centred by the mean of all rows seen so far.
        """
        self._check_params()
        X, device = as_matrix(X), torch_device(self.device)
        X, d = X.to(device), X.shape[1]
        fresh = not self._is_fitted()
        if fresh:
            self._check_size(d)
            self.n_samples_seen_, self.n_features_in_, self.unit_ = 0, d, unit_of(span(X, center=False))
            self.mean_ = torch.zeros(d, device=device)
        words = f"X has {d} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
        require(d == self.n_features_in_, words)
        self.n_samples_seen_ += len(X)
        if self.center:
            gap = (X * self.unit_).mean(0) - self.mean_ * self.unit_
            self.mean_ = self.mean_ + gap * (len(X) / self.n_samples_seen_) / self.unit_
        X = centred(X, self.mean_, self.unit_)
        # steps are taken in place, and other hashers may share the synapses: so of a copy
        self.weights_ = self._initial_weights(X, self._generator()) if fresh else self.weights_.clone()
        rate = self._rate(X)
        for rows in X.split(int(self.batch_size)):
            step_(self.weights_, rows, rate, **self._rule())
        self.mean_norms_ = [row_norms(self.weights_, self.p).mean().item()]
        alive = 0 < self.mean_norms_[0] < math.inf
        require(alive, f"training diverges: lower the learning_rate, {self.learning_rate}")
        return self

    def _fit(self, X: Tensor, rng: torch.Generator) -> None:
        weights = self._initial_weights(X, rng)
        passes = self.max_epochs or default_passes(len(X), len(weights))
        with tqdm(total=passes, unit="epoch", disable=not self.verbose) as bar:

            def progress(epoch: Epoch) -> bool:
                bar.set_postfix(mean_norm=f"{epoch.mean_norm:.3f}")
                bar.update()
                return self._told_to_stop(epoch.number, epoch.mean_norm)

            schedule: dict[str, Any] = {"max_epochs": passes, "norm_tol": self.norm_tol, "smooth": self.smooth}
            schedule |= {"learning_rate": self._rate(X), "batch_size": int(self.batch_size), "progress": progress}
            learn = getattr(X, "train", partial(train, X))  # rows in several processes bring their own
            history = learn(weights, **self._rule(), **schedule, rng=rng)
        self.weights_, self.n_samples_seen_ = weights, len(X)
        self.mean_norms_ = [epoch.mean_norm for epoch in history]

    def _rule(self) -> dict[str, Any]:
        return {"p": self.p, "anti_rank": self.anti_rank, "delta": self.delta, "reduction": self.reduction}

    def _initial_weights(self, X: Rows, rng: torch.Generator) -> Tensor:
        """Return synapses, shape (m, d), at random or on rows."""
        shape = self._planned_units(), X.shape[1]
        if self.start == "normal":
            return (self.init_std * torch.randn(shape, generator=rng)).to(X.device)
        W = torch.empty(shape, device=X.device)
        start_on_rows_(W, X, self.init_norm, rng, self.p)
        return W

    def _rate(self, X: Rows) -> float:
        """Return the first learning rate for centred rows."""
        scale = row_norms(X[:_SAMPLE]).mean().item() if self.relative_rate else 1.0
        return self.learning_rate / (scale or 1.0)

    def _activations(self, X: Tensor) -> Tensor:
        return products(X, self.weights_, self.p)

    def _check_params(self) -> None:
        super()._check_params()
        require(is_number(self.delta), f"delta must be a finite number, got {self.delta!r}")
        require(
            not self.delta or 2 <= self.anti_rank <= self._planned_units(),
            f"anti_rank must lie between 2 and the number of units {self._planned_units()}, got {self.anti_rank}",
        )


class NaiveBioHash(BioHash):
    """The same learning with as many units as bits, and their signs for a code: BioHash without sparse expansion.

    Parameters are those of :class:`BioHash`, less ``activity``: m = ``hash_length``.
    """

    sparse_codes = free_length = False

    def __init__(
        self,
        hash_length: int = 16,
        *,
        p: float = 2.0,
        delta: float = 0.0,
        anti_rank: int = 2,
        reduction: Reduction = "implicit",
        learning_rate: float = 0.5,
        relative_rate: bool = True,
        smooth: bool = True,
        max_epochs: int | None = None,
        batch_size: int = 100,
        norm_tol: float = 0.0,
        start: Start = "rows",
        init_norm: float = 3.0,
        init_std: float = 1.0,
        center: bool = True,
        seed: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(
            hash_length,
            activity=1.0,
            p=p,
            delta=delta,
            anti_rank=anti_rank,
            reduction=reduction,
            learning_rate=learning_rate,
            relative_rate=relative_rate,
            smooth=smooth,
            max_epochs=max_epochs,
            batch_size=batch_size,
            norm_tol=norm_tol,
            start=start,
            init_norm=init_norm,
            init_std=init_std,
            center=center,
            seed=seed,
            device=device,
            verbose=verbose,
        )
