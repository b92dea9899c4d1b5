"""Codes that are brought into a database, Milvus Lite in the folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from biohash_mini import HammingIndex
from biohash_mini.codes import SparseCodes
from biohash_mini.milvus import MilvusIndex

COUNT = 1500


@cache
def codes() -> SparseCodes:
    """Return codes, 8 of 320 units on."""
    rng = np.random.default_rng(0)
    return SparseCodes(rng.integers(0, 40, (COUNT, 8)) + 40 * np.arange(8), 320)


def export(folder: Path, tell: Callable[[object], None]) -> None:
    """Insert the codes, 30 at a time."""
    with MilvusIndex(folder / "codes.db") as index:
        index.insert(codes(), model="stress", batch_size=30)
    tell("done")


def content(folder: Path) -> list[tuple[int, list[int]]]:
    """Return all items, number and units, in the order of their numbers."""
    with MilvusIndex(folder / "codes.db") as index:
        if not len(index):
            return []
        items = index.client.query("codes", filter="id >= 0", output_fields=["id", "units"], limit=2 * COUNT)
    return sorted((item["id"], sorted(item["units"])) for item in items)


def wrong(folder: Path, told: list[str]) -> str:
    """Return what is wrong with a database: each item is there once, as it was, and after the end all are found."""
    if not (folder / "codes.db").exists():
        return "the database is gone" if told else ""
    items = content(folder)
    numbers = [number for number, _ in items]
    if len(set(numbers)) < len(numbers):
        return "codes are there twice"
    if other := [number for number, units in items if units != codes().active[number].tolist()]:
        return f"codes {other[:5]} are not as they were"
    if not told:
        return ""
    with MilvusIndex(folder / "codes.db") as index:
        found = index.search(codes()[::300], COUNT)[0]
    same = np.array_equal(found, HammingIndex(codes()).search(codes()[::300], COUNT)[0])
    return "" if numbers == list(range(COUNT)) and same else f"{len(numbers)} of {COUNT} codes are there"
