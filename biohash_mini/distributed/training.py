"""Rows that lie in several processes, the step that these take together, and the fit."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..hashers import BioHash, Hasher
from ..inputs import ReadRows, as_matrix, as_rows, forget, require, span, torch_device, unit_of
from ..plasticity import Epoch, Reduction, anneal, move_, pulls, row_norms, sums
from .checkpoint import Checkpoint
from .group import agree, all_reduce

_BLOCK = 1 << 23  # values that are looked at together: 32 MB of float32


def step_(
    W: Tensor, X: Tensor, places: Tensor, size: int, lr: float, *, delta: float, reduction: Reduction, **rule: Any
) -> None:
    r"""Move W in place by one minibatch of ``size`` rows, as :func:`biohash_mini.plasticity.step_` does.

    X (b, d) are the rows that this process holds, and ``places`` (b,) their places in the minibatch. The ``rule`` is
    that of :func:`~biohash_mini.plasticity.pulls`: p and anti_rank.

    Notes
    -----
    What is sent is the sums of all units (m, d + 2), or where a minibatch has fewer rows than there are units, the
    numbers of the winners and the sums of these alone: whatever is smaller. Of the places that the samples of a unit
    could share, all processes choose the first.
    """
    own, x, s = pulls(X, W, delta=delta, **rule)
    if len(W) <= size:
        moved = place = torch.arange(len(W), device=W.device)
        total = torch.cat(sums(x, s, own, len(W)), 1)  # (m, d + 2)
    else:
        places = torch.cat([places, size + places]) if delta else places
        moved = own.new_zeros(2 * size if delta else size).index_copy_(0, places, own)
        all_reduce(moved)
        numbers = torch.arange(len(moved), device=W.device)
        first = moved.new_full((len(W),), len(moved)).scatter_reduce_(0, moved, numbers, "amin")
        place = first.index_select(0, moved)
        total = torch.cat(sums(x, s, place.index_select(0, places), len(moved)), 1)  # (b or 2b, d + 2)
    x, s, count = all_reduce(total).split([X.shape[1], 1, 1], 1)
    move_(W, moved, place, x, s, count, lr, reduction)


class SharedRows(ReadRows):
    """Rows (n, d) that lie in several processes, less their mean: ``rows[numbers]`` is the same in all of them.

    Every process calls it with the rows that it holds, at least one; laid one below the other in the order of the
    processes these are the n rows. A mapped file stays on the disk. All processes must read, and train, together.
    """

    def __init__(self, X: object, center: bool, device: torch.device, checkpoint: Checkpoint) -> None:
        own = as_rows(X)
        self.device, self.checkpoint = device, checkpoint
        counts = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=device)
        counts[dist.get_rank()] = len(own)
        ends = all_reduce(counts).cumsum(0).tolist()
        widest = int(all_reduce(torch.tensor(own.shape[1], device=device), dist.ReduceOp.MAX))
        agree("" if own.shape[1] == widest else f"rows of {own.shape[1]} and of {widest} numbers are no matrix", device)
        self.shape = ends[-1], widest
        self.first = ends[dist.get_rank()] - len(own)
        total, low, high, self.checksum = self._look(own)
        self.span = span(torch.stack([low, high]), center)
        mean = total / len(self) if center else torch.zeros_like(total)
        self.mean, self.unit = mean.to(torch.float32), unit_of(self.span)
        self.own = own if isinstance(own, np.memmap) else self._centred(as_matrix(own))

    def _look(self, own: Any) -> tuple[Tensor, Tensor, Tensor, int]:
        """Return sum, smallest and largest entry of every column over all processes; all raise if one has to.

        Fourth comes a checksum of the rows and their order, of integers, which wrap: it is the same in however many
        processes they lie.
        """
        step, problem = max(1, _BLOCK // self.shape[1]), ""
        check, columns = torch.zeros(1, dtype=torch.int64), 2 * torch.arange(self.shape[1]) + 1
        total = torch.zeros(self.shape[1], dtype=torch.float64)
        low, high = torch.full_like(total, torch.inf), torch.full_like(total, -torch.inf)
        try:
            for start in range(0, len(own), step):
                part = as_matrix(own[start : start + step], self.first + start)
                numbers = 2 * torch.arange(self.first + start, self.first + start + len(part)) + 1
                check += ((part.view(torch.int32) * columns).sum(1) * numbers).sum()
                part = part.double()
                total, low, high = total + part.sum(0), low.minimum(part.amin(0)), high.maximum(part.amax(0))
                forget(own)
        except ValueError as error:
            problem = str(error)
        agree(problem, self.device)
        sides = all_reduce(torch.stack([-low, high]).to(self.device), dist.ReduceOp.MAX)
        check = all_reduce(check.to(self.device))
        return all_reduce(total.to(self.device)), -sides[0], sides[1], int(check)

    def _centred(self, rows: Tensor) -> Tensor:
        return rows.to(self.device) * self.unit - self.mean * self.unit

    def __len__(self) -> int:
        return self.shape[0]

    def held(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return those of the numbered rows that this process holds, shape (b, d), and their places among all (b,)."""
        end = self.first + len(self.own)
        places = ((self.first <= numbers) & (numbers < end)).nonzero()[:, 0]
        chosen = numbers[places] - self.first
        if isinstance(self.own, Tensor):
            rows = self.own[chosen.to(self.device)]
        else:
            rows = self._centred(torch.from_numpy(self.own[chosen.numpy()].astype(np.float32)))
            forget(self.own)
        return rows, places.to(self.device)

    def __getitem__(self, numbers: Tensor | slice) -> Tensor:
        numbers = torch.arange(len(self))[numbers] if isinstance(numbers, slice) else numbers.cpu()
        rows, places = self.held(numbers)
        return all_reduce(torch.zeros(len(numbers), self.shape[1], device=self.device).index_copy_(0, places, rows))

    def train(
        self, W: Tensor, *, rng: torch.Generator, progress: Callable[[Epoch], bool | None], p: float, **given: Any
    ) -> list[Epoch]:
        """Train W (m, d) in place, in all processes alike, and return the history of its epochs.

        After a checkpoint the schedule is run through from its beginning, because the shuffles of ``rng`` must be, but
        steps that were taken are not taken again.
        """
        rule = {name: given.pop(name) for name in ("anti_rank", "delta", "reduction")}
        saved = self.checkpoint
        saved.resume(W, self)

        def step(numbers: Tensor, lr: float) -> None:
            if saved.is_next():
                step_(W, *self.held(numbers), len(numbers), lr, p=p, **rule)
                saved.stepped()

        with saved.kept_on_failure():
            return anneal(
                step, lambda: saved.norm(row_norms(W, p).mean().item()), len(self), rng=rng, progress=progress, **given
            )


def fit(hasher: Hasher, X: object, *, checkpoint: str | os.PathLike | None = None, seconds: float = 60.0) -> Hasher:
    """Return the hasher, fitted in every process to the rows of all of them, shape (n, d), see :class:`SharedRows`.

    The result is that of ``hasher.fit`` of all rows in one process, up to the rounding of sums. Process 0 writes where
    training stands to the file ``checkpoint`` every so many seconds; when a process is lost, those that are left write
    it and raise ConnectionError. Called again, also in another number of processes, training goes on from there.
    """
    require(isinstance(hasher, BioHash), f"{type(hasher).__name__} does not learn in several processes; BioHash does")
    hasher._check_params()
    params = {name: v for name, v in hasher.get_params().items() if name not in ("device", "verbose")}
    rows = SharedRows(X, hasher.center, torch_device(hasher.device), Checkpoint(checkpoint, params, seconds))
    return hasher.fit_layer(rows)
