"""What declarations have in common: rows with the settings of their data, tasks with their metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ...hashers import METHODS
from .. import protocols, scores
from ..experiment import LENGTHS, Row
from ..settings import MAX_STEP, ON_DATA, PRINTED, RANDOM_LAYER, RIVALS, settings

TO_32, TO_16 = LENGTHS[:-1], LENGTHS[:-2]
CLASSES: dict[str, Any] = {"task": protocols.retrieval_task, "metric": scores.class_map}
AT_1000: dict[str, Any] = {"task": protocols.retrieval_task, "metric": partial(scores.class_map, at=1000)}
ACTIVITIES = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2)


def declared(label: str, data: str, method: str = "", params: dict[str, Any] | None = None, **more: Any) -> Row:
    """Return a row on a data set, with the settings of its method there, which ``params`` override."""
    method = method or label
    return Row(label, method, {**settings(method, data), **(params or {})}, data=data, **more)


def compared(
    data: str, *also: Row, images: bool = False, changes: dict[str, dict] | None = None
) -> Callable[[], tuple[Row, ...]]:
    """Return a function that gives a row to every method that is no rival, then the further rows.

    ``changes`` are fields of single rows. Methods that take images stand only in tables on ``images``.
    """

    def rows() -> tuple[Row, ...]:
        names = [name for name, kind in METHODS.items() if name not in RIVALS and (images or not kind.takes_images)]
        found = [declared(name, data) for name in names]
        found += [started_on_data("BioHash", data), *also, *first_edition(*found)]
        return tuple(replace(row, **(changes or {}).get(row.label, {})) for row in found)

    return rows


def started_on_data(label: str, data: str, **more: Any) -> Row:
    """Return the row of a method that learns as the library does, not as the paper prints."""
    return declared(f"{label}, started on data", data, label, ON_DATA, **more)


def first_edition(*rows: Row) -> tuple[Row, ...]:
    """Return those of the rows that the first edition trained otherwise, as archived rows: by the max step, most."""

    def archive(row: Row, how: str, params: dict[str, Any]) -> Row:
        return replace(row, label=f"{row.label}, {how}", params={**row.params, **params}, archived=True)

    return tuple(
        archive(row, "random layer", RANDOM_LAYER)
        if row.method == "BioConvHash"
        else archive(row, "max step", MAX_STEP)
        for row in rows
        if row.method == "BioConvHash" or PRINTED.keys() <= row.params.keys()
    )


def by_activity(data: str, activities: tuple[float, ...]) -> tuple[Row, ...]:
    """Return a row of BioHash, started on data, for each activity."""
    rows = [declared(f"a={100 * a:g}%", data, "BioHash", {**ON_DATA, "activity": a}) for a in activities]
    return (*rows, *first_edition(*rows))
