"""Paper against ours: every cell of every table, with a verdict, and a reason where they differ."""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, stdev

import pandas as pd

from . import results
from .experiments import EXPERIMENTS, Experiment
from .paper import TABLES

REPRODUCED, CLOSE = 1.0, 3.0  # points
REGISTER = "deviations.toml"


def verdict(paper: float | None, ours: float | None) -> str:
    """Return reproduced (within 1 point, or better), close (within 3) or deviates; or which of the two is lacking."""
    if ours is None:
        return "missing"
    if paper is None:
        return "not in the paper"
    if ours >= paper - REPRODUCED:
        return "reproduced"
    return "close" if ours >= paper - CLOSE else "deviates"


def register(where: Path | None = None) -> list[dict]:
    """Return the entries of the register of deviations: experiment, methods, hash_lengths, reason."""
    path = (where or results.folder()) / REGISTER
    return tomllib.loads(path.read_text())["deviation"] if path.exists() else []


def _reason(entries: list[dict], experiment: str, method: str, k: int) -> str | None:
    def matches(entry: dict) -> bool:
        return entry["experiment"] == experiment and method in entry["methods"] and k in entry["hash_lengths"]

    return next((entry["reason"] for entry in entries if matches(entry)), None)


def _rows(exp: Experiment) -> list[str]:
    """Return the rows of a table: the paper's first, in its order, then ours alone."""
    ours = [row for method in dict.fromkeys(cell.method for cell in exp.cells()) for row in exp.rows(method)]
    return list(dict.fromkeys([*(TABLES[exp.name].rows if exp.name in TABLES else ()), *ours]))


def cells(names: Iterable[str] = (), *, profile: str = "full", where: Path | None = None) -> Iterator[dict]:
    """Yield every cell of the named experiments (all by default), measured or not.

    ``ours`` is the mean over seeds, ``sd`` their standard deviation, ``best`` and ``worst`` the mean bounds over tie
    orders, all in the unit of the table. Rows that only the paper's sources report have ``ours`` None.
    """
    entries = register(where)
    for exp in (EXPERIMENTS[name] for name in names or EXPERIMENTS):
        recorded = [r for r in results.read(exp.name, where) if r["profile"] == profile]
        measurable = {row for cell in exp.cells() for row in exp.rows(cell.method)}
        for row in _rows(exp):
            for k in exp.hash_lengths:
                found = [r for r in recorded if (r["method"], r["hash_length"]) == (row, k)]
                paper = TABLES[exp.name].value(row, k) if exp.name in TABLES else None
                if paper is None and row not in measurable:
                    continue  # neither we nor the paper have it
                values = [r["value"] for r in found]
                ours = mean(values) if values else None
                judged = verdict(paper, ours) if exp.unit == "%" or ours is None else "measured here"
                if ours is None and row not in measurable:
                    judged = "reported only"
                yield {
                    "experiment": exp.name,
                    "method": row,
                    "hash_length": k,
                    "paper": paper,
                    "ours": ours,
                    "sd": stdev(values) if len(values) > 1 else None,
                    "seeds": len(values),
                    "best": mean(r["best"] for r in found) if found and found[0].get("best") else None,
                    "worst": mean(r["worst"] for r in found) if found and found[0].get("worst") else None,
                    "verdict": judged,
                    "reason": _reason(entries, exp.name, row, k),
                }


def table(name: str, *, profile: str = "full", where: Path | None = None) -> pd.DataFrame:
    """Return one experiment as a table, a row per method, a column per hash length, cells "ours ± sd (paper)"."""
    frame = pd.DataFrame(cells([name], profile=profile, where=where))
    frame["cell"] = frame.apply(_cell_text, axis=1)
    wide = frame.pivot(index="method", columns="hash_length", values="cell").reindex(frame["method"].unique())
    return wide.fillna("–").rename_axis(index=None, columns=None)


def _cell_text(cell: pd.Series) -> str:
    paper = "" if pd.isna(cell["paper"]) else f" ({cell['paper']:g})"
    if pd.isna(cell["ours"]):
        return f"{'missing' if cell['verdict'] == 'missing' else '–'}{paper}"
    spread = "" if pd.isna(cell["sd"]) else f" ± {cell['sd']:.1f}"
    flag = {"deviates": " ✗", "close": " ~"}.get(cell["verdict"], "")
    return f"{cell['ours']:.2f}{spread}{paper}{flag}"


def render(
    names: Iterable[str] = (), *, markdown: bool = False, profile: str = "full", where: Path | None = None
) -> str:
    """Return the report as text: a table per experiment, then how many cells reproduced, and the reasons."""
    parts = []
    for name in names or EXPERIMENTS:
        exp, found = EXPERIMENTS[name], list(cells([name], profile=profile, where=where))
        wide = table(name, profile=profile, where=where)
        wide.columns = [f"k={k}" for k in wide.columns]
        body = _markdown(wide) if markdown else wide.to_string()
        counts = pd.Series([c["verdict"] for c in found]).value_counts()
        summary = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        reasons = dict.fromkeys(f"{c['method']}: {c['reason']}" for c in found if c["reason"])
        title = f"## {exp.title}" if markdown else exp.title
        legend = f"Ours ± sd over seeds (paper), in {exp.unit}; ~ within {CLOSE:g} points, ✗ further off. {summary}."
        parts.append("\n\n".join([title, body, legend, *(f"- {r}" for r in reasons)]))
    return "\n\n\n".join(parts)


def _markdown(wide: pd.DataFrame) -> str:
    lines = [["", *wide.columns], ["---"] * (1 + wide.shape[1]), *([row, *wide.loc[row]] for row in wide.index)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
