"""Where training stands, in a file from which it goes on after a process was lost."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..storage import as_json, load_arrays, save_arrays
from .group import agree


class Checkpoint:
    """Where training stands, kept in a file: the synapses, the steps taken, the mean norm after each epoch.

    Parameters
    ----------
    path : path, optional
        The file; without one nothing is kept.
    settings : dict
        What the file must have been written with to be taken up again.
    seconds : float
        Time between two writings by process 0.
    """

    def __init__(self, path: str | os.PathLike | None, settings: dict[str, Any], seconds: float = 60.0) -> None:
        self.path, self.settings, self.seconds = path and Path(path), settings, seconds

    def resume(self, W: Tensor, rows: Any) -> None:
        """Set W in place to the synapses of the file that process 0 finds, if there is one, in all processes."""
        self.W, self.rows, self.steps, self.position, self.epoch = W, rows, 0, 0, 0
        self.norms: list[float] = []
        self.told, self.written = 0, time.monotonic()
        problem = ""
        if dist.get_rank() == 0 and self.path and self.path.is_file():
            try:
                self._read(self.path)
            except ValueError as error:
                problem = str(error)
        agree(problem, W.device)
        counts = torch.tensor([self.steps, len(self.norms)], device=W.device)
        dist.broadcast(counts, 0)
        norms = torch.zeros(int(counts[1]), dtype=torch.float64, device=W.device)
        norms[: len(self.norms)] = torch.tensor(self.norms, dtype=torch.float64)
        dist.broadcast(norms, 0)
        dist.broadcast(W, 0)
        self.steps, self.norms = int(counts[0]), norms.tolist()

    def _read(self, path: Path) -> None:
        arrays, about = load_arrays(path)
        W, steps, norms = arrays.get("weights", np.zeros(0)), about.get("steps"), about.get("norms")
        same = about.get("settings") == self._settings() and (W.shape, W.dtype) == (tuple(self.W.shape), np.float32)
        whole = type(steps) is int and steps >= 0 and isinstance(norms, list) and all(type(x) is float for x in norms)
        if not (same and whole and np.isfinite(W).all()):
            raise ValueError(f"{path} is the checkpoint of another training: remove it, or use another file")
        self.W.copy_(torch.from_numpy(W))
        self.steps, self.norms = steps, norms

    def _settings(self) -> dict[str, Any]:
        about = {**self.settings, "n": len(self.rows), "data": self.rows.checksum}
        return json.loads(json.dumps(about, default=as_json))

    def write(self) -> None:
        """Write the file."""
        arrays = {"weights": self.W.cpu().numpy()}
        save_arrays(self.path, arrays, settings=self._settings(), steps=self.steps, norms=self.norms)

    def is_next(self) -> bool:
        """Return whether the next step of the schedule is still to be taken."""
        if self.told:
            raise KeyboardInterrupt if self.told == signal.SIGINT else ConnectionError("the job was told to end")
        self.position += 1
        return self.position > self.steps

    def stepped(self) -> None:
        """Count a step that was taken, and write the file if it is time."""
        self.steps = self.position
        if self.path and dist.get_rank() == 0 and time.monotonic() - self.written >= self.seconds:
            self.write()
            self.written = time.monotonic()

    def norm(self, now: float) -> float:
        """Return the mean norm after the epoch that has ended, which for epochs before the file is the one in it."""
        self.epoch += 1
        if self.epoch > len(self.norms):
            self.norms.append(now)
        return self.norms[self.epoch - 1]

    @contextmanager
    def kept_on_failure(self) -> Iterator[None]:
        """Write the file when a process is lost or told to end; signals wait for the end of a step meanwhile."""
        mine = threading.current_thread() is threading.main_thread()
        kinds = (signal.SIGTERM, signal.SIGINT) if mine else ()
        before = [signal.signal(kind, lambda number, _: setattr(self, "told", number)) for kind in kinds]
        try:
            yield
        except (ConnectionError, KeyboardInterrupt) as error:
            kept = ""
            if self.path:
                self.write()
                kept = f"; {self.path} is kept, and the same command goes on from it"
            if isinstance(error, KeyboardInterrupt):
                raise
            raise ConnectionError(f"training ended at step {self.steps}: {error}{kept}") from error
        finally:
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)
