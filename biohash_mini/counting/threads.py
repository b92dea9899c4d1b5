"""Work shared among threads: the compiled loops let go of the interpreter, so Python's own threads are enough.

Small work stays in the thread of the caller, which so never waits for another: a service asks for one code at a time.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numba import get_num_threads


def shares(total: int, least: int) -> list[tuple[int, int]]:
    """Return the bounds of equal parts of a range, each of ``least`` or more: four per thread, to end together."""
    threads = get_num_threads()
    parts = max(1, min(4 * threads, total // least)) if threads > 1 else 1
    return [(total * i // parts, total * (i + 1) // parts) for i in range(parts)]


def share(work: Callable[[int, int], Any], parts: list[tuple[int, int]]) -> list[Any]:
    """Return ``work(first, last)`` of all parts, in their order."""
    if len(parts) <= 1:
        return [work(*part) for part in parts]
    with ThreadPoolExecutor(min(len(parts), get_num_threads())) as pool:
        return list(pool.map(lambda part: work(*part), parts))
