"""The results explorer: paper and ours, cell by cell, for every experiment."""

from collections.abc import Iterable
from html import escape

from traitlets import Bool, Dict, List, Unicode

from ..reproduction import report
from ..reproduction.declarations import EXPERIMENTS
from ..reproduction.paper import TABLES
from ..reproduction.plots import row_colors
from .base import HERE, Widget, module, svg

FIELDS = ("method", "hash_length", "paper", "ours", "sd", "seeds", "worst", "best", "verdict", "reason")


class ResultsExplorer(Widget):
    """The paper's value and ours for each method and hash length, with the bounds over tie orders as whiskers.

    In JupyterLab a button reads the recorded results anew, so that a run can be watched.

    Parameters
    ----------
    cells : iterable of dict, optional
        Cells as :func:`biohash_mini.reproduction.report.cells` yields them, which it does by default. Those that were
        not measured are shown as missing.

    Attributes
    ----------
    experiment : str
        Name of the experiment on show.
    hidden : list of str
        Methods that are switched off.
    bounds : bool
        Whether to draw the whiskers; without them the scale follows the values.
    cell : list of method and hash length, or empty
        The cell whose numbers are spelt out.
    """

    _esm = module("explorer.js")
    _css = Widget._css + (HERE / "explorer.css").read_text("utf-8")
    sentence = (
        "Ours (dots) with the bounds over tie orders as whiskers, and the paper's values (diamonds), by hash length. "
        "With scripts on, any experiment can be chosen, and the exact numbers of each cell read."
    )
    experiments = List(Dict()).tag(sync=True)
    fields = List(Unicode(), list(FIELDS)).tag(sync=True)
    experiment = Unicode().tag(sync=True)
    hidden = List(Unicode()).tag(sync=True)
    bounds = Bool(True).tag(sync=True)
    cell: List = List().tag(sync=True)

    def __init__(self, cells: Iterable[dict] | None = None, **traits: object) -> None:
        experiments = gather(report.cells() if cells is None else cells)
        super().__init__(**{"experiments": experiments, "experiment": experiments[0]["name"]} | traits)
        self.on_msg(self._on_message)

    def _on_message(self, _: object, content: dict, buffers: object) -> None:
        """Read the results of the experiments that the book has anew."""
        anew = {e["name"]: e for e in gather(report.cells())}
        self.experiments = [anew.get(e["name"], e) for e in self.experiments]

    def picture(self) -> str:
        """Return the chosen experiment as a still SVG."""
        (shown,) = (e for e in self.experiments if e["name"] == self.experiment)
        rows = [dict(zip(FIELDS, cell, strict=True)) for cell in shown["cells"]]
        count, lengths = len(shown["methods"]), shown["lengths"]
        values = [v for c in rows for v in (c["paper"], c["ours"], c["best"]) if v is not None]
        top, width = max(values, default=1) or 1, 300 / len(lengths)
        marks = []
        for c in rows:
            i = c["method"]
            x = width * (lengths.index(c["hash_length"]) + 0.1 + 0.8 * (i + 0.5) / count)
            y = {f: 155 - 150 * c[f] / top for f in ("paper", "ours", "worst", "best") if c[f] is not None}
            color = escape(shown["methods"][i]["color"])
            if {"worst", "best"} <= set(y):
                marks.append(f'<path d="M{x:.1f},{y["worst"]:.1f}V{y["best"]:.1f}" stroke="{color}" opacity=".5"/>')
            if "ours" in y:
                marks.append(f'<circle cx="{x:.1f}" cy="{y["ours"]:.1f}" r="2" fill="{color}"/>')
            if "paper" in y:
                d = f"M{x:.1f},{y['paper'] - 3:.1f}l3,3l-3,3l-3,-3z"
                marks.append(f'<path d="{d}" fill="none" stroke="{color}"/>')
        for j, k in enumerate(lengths):
            style = 'font-size="8" text-anchor="middle" fill="currentColor"'
            marks.append(f'<text x="{width * (j + 0.5):.1f}" y="167" {style}>k = {escape(str(k))}</text>')
        return svg("0 0 300 170", '<path d="M0,156H300" stroke="currentColor"/>', *marks)


def gather(cells: Iterable[dict]) -> list[dict]:
    """Return the cells by experiment, each with its title, metric, methods and colours, hash lengths and values.

    A cell has the numbers of its method and its reason among those of the experiment.
    """
    by_name: dict[str, list[dict]] = {}
    for cell in cells:
        by_name.setdefault(cell["experiment"], []).append(cell)
    return [_experiment(name, found) for name, found in by_name.items()]


def _experiment(name: str, cells: list[dict]) -> dict:
    table = TABLES.get(name)
    reasons = list(dict.fromkeys(cell["reason"] for cell in cells if cell["reason"]))
    colors = row_colors(name, list(dict.fromkeys(cell["method"] for cell in cells)))
    number = {text: i for texts in (colors, reasons) for i, text in enumerate(texts)} | {None: None}
    numbered = [cell | {field: number[cell[field] or None] for field in ("method", "reason")} for cell in cells]
    return {
        "name": name,
        "title": f"Table {table.number}: {table.title}" if table else EXPERIMENTS[name].title,
        "group": "Tables of the paper" if table else "Figures, and what the paper leaves open",
        "metric": table.metric if table else f"in {EXPERIMENTS[name].unit}",
        "methods": [{"name": method, "color": color} for method, color in colors.items()],
        "lengths": sorted({cell["hash_length"] for cell in cells}),
        "reasons": reasons,
        "cells": [[_short(cell[field]) for field in FIELDS] for cell in numbered],
    }


def _short(value: object) -> object:
    return round(value, 2) if isinstance(value, float) else value
