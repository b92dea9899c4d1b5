"""How fast ours is beside its peers: ratios of seconds in one run, each peer in a process of its own.

Every process does the same work with the same threads, the best of a few repeats. Ratios are what is claimed; seconds
are shown beside them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..results import append, provenance, read
from . import search, training

PARTS = {
    "sparse": search.sparse,
    "dense": search.dense,
    "evaluation": search.evaluation,
    "floors": training.floors,
    "convolution": training.convolution,
    "threads": training.by_threads,
    "race": training.race,
}


def ratio_of(took: Mapping[str, Any], short: Sequence[str] = ()) -> float | None:
    """Return the seconds of the fastest peer over ours, None without a peer.

    Peers that stopped ``short`` of the goal do not count; if all did, the ratio is one that it would at least be.
    """
    peers = {who: s for who, s in took.items() if who != "ours" and s is not None}
    there = [s for who, s in peers.items() if who not in short]
    return min(there or peers.values()) / took["ours"] if peers else None


def measure(
    parts: Sequence[str] = (), *, quick: bool = False, sizes: Sequence = (), threads: int = 0
) -> Iterator[dict]:
    """Yield the rows of the benchmark: what, n, k, m, call, seconds of all, ratio (``value``), target, if it holds.

    The ratio is that of the fastest peer's seconds to ours, see :func:`ratio_of`.
    """
    if unknown := set(parts) - set(PARTS):
        raise ValueError(f"no part of the benchmark is called {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    threads = threads or os.cpu_count() or 1
    for name in parts or PARTS:
        part = partial(search.sparse, sizes=sizes) if name == "sparse" and sizes else PARTS[name]
        for row in part(quick, threads):
            ratio = ratio_of(row["took"], row.get("not reached", ()))
            holds = None if None in (ratio, row["target"]) else ratio >= row["target"]
            yield {**row, "threads": threads, "value": ratio, "holds": holds}


def _show(row: dict) -> str:
    """Return one line of the table."""
    times = [f"{who} {1e3 * s:.3g}" if s else f"{who} missing" for who, s in row["took"].items()]
    times += [f"not reached by {', '.join(row['not reached'])}"] if row.get("not reached") else []
    ratio = "     -" if row["value"] is None else f"{row['value']:6.2f}"
    word = {True: "holds", False: "FAILS", None: "no target" if row["value"] else "no peer"}[row["holds"]]
    target = f"{row['target']:6.2f}" if row["target"] else "     -"
    size = f"{row['n']:>9,} {row['k']:>4} {row['m']:>5}"
    return f"{row['what']:24} {size} {row['call']:10} {ratio} {target} {word:9} {', '.join(times)}"


def run(
    parts: Sequence[str] = (),
    *,
    quick: bool = False,
    sizes: Sequence = (),
    threads: int = 0,
    where: Path | None = None,
) -> list[dict]:
    """Return the rows of :func:`measure`, printed one by one and appended to ``bench.jsonl`` with their provenance."""
    number = 1 + max((record["seed"] for record in read("bench", where)), default=-1)
    versions = {}
    for name in search.PEERS.values():
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            print(f'{name} is not installed: pip install "biohash-mini[bench]"')
    print(f"{'what':24} {'n':>9} {'k':>4} {'m':>5} {'call':10} {'ratio':>6} {'target':>6} {'':9} milliseconds")
    rows = []
    for row in measure(parts, quick=quick, sizes=sizes, threads=threads):
        rows.append(row)
        print(_show(row), flush=True)
        if row["value"] is None:  # no peer here to compare with
            continue
        method = f"{row['what']}, n = {row['n']}, m = {row['m']}, {row['call']}"
        key = {"profile": "mini" if quick else "full", "method": method, "hash_length": row["k"], "seed": number}
        append("bench", {**key, **provenance("cpu"), **row, "peers": versions}, where)
    held = [row["holds"] for row in rows if row["holds"] is not None]
    print(f"{sum(held)} of {len(held)} targets hold; {len(rows) - len(held)} rows have no peer here or no target")
    return rows
