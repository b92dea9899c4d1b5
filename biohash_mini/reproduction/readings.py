"""The readings of the score in tables 7 and 8.

Ten thousand word vectors are the database, and each in turn is the query; the truth is its nearest vectors. Printed is
mAP@100. What fits the printed numbers is another score: the query stands in the truth and in the list, and the average
runs over the first ten places only. A record holds both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

import numpy as np

from ..codes import Codes
from ..metrics import Divisor, Truth, mean_average_precision
from .measure import percent


@dataclass(frozen=True)
class Reading:
    """One way to read "mAP@100, the truth is the nearest neighbours in the database"."""

    at: int = 100  #: how many retrieved words are judged
    query: bool = True  #: whether the query is one of its own neighbours and retrieved, or in neither list
    divisor: Divisor = "retrieved"  #: what AP divides by, the hits or as many as could be, min(at, relevant)
    relevant: int = 100  #: how many neighbours are relevant

    @property
    def name(self) -> str:
        """The reading in words."""
        divisor = "the hits" if self.divisor == "retrieved" else min(self.at, self.relevant)
        return f"first {self.at}, divided by {divisor}, query {'kept' if self.query else 'left out'}"

    def given(self, near: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
        """Return the arguments that make :func:`~biohash_mini.metrics.mean_average_precision` follow this reading.

        ``near``, shape (q, more than ``relevant``), has the nearest rows of the database for each query, nearest first,
        itself among them; ``rows``, shape (q,), are the rows of the database that are the queries.
        """
        if near.shape[1] <= self.relevant:
            raise ValueError(f"{self.relevant} neighbours besides the query are needed, got {near.shape[1] - 1}")
        if self.query:
            truth = Truth.of_neighbours(near[:, : self.relevant])
        else:  # what is left out is not relevant either
            truth = Truth.of_neighbours(near[:, : self.relevant + 1], exclude=rows)
        return {"truth": truth, "at": self.at, "divisor": self.divisor}


#: The reading that fits tables 7 and 8, and the one that their caption and the paper's formula of AP spell out.
FITTED, LITERAL = Reading(10, True, "relevant"), Reading(100, False, "retrieved")
#: The readings that a record compares.
READINGS = tuple(Reading(at, kept, by) for at, kept, by in product((100, 10), (False, True), get_args(Divisor)))


def score_readings(
    codes: Codes, near: np.ndarray, rows: np.ndarray, readings: tuple[Reading, ...] = READINGS
) -> dict[str, float]:
    """Return mAP in percent under each reading, by its name, where these rows of the database are the queries."""
    return {r.name: percent(mean_average_precision(codes[rows], codes, **r.given(near, rows))) for r in readings}
