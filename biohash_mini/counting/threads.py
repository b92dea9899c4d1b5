"""Work shared among threads: the compiled loops let go of the interpreter, so Python's own threads are enough.

Small work stays in the thread of the caller, which so never waits for another: a service asks for one code at a time.
"""

from collections.abc import Callable
from threading import Thread
from typing import Any

from numba import get_num_threads


def shares(total: int, least: int) -> list[tuple[int, int]]:
    """Return the bounds of equal parts of a range, each of ``least`` or more: four per thread, to end together."""
    if total < 2 * least:
        return [(0, total)]
    threads = get_num_threads()
    parts = min(4 * threads, total // least) if threads > 1 else 1
    return [(total * i // parts, total * (i + 1) // parts) for i in range(parts)]


def share(work: Callable[[int, int], Any], parts: list[tuple[int, int]]) -> list[Any]:
    """Return ``work(first, last)`` of all parts, in their order; the caller works too, beside one thread fewer."""
    done: list[Any] = [None] * len(parts)
    failed: list[BaseException] = []
    numbers = iter(range(len(parts)))  # what is left to do, for all threads

    def run() -> None:
        try:
            for i in numbers:
                done[i] = work(*parts[i])
        except BaseException as error:
            failed.append(error)
            for _ in numbers:  # nothing more is begun
                pass

    others = [Thread(target=run) for _ in range(min(len(parts), get_num_threads()) - 1)]
    for thread in others:
        thread.start()
    run()
    for thread in others:
        thread.join()
    if failed:
        raise failed[0]
    return done
