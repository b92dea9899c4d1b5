"""Paper against ours: every cell of every table, with a verdict, and a reason where they differ."""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, stdev

import pandas as pd

from . import results
from .declarations import EXPERIMENTS
from .experiment import Experiment
from .measure import work
from .paper import TABLES

REPRODUCED, CLOSE = 1.0, 3.0  # points
REGISTER = "deviations.toml"


def verdict(paper: float | None, ours: float | None, higher_is_better: bool = True) -> str:
    """Return reproduced (within 1 point), above (more than that better), close (within 3) or deviates.

    Where either is lacking the verdict says which.
    """
    if ours is None:
        return "missing"
    if paper is None:
        return "not in the paper"
    if abs(ours - paper) <= REPRODUCED:
        return "reproduced"
    if higher_is_better and ours > paper:
        return "above"
    return "close" if abs(ours - paper) <= CLOSE else "deviates"


def register(where: Path | None = None) -> dict[str, list[dict]]:
    """Return the register, "deviation" and "unlike" entries: experiment, methods, hash_lengths, reason."""
    path = (where or results.folder()) / REGISTER
    try:
        found = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
        for number, entry in ((i, e) for entries in found.values() for i, e in enumerate(entries, 1)):
            if missing := {"experiment", "methods", "hash_lengths", "reason"} - set(entry):
                raise ValueError(f"entry {number} lacks {', '.join(sorted(missing))}")
    except ValueError as error:  # of TOML and of UTF-8 too
        raise ValueError(f"{path}: {error}") from None
    return found


def _reason(entries: Iterable[dict], experiment: str, method: str, k: int) -> str | None:
    def matches(entry: dict) -> bool:
        return entry["experiment"] == experiment and method in entry["methods"] and k in entry["hash_lengths"]

    return next((entry["reason"] for entry in entries if matches(entry)), None)


def _rows(exp: Experiment) -> list[str]:
    """Return the rows of a table: the paper's first, in its order, then ours alone."""
    ours = [row.label for row in exp.all_rows()]
    return list(dict.fromkeys([*(TABLES[exp.name].rows if exp.name in TABLES else ()), *ours]))


def cells(names: Iterable[str] = (), *, profile: str = "full", where: Path | None = None) -> Iterator[dict]:
    """Yield every cell of the named experiments (all by default), measured or not.

    ``ours`` is the mean over seeds, ``sd`` their standard deviation, ``best`` and ``worst`` the mean bounds over tie
    orders, all in the unit of the table. Rows that only the paper's sources report have ``ours`` None.
    """
    entries = register(where)
    for exp in (EXPERIMENTS[name] for name in names or EXPERIMENTS):
        recorded = [r for r in results.read(exp.name, where) if r["profile"] == profile]
        archived = {row.label for row in exp.all_rows() if row.archived}
        measurable = {(trial.row.label, trial.hash_length) for trial in exp.trials()}
        measurable |= {(r["method"], r["hash_length"]) for r in recorded if r["method"] in archived}
        for row in _rows(exp):
            for k in exp.hash_lengths:
                found = [r for r in recorded if (r["method"], r["hash_length"]) == (row, k)]
                paper = TABLES[exp.name].value(row, k) if exp.name in TABLES else None
                if paper is None and (row, k) not in measurable:
                    continue  # neither we nor the paper have it
                values = [r["value"] for r in found]
                ours = _mean(values)
                judged = verdict(paper, ours, exp.higher_is_better)
                reason = _reason(entries.get("deviation", []), exp.name, row, k)
                unlike = _reason(entries.get("unlike", []), exp.name, row, k)
                if (row, k) not in measurable:
                    judged = "reported only"
                elif exp.unit != "%" and ours is not None:
                    judged = "measured here"
                elif unlike and None not in (paper, ours):
                    judged, reason = "not like for like", unlike
                yield {
                    "experiment": exp.name,
                    "method": row,
                    "hash_length": k,
                    "paper": paper,
                    "ours": ours,
                    "sd": stdev(values) if len(values) > 1 else None,
                    "seeds": len(values),
                    "difference": None if None in (paper, ours) else ours - paper,
                    "best": _mean(r.get("best") for r in found),
                    "worst": _mean(r.get("worst") for r in found),
                    "verdict": judged,
                    "reason": reason,
                }


def ours(name: str, method: str, hash_length: int) -> float:
    """Return what was measured at full scale for one cell of an experiment, the mean over its seeds."""
    values = [
        r["value"]
        for r in results.read(name)
        if (r["profile"], r["method"], r["hash_length"]) == ("full", method, hash_length)
    ]
    if not values:
        raise ValueError(f"{name} has no record of {method} at hash length {hash_length}")
    return mean(values)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return mean(known) if known else None


