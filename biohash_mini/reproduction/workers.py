"""Processes that work side by side and end with the one that started them, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection


@contextmanager
def pool(workers: int, prepare: Callable[..., None], *given: object) -> Iterator[ProcessPoolExecutor]:
    """Yield an executor of so many new processes, in each of which ``prepare(*given)`` is called first.

    They hold one end of a pipe, and this process alone holds the other. An exception in the block closes it, and the
    death of this process does so too, ``kill -9`` included. Then they end at once, and what was queued is not begun.
    """
    started = multiprocessing.get_context("spawn")
    theirs, ours = started.Pipe(duplex=False)
    with theirs, ProcessPoolExecutor(workers, started, _begin, (theirs, prepare, given)) as executor, ours:
        try:
            yield executor
        except BrokenProcessPool as error:
            raise RuntimeError("a worker was ended from outside, perhaps because memory ran out") from error
        executor.shutdown()


def _begin(line: Connection, prepare: Callable[..., None], given: tuple) -> None:
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches all; whether work ends is for the first one to say
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()
    prepare(*given)


def _end_with(line: Connection) -> None:
    line.poll(None)  # nothing is ever sent, so this waits for the end
    os._exit(1)
