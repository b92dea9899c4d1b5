"""What is timed, in a process of its own: two libraries that both start threads would slow each other down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

_LEAST = 0.2  # seconds that a call is repeated for
_THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def best_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the seconds of the fastest of some calls, after one that compiles and warms caches.

    Calls are repeated for a fifth of a second at least: one of a few microseconds would be told by chance.
    """
    call()
    taken: list[float] = []
    while len(taken) < repeats or sum(taken) < _LEAST:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def apart(module: str, function: str, threads: int, **arguments: Any) -> Any:
    """Return what a function of a module returns in a new process with so many threads; both are passed as JSON."""
    settings = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
    command = [sys.executable, "-m", __name__, module, function, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=settings)
    if done.returncode:
        about = " ".join(str(value) for value in arguments.values() if isinstance(value, str))
        raise OSError(f"{function} of {about} could not be measured: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps(getattr(import_module(sys.argv[1]), sys.argv[2])(**json.loads(sys.argv[3]))))
