"""Kill -9 at random moments, and what is left after each."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

from . import Tally, jobs
from .jobs import STAGES, Stage

LATE = ["pooch", "requests", "papermill", "pymilvus", "milvus_lite.adapter.grpc.server"]  # imported where they are used
LONGEST = 120  # seconds that any work may take


def processes() -> multiprocessing.context.ForkServerContext:
    """Return where processes are started: copies of one that has imported everything, and done nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tools.stress.jobs", *LATE])
    return context


def start(work: Callable[..., None], *given: object) -> BaseProcess:
    """Start work in a process of its own."""
    process = processes().Process(target=work, args=given)
    process.start()
    return process


def begin(stage: Stage, folder: Path) -> BaseProcess:
    """Start the work of a stage."""
    return start(jobs.perform, stage.name, folder, folder.with_suffix(".told"), os.environ["STRESS_SERVER"])


def finish(process: BaseProcess) -> str:
    """Wait for a process, and return what is wrong with its end."""
    process.join(LONGEST)
    if process.exitcode is None:
        process.kill()
        process.join()
        return "it hangs"
    return "" if process.exitcode == 0 else f"it ended with {process.exitcode}"


def problem(check: Callable[..., object], *given: object) -> str:
    """Return what a check found, its exception and warnings included."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return str(check(*given) or "")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _begins(told: Path) -> int:
    return told.read_text().splitlines().count("begun") if told.exists() else 0


def _await_begin(told: Path, before: int, process: BaseProcess) -> float:
    """Wait until work has begun once more, and return when that was."""
    while process.is_alive() and _begins(told) == before:
        time.sleep(0.002)
    return time.perf_counter()


def _told(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line != "begun"] if path.exists() else []


def killed(stage: Stage, count: int, rng: random.Random) -> Tally:
    """Return how often the work of a stage was killed, and how often nothing was lost or broken by that."""
    tally = Tally("faults", f"kill -9: {stage.name}")
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        whole.mkdir()
        first = begin(stage, whole)
        began = _await_begin(whole.with_suffix(".told"), 0, first)
        if wrong := finish(first):
            tally.count(f"undisturbed: {wrong}")
            return tally
        seconds, want = time.perf_counter() - began, stage.state(whole)
        for folder in _folders(Path(place)):
            told = folder.with_suffix(".told")
            while tally.tried < count:
                before = _begins(told)
                process = begin(stage, folder)
                _await_begin(told, before, process)
                process.join(seconds * rng.random())
                process.kill()
                process.join()
                if process.exitcode != -signal.SIGKILL:  # it was done before
                    break
                tally.count(problem(stage.check, folder, _told(told)))
            wrong = finish(begin(stage, folder)) or problem(stage.check, folder, _told(told))
            if wrong or stage.state(folder) != want:
                tally.problems.append(f"begun again, it does not end as the undisturbed one: {wrong}")
                tally.held -= 1
            if tally.tried >= count:
                return tally
    return tally


def _folders(place: Path) -> Iterator[Path]:
    number = 0
    while True:
        (folder := place / f"try{number}").mkdir()
        yield folder
        number += 1


def campaign(short: bool, seed: int = 0) -> Iterator[Tally]:
    """Yield the tally of every stage."""
    rng = random.Random(seed)
    with jobs.server():
        for stage in STAGES:
            if count := stage.short if short else stage.kills:
                yield killed(stage, count, rng)
