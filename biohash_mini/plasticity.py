r"""The learning rule of the paper (sec. 2.1): local competition between hidden units.

Letters: ``X`` (n, d) data, ``W`` (m, d) synapses, ``S`` (n, m) overlaps, ``g`` the gain by rank, ``r`` the rank of
the anti-Hebbian unit counted from 1.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, get_args

import torch
from torch import Tensor
from torch.nn.functional import hardshrink

from .inputs import require

Reduction = Literal["max", "mean", "implicit"]
Start = Literal["normal", "rows"]
Units = Tensor | None  # their numbers, or all of them, which need no copy
_UNITS = 256  # units that are started at a time
FAINT = 1e-20  # a synapse this weak is none: it would fade to denormal numbers, which processors multiply slowly


class Rows(Protocol):
    """Data that are read a minibatch at a time, such as a Tensor of shape (n, d)."""

    device: torch.device
    shape: Any

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Any, /) -> Tensor: ...


def _dual(W: Tensor, p: float) -> Tensor:
    r"""Return :math:`|W|^{p-2}W`, shape (m, d): the rows that a plain dot product needs to give the p-inner product."""
    return W if p == 2 else W.sign() * W.abs().pow(p - 1)


def overlaps(X: Tensor, W: Tensor, p: float = 2.0) -> Tensor:
    r"""Return the p-inner products of every row of X with every unit, shape (n, m).

    .. math:: \langle W_\mu, x\rangle_\mu = \sum_i |W_{\mu i}|^{p-2}\, W_{\mu i}\, x_i
    """
    return X @ _dual(W, p).T


def rank_gain(S: Tensor, anti_rank: int = 2, delta: float = 0.0) -> Tensor:
    r"""Return the gain of each unit for each sample, shape (n, m), eq. (2).

    .. math:: g_\mu = 1 \text{ at rank } 1, \qquad -\Delta \text{ at rank } r, \qquad 0 \text{ elsewhere}
    """
    _check_rank(S.shape[1], anti_rank, delta)
    order = S.topk(anti_rank if delta else 1, dim=1).indices  # (n, r), rank 1 first
    g = torch.zeros_like(S).scatter_(1, order[:, :1], 1.0)
    return g.scatter_(1, order[:, -1:], -delta) if delta else g


def _check_rank(m: int, anti_rank: int, delta: float) -> None:
    require(
        not delta or 2 <= anti_rank <= m, f"anti_rank must lie between 2 and the number of units {m}, got {anti_rank}"
    )


def plasticity_update(X: Tensor, W: Tensor, *, p: float = 2.0, anti_rank: int = 2, delta: float = 0.0) -> Tensor:
    r"""Return the sum over X of the right-hand side of eq. (1), shape (m, d).

    .. math:: \Delta W_\mu = \sum_x g_\mu(x)\,\bigl(x - \langle W_\mu, x\rangle_\mu W_\mu\bigr)

    This is the rule as one reads it. :func:`step_` computes the same sum for the units that moved only.
    """
    S = overlaps(X, W, p)  # (n, m)
    g = rank_gain(S, anti_rank, delta)  # (n, m)
    return g.T @ X - (g * S).sum(0)[:, None] * W  # (m, d)


def energy(X: Tensor, W: Tensor, *, p: float = 2.0, anti_rank: int = 2, delta: float = 0.0) -> Tensor:
    r"""Return the energy of eq. (3), a scalar, as a mean over the rows of X.

    .. math:: E = -\frac1n\sum_x\sum_\mu g_\mu(x)\,
              \frac{\langle W_\mu,x\rangle_\mu}{\langle W_\mu,W_\mu\rangle_\mu^{(p-1)/p}}
    """
    S = overlaps(X, W, p)
    g = rank_gain(S, anti_rank, delta)
    return -(g * S / row_norms(W, p).pow(p - 1)).sum(1).mean()


def row_norms(W: Tensor, p: float = 2.0) -> Tensor:
    r"""Return the p-norm of each unit, shape (m,): :math:`\langle W_\mu, W_\mu\rangle_\mu^{1/p}`."""
    return torch.linalg.vector_norm(W, ord=p, dim=1)


def start_on_rows_(W: Tensor, X: Rows, norm: float, rng: torch.Generator, p: float = 2.0) -> None:
    """Set every unit of W (m, d) in place on a random row of X, scaled to ``norm``; no row serves two units.

    A unit that gets no row, or a row of zeros, starts in a random direction. Like large random synapses, a norm above
    one makes a unit that has not won yet win soon.
    """
    rows = torch.randperm(len(X), generator=rng)[: len(W)]
    W[len(rows) :] = 0
    for first, part in zip(range(0, len(rows), _UNITS), rows.split(_UNITS), strict=True):
        W[first : first + len(part)] = X[part.to(X.device)]
    blank = row_norms(W, p) == 0
    W[blank] = torch.randn(int(blank.sum()), W.shape[1], generator=rng).to(W)
    W.mul_((norm / row_norms(W, p))[:, None])


def step_(
    W: Tensor,
    X: Tensor,
    lr: float,
    *,
    p: float = 2.0,
    anti_rank: int = 2,
    delta: float = 0.0,
    reduction: Reduction = "max",
) -> None:
    r"""Move W in place by one minibatch: :math:`W \leftarrow W + \epsilon\,\Delta W / \max|\Delta W|`.

    The maximum runs over all synapses; Krotov and Hopfield scale the same rule so. The paper does not print how a
    minibatch is reduced. The natural reading is the mean: each unit's :math:`\Delta W_\mu` is divided by the number of
    samples that moved it. It diverges where :math:`\epsilon\bar s > 2`; the implicit step, which is the mean step
    solved for its end point, never does:

    .. math:: W_\mu \leftarrow \frac{W_\mu + \epsilon\,\bar x_\mu}{1 + \epsilon\,[\bar s_\mu]_+}

    with means of samples and overlaps over the samples that moved the unit.

    Notes
    -----
    At most b winners (and b anti-Hebbian units) move. Each sample adds to a ``place`` that it shares with all samples
    of its unit: the unit's own where there are no more units than samples, else one among the b (or 2b), and a unit
    that appears twice is written twice with the same value. Fixed shapes, no sort, no synchronisation with the device.
    """
    known = get_args(Reduction)
    require(reduction in known, f"reduction must be one of {', '.join(known)}, got {reduction!r}")
    if not len(X):
        return
    moved, x, s = pulls(X, W, p=p, anti_rank=anti_rank, delta=delta)
    if len(W) <= len(moved):  # all units are moved, those without a sample by nothing
        move_(W, None, None, *sums(x, s, moved, len(W)), lr, reduction)
        return
    numbers = torch.arange(len(moved), device=W.device)
    place = moved.new_empty(len(W)).index_copy_(0, moved, numbers).index_select(0, moved)
    move_(W, moved, place, *sums(x, s, place, len(moved)), lr, reduction)  # only places in use are read


def pulls(X: Tensor, W: Tensor, *, p: float, anti_rank: int, delta: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the unit that each row of X moves (b,), and its gain times the row (b, d) and times their overlap (b, 1).

    With ``delta`` there are 2b of each: those of the winners, then those of the anti-Hebbian units.
    """
    S = overlaps(X, W, p)  # (b, m)
    s, moved = S.max(1)
    if delta:
        _check_rank(len(W), anti_rank, delta)
        other, units = S.topk(anti_rank, dim=1)
        moved = torch.cat([moved, units[:, -1]])  # (2b,)
        X, s = torch.cat([X, -delta * X]), torch.cat([s, -delta * other[:, -1]])
    return moved, X, s[:, None]


