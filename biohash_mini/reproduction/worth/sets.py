"""What is learned from, searched and asked: vectors whose nearness is Euclidean, their neighbours, their classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...datasets import load, nearest

SETS = ("mnist", "cifar10", "cifar10-alexnet", "glove", "sentences")
DIRECTIONS = ("cifar10-alexnet", "glove", "sentences")  # compared by angle: rows get the norm 1
SAMPLED = ("cifar10-alexnet",)  # of which the embedded sample is all that is used
TRAIN, HELD, ASKED, NEIGHBOURS = 10_000, 300, 500, 10


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows to search, the queries, and the two truths: the ten nearest rows, and labels where there are any."""

    database: np.ndarray  #: float32 (n, d)
    queries: np.ndarray  #: float32 (q, d)
    truth: np.ndarray  #: (q, 10), row numbers of the nearest
    labels: tuple[np.ndarray, np.ndarray] | None = None  #: of queries (q,) and database (n,)
    sha256: str = ""


@dataclass(frozen=True, eq=False)
class Task:
    """What the queries ask, and the validation split by which parameters are chosen, which never sees them."""

    test: Asked
    validation: Asked  #: held-out rows of the database, asked of the rows that are learned from

    @property
    def train(self) -> np.ndarray:
        """The rows of the database that every method learns from, shape (t, d)."""
        return self.validation.database


def asked(X: np.ndarray, rows: np.ndarray, queries: np.ndarray, labels: np.ndarray | None, sha256: str) -> Asked:
    """Return the task of finding neighbours of some rows of X (n, d), and their classes, among other rows."""
    D, Q = X[rows], X[queries]
    both = None if labels is None else (labels[queries], labels[rows])
    return Asked(D, Q, nearest(Q, D, NEIGHBOURS), both, sha256)


def split(X: np.ndarray, labels: np.ndarray | None = None, sha256: str = "") -> Task:
    """Return a task on the rows of X (n, d): random queries, a tenth at most; the rest is searched, a part learned."""
    order = np.random.default_rng(0).permutation(len(X))
    q = min(ASKED, len(X) // 10)
    queries, rows = order[:q], np.sort(order[q:])
    held, train = order[q : q + HELD], order[q + HELD : q + HELD + TRAIN]
    return Task(asked(X, rows, queries, labels, sha256), asked(X, train, held, labels, sha256))


def vectors(name: str, profile: str) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Return the rows of a data set, (n, d) float32, its labels, if any, and its checksum.

    The photographs are halved, so that a pixel is the mean of four; rows that are compared by angle get the norm 1.
    """
    data = load(name, "mini" if name in SAMPLED else profile)
    X = data.vectors()
    if name == "cifar10":
        X = X.reshape(-1, 3, 16, 2, 16, 2).mean((3, 5)).reshape(len(X), -1)
    if name in DIRECTIONS:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, data.labels, data.sha256


def task(name: str, profile: str) -> Task:
    """Return the task of a data set."""
    return split(*vectors(name, profile))


def patches(profile: str, side: int = 6) -> np.ndarray:
    """Return square patches of CIFAR-10's photographs, drawn at random, (n, 3 side²) float32: a million in full."""
    images = load("cifar10", profile).X.reshape(-1, 3, 32, 32)
    rng, n = np.random.default_rng(0), 1_000_000 if profile == "full" else 20_000
    which, top, left = rng.integers(0, len(images), n), *rng.integers(0, 33 - side, (2, n))
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), (2, 3))  # (images, 3, 27, 27, 6, 6)
    out = np.empty((n, 3 * side * side), np.float32)
    for i in range(0, n, 50_000):
        rows = slice(i, i + 50_000)
        out[rows] = windows[which[rows], :, top[rows], left[rows]].reshape(len(which[rows]), -1) / np.float32(255)
    return out
