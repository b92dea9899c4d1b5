"""Choices that the paper leaves open, each as a variant of a method on MNIST, so that its effect can be measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from .codes import Codes
from .datasets import Task
from .hashers import Hasher
from .measures import Cell, hash_task, in_percent, make_hasher, retrieval_task
from .metrics import average_precision, mean_average_precision, tie_bounds
from .plasticity import row_norms

if TYPE_CHECKING:
    from .tables import Experiment


@dataclass(frozen=True)
class Choice:
    """One departure from the defaults.

    Parameters
    ----------
    method : str
        The method whose default is left.
    what : str
        The departure in a few words.
    params : dict
        Parameters of the hasher.
    inputs : callable (rows (n, d), database) -> array (n, d)
        What is done to queries and database before the method sees them.
    amend : callable hasher -> None
        What is done to the fitted hasher.
    """

    method: str
    what: str
    params: dict = field(default_factory=dict)
    inputs: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda X, database: X
    amend: Callable[[Hasher], None] = lambda hasher: None

    @property
    def row(self) -> str:
        """The name of its row."""
        return f"{self.method}: {self.what}"


def _unit(X: np.ndarray, database: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def _less_one_number(X: np.ndarray, database: np.ndarray) -> np.ndarray:
    return X - database.mean()


def _rank_by_direction(hasher: Hasher) -> None:
    hasher.weights_ /= row_norms(hasher.weights_)[:, None]


def _gaussian_synapses(hasher: Hasher) -> None:
    rng = torch.Generator().manual_seed(hasher.seed)
    hasher.weights_ *= torch.randn(hasher.weights_.shape, generator=rng)


CHOICES: dict[str, Choice] = {
    choice.row: choice
    for choice in (
        Choice("BioHash", "as in the tables"),
        Choice("BioHash", "30 epochs, annealed to rate zero", {"norm_tol": 0.0, "max_epochs": 30}),
        Choice("BioHash", "stop at mean norm 1.01", {"norm_tol": 1.01}),
        Choice("BioHash", "learning rate 0.005", {"learning_rate": 5e-3}),
        Choice("BioHash", "pixels from 0 to 255", inputs=lambda X, database: X * np.float32(255)),
        Choice("BioHash", "not centred", {"center": False}),
        Choice("BioHash", "centred by one number", {"center": False}, _less_one_number),
        Choice("BioHash", "mean step", {"reduction": "mean"}),
        Choice("BioHash", "mean step, one number", {"center": False, "reduction": "mean"}, _less_one_number),
        Choice("BioHash", "unit vectors, then centred", inputs=_unit),
        Choice("BioHash", "delta 0.1", {"delta": 0.1}),
        Choice("BioHash", "delta 0.4", {"delta": 0.4}),
        Choice("BioHash", "p = 3", {"p": 3.0}),
        Choice("BioHash", "minibatches of 10", {"batch_size": 10}),
        Choice("BioHash", "minibatches of 1000", {"batch_size": 1000}),
        Choice("BioHash", "codes ranked by direction", amend=_rank_by_direction),
        Choice("BioHash", "synapses start with norm 1", {"init_std": 784**-0.5}),
        Choice("FlyHash", "as in the tables"),
        Choice("FlyHash", "centred", {"center": True}),
        Choice("FlyHash", "Gaussian synapses", amend=_gaussian_synapses),
        Choice("FlyHash", "m = d", {"expansion": 1}),
        Choice("FlyHash", "unit vectors", inputs=_unit),
        Choice("NaiveBioHash", "as in the tables"),
        Choice("NaiveBioHash", "not centred", {"center": False}),
        Choice("NaiveBioHash", "30 epochs, annealed to rate zero", {"norm_tol": 0.0, "max_epochs": 30}),
        Choice("SH", "as in the tables"),
        Choice("SH", "minimum to maximum", {"percentile": 0.0}),
        Choice("LSH", "as in the tables"),
        Choice("LSH", "not centred", {"center": False}),
        Choice("PCAHash", "as in the tables"),
        Choice("PCAHash", "not centred", {"center": False}),
        Choice("ITQ", "as in the tables"),
    )
}

#: The rows that together come nearest to the paper's on MNIST; they are measured at every hash length.
READINGS = tuple(f"BioHash: {what}" for what in ("centred by one number", "mean step", "mean step, one number"))


def measure(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP of a method with one choice made otherwise, on the queries of the tables, and under tie orders."""
    choice = CHOICES[cell.method]
    task = retrieval_task(exp.data, profile, cell.seed)
    queries, database = (choice.inputs(X, task.database) for X in (task.queries, task.database))
    task = replace(task, database=database, queries=queries, train=None)
    hasher = make_hasher(choice.method, cell.hash_length, cell.seed, exp.data).set_params(**choice.params)
    h = hash_task(hasher, task, choice.amend)
    scores = tie_bounds(h.queries, h.database, task.query_labels, task.database_labels, exp.at)
    return {cell.method: in_percent(*scores) | {"tie_orders": tie_orders(h.queries, h.database, task)} | h.facts}


def tie_orders(queries: Codes, database: Codes, task: Task) -> dict[str, float]:
    """Return mAP in percent for the orders inside ties that common code would produce."""
    by_class = np.argsort(task.database_labels, kind="stable")
    labels = task.database_labels[by_class]

    def by_numpy() -> float:
        """Return mAP when ties fall as numpy's default sort, which is not stable, leaves them."""
        D = queries.hamming(database[by_class]).astype(np.int64)
        relevant = (labels[np.argsort(row)] == label for row, label in zip(D, task.query_labels, strict=True))
        return np.mean([average_precision(np.arange(len(labels)), r)[0] for r in relevant])

    def in_order(database: Codes, labels: np.ndarray) -> float:
        return mean_average_precision(queries, database, task.query_labels, labels, ties="index")

    found = {
        "database order": in_order(database, task.database_labels),
        "sorted by class, stable sort": in_order(database[by_class], labels),
        "sorted by class, numpy's default sort": by_numpy(),
    }
    return {name: round(100 * value, 4) for name, value in found.items()}