def sums(x: Tensor, s: Tensor, place: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each of ``size`` places the sum of the rows x (size, d) and of s (size, 1) there, and their count."""
    x, s, count = (v.new_zeros(size, v.shape[1]).index_add_(0, place, v) for v in (x, s, torch.ones_like(s)))
    return x, s, count


def move_(
    W: Tensor, moved: Units, place: Units, x: Tensor, s: Tensor, count: Tensor, lr: float, reduction: Reduction
) -> None:
    """Move the units ``moved`` of W in place, as in :func:`step_`, each by the :func:`sums` at its ``place``.

    Synapses on inputs that never vary only shrink. What falls below ``FAINT`` is set to zero.
    """
    rows = W if moved is None else W.index_select(0, moved)
    count = count.clamp_min(1)  # without a sample, a unit stays where it is
    if reduction == "implicit":
        rows.add_(x.div_(count), alpha=lr).div_(1 + lr * (s / count).clamp_min(0))
    else:
        update = x.addcmul_(s, rows, value=-1)
        scale = update.abs().max().clamp_min(torch.finfo(W.dtype).tiny) if reduction == "max" else count
        rows.add_(update.div_(scale), alpha=lr)
    rows = hardshrink(rows, FAINT)
    W.copy_(rows) if moved is None else W.index_copy_(0, moved, rows.index_select(0, place))


def annealed(learning_rate: float, epoch: float, max_epochs: int) -> float:
    r"""Return the learning rate after t epochs: :math:`\epsilon_t=\epsilon_0\,(1-t/T_{\max})`."""
    return learning_rate * (1 - epoch / max_epochs)


def default_passes(n: int, m: int, least: int = 2) -> int:
    """Return how many passes over n rows m units take: 4, and down to ``least`` where each has few rows to learn from.

    There further passes teach a unit its few rows by heart, and are the ones that cost most.
    """
    return min(4, max(least, round(n / (10 * m))))


class Epoch(NamedTuple):
    """Where training stands after an epoch: its number from 1, the learning rate used, the mean p-norm of the units."""

    number: int
    learning_rate: float
    mean_norm: float


def train(
    X: Rows,
    W: Tensor,
    *,
    p: float = 2.0,
    anti_rank: int = 2,
    delta: float = 0.0,
    reduction: Reduction = "max",
    learning_rate: float = 2e-2,
    max_epochs: int = 100,
    batch_size: int = 100,
    norm_tol: float = 1.06,
    smooth: bool = False,
    rng: torch.Generator,
    progress: Callable[[Epoch], bool | None] = lambda epoch: None,
) -> list[Epoch]:
    """Train W (m, d) in place on the rows of X and return the history of its epochs.

    Stops after the first epoch whose mean row norm is below ``norm_tol`` (the paper: 1.06), or after ``max_epochs``.
    The learning rate falls from epoch to epoch, or with ``smooth`` from minibatch to minibatch, to end at zero.
    The rows are shuffled by ``rng`` before each epoch; ``progress`` is called after each; True ends it.
    """

    def step(rows: Tensor, lr: float) -> None:
        x = X.index_select(0, rows.to(X.device)) if isinstance(X, Tensor) else X[rows]
        step_(W, x, lr, p=p, anti_rank=anti_rank, delta=delta, reduction=reduction)

    return anneal(
        step,
        lambda: row_norms(W, p).mean().item(),
        len(X),
        learning_rate=learning_rate,
        max_epochs=max_epochs,
        batch_size=batch_size,
        norm_tol=norm_tol,
        smooth=smooth,
        rng=rng,
        progress=progress,
    )


def anneal(
    step: Callable[[Tensor, float], None],
    mean_norm: Callable[[], float],
    n: int,
    *,
    learning_rate: float,
    max_epochs: int,
    batch_size: int,
    norm_tol: float,
    smooth: bool = False,
    rng: torch.Generator,
    progress: Callable[[Epoch], bool | None] = lambda epoch: None,
) -> list[Epoch]:
    """Call ``step(rows, lr)`` for every minibatch of n rows in every epoch, and return the history of the epochs.

    This is the schedule of :func:`train`, for any way to hold the synapses; ``mean_norm`` gives the mean norm of their
    rows.
    """
    history: list[Epoch] = []
    for t in range(max_epochs):
        batches = torch.randperm(n, generator=rng).split(batch_size)
        for i, rows in enumerate(batches):
            step(rows, annealed(learning_rate, t + smooth * i / len(batches), max_epochs))
        history.append(Epoch(t + 1, annealed(learning_rate, t, max_epochs), mean_norm()))
        stop = progress(history[-1])
        if not 0 < history[-1].mean_norm < math.inf:  # infinite, NaN or, with a high norm order, all synapses gone
            raise ValueError(f"training diverges: lower the learning_rate, {learning_rate}")
        if stop or history[-1].mean_norm < norm_tol:
            break
    return history
