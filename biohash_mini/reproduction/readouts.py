"""Linear read-outs of codes: their accuracy, with few labels, and when classes come one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.linalg import solve
from torch.nn.functional import cross_entropy

from ..uses import AssociativeReadout
from .measure import Outcome, percent
from .scores import Fields

Features = Any  # an array or a CSR matrix, (n, m)
SHOTS = (1, 2, 5, 10, 20, 50)
ALPHAS = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Sums:
    """What ridge regression needs of the items it has seen: sums, so that their order does not matter."""

    gram: np.ndarray  #: (m, m)
    targets: np.ndarray  #: (m, classes)

    @classmethod
    def of(cls, features: Features, labels: np.ndarray, classes: int) -> Sums:
        """Return the sums over rows of features (n, m)."""
        one_hot = np.eye(classes, dtype=np.float32)[labels]
        F = features.astype(np.float32)
        gram = F.T @ F
        return cls(gram if isinstance(gram, np.ndarray) else gram.toarray(), F.T @ one_hot)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.gram + other.gram, self.targets + other.targets)

    def weights(self, alpha: float) -> np.ndarray:
        """Return the weights of least squared error with penalty alpha, shape (m, classes)."""
        A = self.gram.astype(np.float64)
        A.flat[:: len(A) + 1] += alpha
        return solve(A, self.targets, assume_a="pos", check_finite=False, overwrite_a=True).astype(np.float32)


def ridge_weights(features: Features, labels: np.ndarray, classes: int, seed: int = 0) -> np.ndarray:
    """Return weights (m, classes) whose penalty was chosen on a tenth of the rows, then fitted on all."""
    held = np.random.default_rng(seed).random(len(labels)) < 0.1
    rest, last = (Sums.of(features[rows], labels[rows], classes) for rows in (~held, held))
    right = [((features[held] @ rest.weights(a)).argmax(1) == labels[held]).mean() for a in ALPHAS]
    return (rest + last).weights(ALPHAS[int(np.argmax(right))])


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of rows, in %, whose largest score (n, classes) is that of their label."""
    return percent((scores.argmax(1) == labels).mean())


def read_out(found: Outcome) -> Fields:
    """Return the accuracy in % of a linear read-out of the codes by ridge regression, and that by counting."""
    (A, y), (B, z) = _labelled(found)
    classes = int(y.max()) + 1
    value = accuracy(B.to_matrix() @ ridge_weights(A.to_matrix(), y, classes, found.seed), z)
    return {"value": value, "counting": accuracy(AssociativeReadout().learn(A, y).scores(B), z)}


def before_the_code(found: Outcome, at: int = 16) -> Fields:
    """Return, at one hash length, the accuracy of ridge regression on pixels, on activations, and on their ReLU."""
    if found.hash_length != at:
        return {}
    W, mean = found.hasher.weights_.cpu().numpy(), found.hasher.mean_.cpu().numpy()
    (_, y), (_, z) = _labelled(found)
    X, Q = found.task.database - found.task.database.mean(0), found.task.queries - found.task.database.mean(0)
    S, T = ((rows - mean) @ W.T for rows in (found.task.database, found.task.queries))
    scale = S.std()
    kinds = {"pixels": (X, Q), "activations": (S / scale, T / scale)}
    kinds["rectified"] = tuple(np.maximum(part, 0) for part in kinds["activations"])
    with_one = {name: [np.column_stack([part, np.ones(len(part))]) for part in parts] for name, parts in kinds.items()}
    classes = int(y.max()) + 1
    return {name: accuracy(Q @ ridge_weights(X, y, classes, found.seed), z) for name, (X, Q) in with_one.items()}


def few_shots(found: Outcome, at: int = 16, draws: int = 5) -> Fields:
    """Return, at one hash length, the mean accuracy of read-outs that see a few labels of each class."""
    if found.hash_length != at:
        return {}
    (A, y), (B, z) = _labelled(found)
    rng = np.random.default_rng(found.seed)
    X, Q, classes = found.task.database, found.task.queries, int(y.max()) + 1
    fields: dict[str, dict[str, float]] = {}
    for shots in (n for n in SHOTS if n <= np.bincount(y).min()):
        scores: dict[str, list[float]] = {}
        for _ in range(draws):
            rows = np.concatenate([rng.choice(np.flatnonzero(y == c), shots, replace=False) for c in range(classes)])
            few, labels = X[rows], y[rows]
            far = (few**2).sum(1) - 2 * Q @ few.T  # (q, shots classes)
            means = np.stack([few[labels == c].mean(0) for c in range(classes)])
            shared = B.to_matrix().astype(np.float32) @ A[rows].to_matrix().astype(np.float32).T
            found_by = {
                "codes, counting": AssociativeReadout().learn(A[rows], labels).scores(B),
                "codes, nearest": np.eye(classes)[labels[shared.toarray().argmax(1)]],
                "pixels, class means": 2 * Q @ means.T - (means**2).sum(1),
                "pixels, nearest": np.eye(classes)[labels[far.argmin(1)]],
            }
            for name, values in found_by.items():
                scores.setdefault(name, []).append(accuracy(values, z))
        fields[str(shots)] = {name: round(float(np.mean(values)), 2) for name, values in scores.items()}
    return {"few_shots": fields}


