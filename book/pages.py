"""The parts of the book that are written at build time: the report, the status of the chapters, two widgets.

Each function returns text; :func:`write` puts it where the hand-written pages of ``book/`` include it from.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from statistics import mean

from biohash_mini import METHODS
from biohash_mini.reproduction import results
from biohash_mini.reproduction.declarations import EXPERIMENTS

from . import records, report_page
from .markup import many, raw, row, scroll, time

TRIED = "tried.toml"  # in the folder of results


def write(folder: Path, executed: Sequence[Path], where: Path) -> None:
    """Write every generated part into a folder, from these executed notebooks and the results in ``where``."""
    from biohash_mini.widgets import CircleExplorer, ResultsExplorer
    from book import cover, one_page

    folder.mkdir(parents=True, exist_ok=True)
    cells = report_page.every_cell(where)
    circle = CircleExplorer(sigma=0.6, n_units=12, hash_length=3, points=[0.35, 0.9])
    parts = {
        "summary.md": report_page.summary_page(cells, where),
        "tables.md": report_page.tables_page(cells, [path.stem for path in executed], where),
        "one_page.md": one_page.page(cells, where),
        "status.md": status_page(executed),
        "methods.md": methods_page(),
        "promises.md": promises_page(where),
        "tried.md": tried_page([path.stem for path in executed], where),
        "cover.html": circle.html(),
        "answer.md": cover.page(cells, folder),
        "explorer.html": ResultsExplorer(report_page.all_of(cells)).html(),
        records.METADATA: records.metadata(where),
    }
    for name, text in parts.items():
        (folder / name).write_text(text, "utf-8")
    records.pack(folder / records.ARCHIVE, where)


# ---------------------------------------------------------------- the promises

PARTS = {  # what the campaign counts, and the words for it
    "faults": ("fault", "nothing was lost and nothing broken, or the error was one clear line"),
    "malformed input": ("malformed input", "the answer was an error that names the problem"),
    "chapters": ("output", "executing the chapter a second time gave the same"),
    "load": ("limit", "it was kept"),
}


def promises_page(where: Path | None = None) -> str:
    """Return what the campaign and the second execution of chapters have counted, each when it last ran, as MyST."""
    last = list({r["method"]: r for r in results.read("stress", where)}.values())
    if not last:
        return "Nothing has been recorded yet: `make stress` runs the campaign.\n"
    lines = []
    for part, (noun, words) in PARTS.items():
        if not (mine := [r for r in last if r["part"] == part]):
            continue
        tried, held = (sum(r[name] for r in mine) for name in ("tried", "held"))
        of = f" of {len(mine)} chapter{'s' * (len(mine) != 1)}" if part == "chapters" else ""
        lines.append(f"- **{tried:,} {noun}{'s' * (tried != 1)}**{of}: in {held:,} of them {words}.")
        lines += [f"  - {escape(r['name'])}: {escape(_facts(r['facts']))}" for r in mine if r["facts"]]
    head = row("th", ["", "tried", "held"])
    rows = "".join(
        f'<tr><th scope="row">{escape(r["name"])}</th><td>{r["tried"]:,}</td><td>{r["held"]:,}</td></tr>'
        for r in last
        if r["part"] != "chapters"
    )
    versions = last[-1]["versions"]
    recorded = " and ".join(dict.fromkeys(f"{r['date'][:10]} by `{r['commit']}`" for r in last))
    about = f"Recorded {recorded} with Python {versions['python']} and torch"
    about += f" {versions['torch']}, in `results/stress.jsonl`."
    table = raw(scroll("What was tried, and how often it held", head + rows, "numbers"))
    return "\n\n".join(["\n".join(lines), table, about]) + "\n"


def _facts(facts: dict) -> str:
    """Return what a load has measured, in words."""
    units, quantiles = {"mb": "MB", "us": "µs"}, {"p95": 95, "p99": 99, "p999": 99.9}
    words = []
    for name, value in facts.items():
        plain = name.removesuffix("_wall")
        stem, _, unit = plain.rpartition("_")
        if unit in quantiles:
            words.append(f"{quantiles[unit]}% within {value:,.10g} times the median")
        elif unit in units:
            words.append(f"{stem} {value:,.10g} {units[unit]}{' by the clock' * (name != plain)}")
        else:
            words.append(f"{value:,.10g} {plain}")
    return ", ".join(words)


# ---------------------------------------------------------------- what was tried


def tried_page(chapters: Sequence[str], where: Path | None = None) -> str:
    """Return the table of ideas beyond the paper, their verdicts and what was measured, as MyST.

    A chapter is linked only if it is among ``chapters``.
    """
    lines = ["| idea | verdict | measured | where |", "|---|---|---|---|"]
    path = (where or results.folder()) / TRIED
    for entry in tomllib.loads(path.read_text("utf-8"))["tried"] if path.exists() else []:
        stem = entry["chapter"]
        link = f"[](../notebooks/{stem}.ipynb)" if stem in chapters else "–"
        measured = "<br> ".join(filter(None, (_gain(cells, where) for cells in entry.get("records", []))))
        lines.append(f"| {entry['idea']} | {entry['verdict']} | {measured or '–'} | {link} |")
    return "\n".join(lines) + "\n"


def _gain(cells: dict, where: Path | None) -> str:
    """Return what was measured without and with an idea at each hash length, nothing if that is not recorded."""
    found: dict[tuple, list[float]] = {}
    for r in results.read(cells["experiment"], where):
        if r["profile"] == "full":
            found.setdefault((r["method"], r["hash_length"]), []).append(r["value"])
    pairs = {k: [found.get((cells[which], k)) for which in ("against", "method")] for k in cells["hash_lengths"]}
    words = [
        f"*k* = {k}: {mean(a):.1f} → {mean(b):.1f}".replace(" ", "\u00a0") for k, (a, b) in pairs.items() if a and b
    ]
    data = {"mnist": "MNIST", "cifar10": "CIFAR-10", "glove": "GloVe"}
    name = EXPERIMENTS[cells["experiment"]].data if cells["experiment"] in EXPERIMENTS else ""
    return f"**{data.get(name, name)}**<br> {',<br> '.join(words)}" if words else ""


# ---------------------------------------------------------------- the methods


def methods_page() -> str:
    """Return the reference of every registered method, as MyST."""
    entries = "\n\n".join(f".. autoclass:: {kind.__name__}\n   :members:" for kind in METHODS.values())
    return f"```{{eval-rst}}\n.. currentmodule:: biohash_mini.hashers\n\n{entries}\n```\n"


# ---------------------------------------------------------------- the status of the chapters


def status_page(executed: Sequence[Path]) -> str:
    """Return the table of chapters as MyST: how long each took, when, on what; a chapter that never ran says so."""
    lines = ["| chapter | seconds | slowest cell | code cells | executed (UTC) |", "|---|---:|---:|---:|---|"]
    total, machines = 0.0, {}
    for path in executed:
        about, cells = _read(path)
        link = f"[](../notebooks/{path.name})"
        if not about.get("papermill", {}).get("end_time"):
            lines.append(f"| {link} | not executed | | | |")
            continue
        run = about["papermill"]
        slowest = max((c["metadata"].get("papermill", {}).get("duration") or 0 for c in cells), default=0)
        when = datetime.fromisoformat(run["end_time"]).strftime("%Y-%m-%d %H:%M")
        total += run["duration"]
        lines.append(f"| {link} | {run['duration']:.0f} | {slowest:.0f} | {len(cells)} | {when} |")
        machines[_machine(about)] = None  # a set in order
    where = f" Executed on {'; and on '.join(machines)}." if machines else ""
    return "\n".join([*lines, "", f"Together: {time(total)} of computing.{where}"]) + "\n"


def _read(path: Path) -> tuple[dict, list[dict]]:
    """Return the metadata and the code cells of a notebook, nothing of one that is not there."""
    if not path.exists():
        return {}, []
    page = json.loads(path.read_text("utf-8"))
    return page["metadata"], [c for c in page["cells"] if c["cell_type"] == "code"]


def _machine(about: dict) -> str:
    """Return on what a chapter ran, as far as its executed copy says."""
    host = about.get("biohash", {})
    python = f"Python {about.get('language_info', {}).get('version', '?')}"
    if not host:
        return python
    return f"{host['machine']}, {many(host['threads'], 'thread')}, {python}, torch {host['versions']['torch']}"
