"""A file of vectors hashed by all processes of a job that torchrun started."""

import os
import sys
from pathlib import Path

import numpy as np

from ..codes import Codes
from ..hashers import Hasher
from .group import gather, process_group, share
from .training import fit


def fit_and_encode(hasher: Hasher, X: np.ndarray, checkpoint: Path, seconds: float) -> Codes | None:
    """Return the codes of X (n, d) in process 0, and None in the others; the hasher is fitted to X in all of them.

    X is the whole matrix, as a mapped file: each process reads its ``share`` of it. The checkpoint is removed once
    its training has ended. An error that all processes have is raised in the first; the others leave without a word.
    """
    with process_group(hasher.device) as device:
        first = os.environ["RANK"] == "0"
        hasher.set_params(device=device, verbose=sys.stderr.isatty() and first)
        try:
            rows = X[share(len(X))]
            fit(hasher, rows, checkpoint=checkpoint, seconds=seconds)
        except ValueError:
            if not first:
                sys.exit(2)
            raise
        codes = gather(hasher.encode(rows))
    if first:
        checkpoint.unlink(missing_ok=True)
    return codes
