"""Words: how tables 7 and 8 are measured, and the readings of their score.

Ten thousand word vectors are the database, and each in turn is the query; the truth is its nearest vectors. Printed is
mAP@100. What fits the printed numbers is another score: the query stands in the truth and in the list, and the average
runs over the first ten places only. A record holds both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from .codes import Codes
from .datasets import Task, load, nearest
from .measures import Cell, hash_task, in_percent, make_hasher
from .metrics import Divisor, mean_average_precision, tie_bounds

if TYPE_CHECKING:
    from .tables import Experiment


@dataclass(frozen=True)
class Reading:
    """One way to read "mAP@100, the truth is the nearest neighbours in the database".

    Parameters
    ----------
    at : int >= 1
        How many retrieved words are judged.
    query : bool
        Whether the query is one of its own neighbours and is retrieved; if not, it is in neither list.
    divisor : {"retrieved", "relevant"}
        What AP divides by: the relevant words retrieved, or as many as could be, min(at, relevant).
    relevant : int >= 1
        How many neighbours are relevant.
    """

    at: int = 100
    query: bool = True
    divisor: Divisor = "retrieved"
    relevant: int = 100

    @property
    def name(self) -> str:
        """The reading in words."""
        divisor = "the hits" if self.divisor == "retrieved" else min(self.at, self.relevant)
        return f"first {self.at}, divided by {divisor}, query {'kept' if self.query else 'left out'}"

    def given(self, near: np.ndarray, rows: np.ndarray) -> dict:
        """Return the arguments that make :func:`~biohash_mini.metrics.mean_average_precision` follow this reading.

        Parameters
        ----------
        near : array (q, more than ``relevant``)
            The nearest rows of the database for each query, nearest first, the query itself among them.
        rows : array (q,)
            The rows of the database that are the queries.
        """
        if near.shape[1] <= self.relevant:
            raise ValueError(f"{self.relevant} neighbours besides the query are needed, got {near.shape[1] - 1}")
        given = {"at": self.at, "divisor": self.divisor}
        if self.query:
            return given | {"neighbours": near[:, : self.relevant]}
        return given | {"neighbours": near[:, : self.relevant + 1], "exclude": rows}  # excluded is not relevant either


#: The reading that fits tables 7 and 8, and the one that their caption and the paper's formula of AP spell out.
FITTED, LITERAL = Reading(10, True, "relevant"), Reading(100, False, "retrieved")
#: The readings that a record compares.
READINGS = tuple(Reading(*choice) for choice in product((100, 10), (False, True), ("retrieved", "relevant")))


@lru_cache(maxsize=1)
def word_task(data: str, profile: str, seed: int) -> Task:
    """Return the random partition of a seed into words to learn from and words to search; the last one is kept."""
    return load(data, profile).word_task(seed=seed)


@lru_cache(maxsize=2)
def word_truth(data: str, profile: str, seed: int, metric: str) -> np.ndarray:
    """Return the 101 nearest words of each word of the database, nearest first, shape (n, 101): itself and 100 more."""
    task = word_task(data, profile, seed)
    return nearest(task.queries, task.database, 101, metric)


@lru_cache(maxsize=1)
def word_codes(data: str, profile: str, method: str, hash_length: int, seed: int) -> tuple[Codes, dict]:
    """Return the codes of the database and what they took; the last ones are kept, so a second truth needs no fit."""
    h = hash_task(make_hasher(method, hash_length, seed, data), word_task(data, profile, seed))
    return h.database, h.facts


def word_neighbours(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP under the reading that fits the paper's tables, and beside it under others.

    The name of the experiment ends in the distance that makes the truth. ``literal`` is mAP@100 as printed, with its
    bounds over tie orders; ``readings`` holds all readings, expected over ties, for every tenth query.
    """
    codes, facts = word_codes(exp.data, profile, *cell)
    near = word_truth(exp.data, profile, cell.seed, exp.name.rpartition("-")[2])
    rows = np.arange(len(codes))
    scores = in_percent(*tie_bounds(codes, codes, **FITTED.given(near, rows)))
    literal = in_percent(*tie_bounds(codes, codes, **LITERAL.given(near, rows)))
    scores |= {"literal": literal["value"], "literal_best": literal["best"], "literal_worst": literal["worst"]}
    scores["readings"] = score_readings(codes, near[::10], rows[::10])
    return {cell.method: scores | facts}


def score_readings(
    codes: Codes, near: np.ndarray, rows: np.ndarray, readings: tuple[Reading, ...] = READINGS
) -> dict[str, float]:
    """Return mAP in percent under each reading, by its name, where these rows of the database are the queries."""
    scores = {r.name: mean_average_precision(codes[rows], codes, **r.given(near, rows)) for r in readings}
    return {name: round(100 * score, 4) for name, score in scores.items()}


#: When BioHash ends its training on words, after the epochs of a schedule or by the norm of the units.
SCHEDULES: dict[str, dict] = {
    "stop at mean norm 1.06": {"norm_tol": 1.06, "max_epochs": 100},
    "30 epochs, annealed to rate zero": {"norm_tol": 0.0, "max_epochs": 30},
    "100 epochs, annealed to rate zero": {"norm_tol": 0.0, "max_epochs": 100},
}


def validation_schedule(exp: Experiment, cell: Cell, profile: str) -> dict[str, dict]:
    """Return mAP of BioHash with the schedule that the row names, on the words to learn from; ``cosine`` likewise.

    A quarter of them is searched, the others train. The words of the tables' databases take no part.
    """
    task = validation_task(word_task(exp.data, profile, cell.seed), cell.seed)
    hasher = make_hasher("BioHash", cell.hash_length, cell.seed, exp.data).set_params(**SCHEDULES[cell.method])
    h = hash_task(hasher, task)
    near = {metric: nearest(task.queries, task.database, 101, metric) for metric in ("euclidean", "cosine")}
    rows = np.arange(len(task.database))
    scores = in_percent(*tie_bounds(h.queries, h.database, **FITTED.given(near["euclidean"], rows)))
    cosine = mean_average_precision(h.queries, h.database, **FITTED.given(near["cosine"], rows))
    return {cell.method: scores | {"cosine": round(100 * cosine, 4)} | h.facts}


def validation_task(task: Task, seed: int) -> Task:
    """Return the task to choose by: a random quarter of the rows to learn from is searched, the other rows train."""
    order = np.random.default_rng(seed).permutation(len(task.train))
    searched, rest = np.split(order, [len(order) // 4])
    words = task.train[searched]
    return replace(task, database=words, queries=words, train=task.train[rest], database_ids=None, query_ids=None)
