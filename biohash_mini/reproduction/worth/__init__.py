"""When a hash is worth it: quality, bits and time of the methods beside today's engines, and what lists of units touch.

Each *part* is one data set under one question. It measures in one process with one thread and appends what it finds to
``worth.jsonl``; a part of codes goes on where it stopped, one of lists is measured as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import faiss
import numba
import torch

from ..results import append, key_of, provenance, read
from . import lists, quality
from .sets import SETS

PARTS: dict[str, Callable[[str, set[tuple]], Iterator[dict]]] = {
    **{name: partial(quality.rows, name) for name in SETS},
    "lists-glove": partial(lists.rows, "glove"),
    "lists-patches": partial(lists.rows, "patches"),
}


def run(names: Sequence[str] = (), profile: str = "full", where: Path | None = None) -> int:
    """Measure what is missing of some parts, by default of all, append it to ``worth.jsonl``; return how many rows."""
    if unknown := set(names) - set(PARTS):
        raise ValueError(f"no part is called {', '.join(sorted(unknown))}; choose among {', '.join(PARTS)}")
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    done = {key_of(record) for record in read("worth", where)}
    added = 0
    for name in names or PARTS:
        for row in PARTS[name](profile, done):
            added += append("worth", {"profile": profile, "seed": 0, **row, **provenance("cpu")}, where)
            print(f"{row['method']:44} {row['hash_length']:>5} {row['value']:7.2f}", flush=True)
    return added