def one_by_one(found: Outcome, at: int = 16) -> Fields:
    """Return, at one hash length, the accuracy over the classes seen so far as they come one by one."""
    if found.hash_length != at:
        return {}
    (A, y), (B, z) = _labelled(found)
    order = np.random.default_rng(found.seed).permutation(int(y.max()) + 1)
    mean = found.task.database.mean(0)
    pixels = (found.task.database - mean, y, found.task.queries - mean, z)
    bits = (A.to_matrix().astype(np.float32), y, B.to_matrix().astype(np.float32), z)
    codes = {"codes, counting": by_counting(A, y, B, z, order), "codes, sums": by_sums(*bits, order)}
    means = {"pixels, class means": by_means(*pixels, order)}
    descent = {
        "pixels, gradient": by_gradient(*pixels, order, hidden=0, seed=found.seed),
        "pixels, network": by_gradient(*pixels, order, hidden=256, seed=found.seed),
    }
    return {"one_by_one": codes | means | descent, "order": order.tolist()}


def by_counting(A: Any, y: np.ndarray, B: Any, z: np.ndarray, order: np.ndarray) -> list[float]:
    """Return the accuracies over classes seen so far of a read-out that counts, from codes A and B."""
    model, line = AssociativeReadout(), []
    for step, c in enumerate(order):
        seen = np.isin(z, order[: step + 1])
        model.learn(A[y == c], y[y == c])
        line.append(accuracy(model.scores(B[seen]), z[seen]))
    return line


def by_sums(
    X: Features, y: np.ndarray, Q: Features, z: np.ndarray, order: np.ndarray, alpha: float = 10.0
) -> list[float]:
    """Return those of ridge regression from sums that each class adds to."""
    m = X.shape[1]
    sums, line = Sums(np.zeros((m, m), np.float32), np.zeros((m, len(order)), np.float32)), []
    for step, c in enumerate(order):
        sums += Sums.of(X[y == c], y[y == c], len(order))
        known = np.sort(order[: step + 1])
        seen = np.isin(z, known)
        line.append(accuracy((Q[seen] @ sums.weights(alpha))[:, known], np.searchsorted(known, z[seen])))
    return line


def by_means(X: np.ndarray, y: np.ndarray, Q: np.ndarray, z: np.ndarray, order: np.ndarray) -> list[float]:
    """Return those of the nearest class mean."""
    means, line = np.zeros((len(order), X.shape[1])), []
    for step, c in enumerate(order):
        means[c] = X[y == c].mean(0)
        known = np.sort(order[: step + 1])
        seen = np.isin(z, known)
        scores = 2 * Q[seen] @ means[known].T - (means[known] ** 2).sum(1)
        line.append(accuracy(scores, np.searchsorted(known, z[seen])))
    return line


def by_gradient(
    X: np.ndarray,
    y: np.ndarray,
    Q: np.ndarray,
    z: np.ndarray,
    order: np.ndarray,
    hidden: int,
    seed: int,
    passes: int = 5,
) -> list[float]:
    """Return those of a linear read-out, or one of a ``hidden`` layer, that Adam trains on one class after another."""
    torch.manual_seed(seed)  # of this process's own models
    sizes = (X.shape[1], *([hidden] if hidden else []), len(order))
    layers = [layer for a, b in pairwise(sizes) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers[:-1])
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs, line = torch.from_numpy(X), []
    for step, c in enumerate(order):
        rows = torch.from_numpy(np.flatnonzero(y == c))
        for batch in torch.cat([rows[torch.randperm(len(rows))] for _ in range(passes)]).split(50):
            adam.zero_grad()
            cross_entropy(model(inputs[batch]), torch.full((len(batch),), int(c))).backward()
            adam.step()
        seen = np.isin(z, order[: step + 1])
        with torch.no_grad():
            line.append(accuracy(model(torch.from_numpy(Q[seen])).numpy(), z[seen]))
    return line


def _labelled(found: Outcome) -> tuple[tuple[Any, np.ndarray], tuple[Any, np.ndarray]]:
    """Return the codes and labels of what is learned from, and of what is asked."""
    labels = found.task.database_labels, found.task.query_labels
    if labels[0] is None or labels[1] is None:
        raise ValueError("a read-out needs a task with labels")
    return (found.database, labels[0].astype(int)), (found.queries, labels[1].astype(int))
