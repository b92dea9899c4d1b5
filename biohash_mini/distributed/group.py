"""What processes say to each other: sums, problems, codes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..codes import Codes, concatenate
from ..inputs import require, torch_device

_WORDS = 400  # bytes of a message between processes


def all_reduce(t: Tensor, op: Any = dist.ReduceOp.SUM) -> Tensor:
    """Return t, in place the sum (or what ``op`` says) over all processes; ConnectionError if one of them is gone."""
    try:
        dist.all_reduce(t, op)
    except RuntimeError as error:
        raise ConnectionError("another process was lost") from error
    return t


def share(n: int) -> slice:
    """Return the rows of n that this process holds: runs of nearly equal length, in the order of the processes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    require(n >= size, f"{n} rows cannot be shared by {size} processes: each needs one")
    return slice(n * rank // size, n * (rank + 1) // size)


def agree(problem: str, device: torch.device) -> None:
    """Raise ValueError in all processes if one of them has a problem, in its words."""
    words = torch.zeros(dist.get_world_size(), _WORDS, dtype=torch.uint8, device=device)
    own = torch.tensor(list(problem.encode()[:_WORDS]), dtype=torch.uint8, device=device)
    words[dist.get_rank(), : len(own)] = own
    for line in all_reduce(words).cpu().numpy():
        require(not line.any(), line[line > 0].tobytes().decode(errors="ignore"))


@contextmanager
def process_group(device: str = "auto") -> Iterator[str]:
    """Join the processes that torchrun started, for the length of a block; yield the device of this one.

    Each process of a machine takes a graphics card of its own, and nccl connects them; gloo connects processors.
    """
    cards = torch_device(device).type == "cuda"
    place = f"cuda:{os.environ['LOCAL_RANK']}" if cards else "cpu"
    if cards:
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if cards else "gloo")
    try:
        yield place
    finally:
        dist.destroy_process_group()


def gather(codes: Codes) -> Codes | None:
    """Return the codes of all processes, one below the other, in process 0, and None in the others."""
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    counts = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=device)
    counts[dist.get_rank()] = len(codes)
    all_reduce(counts)
    own = torch.from_numpy(np.ascontiguousarray(codes.array).view(np.uint8)).to(
        device
    )  # bytes, which all backends know
    if dist.get_rank():
        dist.send(own, 0)
        return None
    parts = [codes]
    for source, n in enumerate(counts.tolist()[1:], 1):
        part = own.new_empty(n, own.shape[1])
        dist.recv(part, source)
        parts.append(codes._like(part.cpu().numpy().view(codes.array.dtype)))
    return concatenate(parts)