def wide(name: str, *, profile: str = "full", where: Path | None = None) -> pd.DataFrame:
    """Return one experiment as printed, a row per method, a column per hash length, cells "ours ± sd (paper)"."""
    frame = pd.DataFrame(cells([name], profile=profile, where=where))
    frame["cell"] = frame.apply(_cell_text, axis=1)
    wide = frame.pivot(index="method", columns="hash_length", values="cell").reindex(frame["method"].unique())
    return wide.fillna("–").rename_axis(index=None, columns=None)


def _cell_text(cell: pd.Series) -> str:
    paper = "" if pd.isna(cell["paper"]) else f" ({cell['paper']:g})"
    if pd.isna(cell["ours"]):
        return f"{'missing' if cell['verdict'] == 'missing' else '–'}{paper}"
    spread = "" if pd.isna(cell["sd"]) else f"\u00a0±\u00a0{cell['sd']:.1f}"  # narrow columns break before the paper
    flag = {"deviates": "\u00a0✗", "close": "\u00a0~", "above": "\u00a0↑"}.get(cell["verdict"], "")
    return f"{cell['ours']:.2f}{spread}{paper}{flag}"


def long(name: str, *, profile: str = "full", where: Path | None = None) -> pd.DataFrame:
    """Return one experiment in long form: a line per cell with paper, ours, spread, difference, tie bounds, verdict."""
    frame = pd.DataFrame(cells([name], profile=profile, where=where)).rename(columns={"hash_length": "k"})
    columns = ["method", "k", "paper", "ours", "sd", "seeds", "difference", "worst", "best", "verdict"]
    for column in set(columns) - {"method", "k", "seeds", "verdict"}:
        frame[column] = ["–" if pd.isna(value) else f"{value:.2f}" for value in frame[column]]
    return frame[columns]


def render(
    names: Iterable[str] = (), *, markdown: bool = False, profile: str = "full", where: Path | None = None
) -> str:
    """Return the report as text: for each experiment its cells (wide as markdown), how many reproduced, the reasons."""
    parts = []
    for name in names or EXPERIMENTS:
        exp, found = EXPERIMENTS[name], list(cells([name], profile=profile, where=where))
        lines = long(name, profile=profile, where=where)
        if markdown:
            columns = wide(name, profile=profile, where=where).rename(columns="k={}".format)
            body = f"{_markdown(columns)}\n\n{_markdown(lines.set_index('method'))}"
        else:
            body = lines.to_string(index=False)
        counts = pd.Series([c["verdict"] for c in found]).value_counts()
        reasons = dict.fromkeys(f"{c['method']}: {c['reason']}" for c in found if c["reason"])
        title = f"## {exp.title}" if markdown else exp.title
        legend = f"In {exp.unit}; reproduced: within {REPRODUCED:g} point; above: better; close: within {CLOSE:g}."
        summary = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        parts.append("\n\n".join([title, body, f"{legend} {summary}.", *(f"- {r}" for r in reasons)]))
    return "\n\n\n".join(parts)


def cost(names: Iterable[str] = (), *, profile: str = "full", where: Path | None = None) -> pd.DataFrame:
    """Return what each experiment took, a row each: trials recorded and missing, seconds, the longest, memory in MB.

    Rows that read one measurement in two ways count once, archived ones not at all. Runs side by side take less time
    than the sum.
    """
    rows = {}
    for exp in (EXPERIMENTS[name] for name in names or EXPERIMENTS):
        known = {row.label: row for row in exp.all_rows() if not row.archived}
        recorded = results.read(exp.name, where)
        found = [r for r in recorded if r["profile"] == profile and r["method"] in known]
        planned = {(trial.row.label, trial.hash_length, trial.seed) for trial in exp.trials()}
        took: dict[tuple, float] = {}
        for r in found:
            row = known[r["method"]]
            once = work(exp, row), row.queries, r["hash_length"], r["seed"]
            took[once] = max(took.get(once, 0.0), r.get("seconds") or 0.0)
        rows[exp.name] = {
            "recorded": len(found),
            "missing": len(planned - {(r["method"], r["hash_length"], r["seed"]) for r in found}),
            "seconds": round(sum(took.values())),
            "longest": round(max(took.values(), default=0)),
            "memory": max((r.get("peak_memory_mb") or 0 for r in found), default=0),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _markdown(frame: pd.DataFrame) -> str:
    rows = ([name, *map(str, values)] for name, values in zip(frame.index, frame.to_numpy(), strict=True))
    lines = [["", *frame.columns], ["---"] * (1 + frame.shape[1]), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
