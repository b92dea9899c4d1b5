"""The reproduction report, written from the records: what is compared, table by table, and why some cells differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from biohash_mini.reproduction import report, results
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.paper import TABLES
from biohash_mini.reproduction.steps import commands

from .markup import details, listed, many, number, raw, row, scroll, time

MARKS = {  # a sign beside the colour, for readers who cannot tell colours apart
    "reproduced": "✓",
    "above": "↑",
    "close": "~",
    "deviates": "✗",
    "not like for like": "≠",
    "missing": "missing",
    "reported only": "",
    "measured here": "",
    "not in the paper": "",
}
KINDS = {  # what may become of a printed value, as tiles and columns are headed
    **{verdict: f"{MARKS[verdict]} {verdict}" for verdict in ("reproduced", "above", "close", "deviates")},
    "not like for like": "≠ not like for like",
    "measured here": "seconds, not judged",
    "reported only": "quoted, not rerun",
    "missing": "missing",
}
HEADS = {"measured here": "seconds", "reported only": "quoted"} | {v: MARKS[v] for v in KINDS if MARKS[v]}
PARTS = ("Table by table", "Figures, and what the paper leaves open", "Improvements", "Beyond the paper")
BEYOND = "19"  # the first chapter that leaves the paper
OURS = "BioHash, started on data"
ALIKE = ("reproduced", "above", "close", "deviates")


def every_cell(where: Path | None = None) -> dict[str, list[dict]]:
    """Return the cells of every table of the paper, in its order, then those of our own experiments, by name."""
    return {name: list(report.cells([name], where=where)) for name in dict.fromkeys([*TABLES, *EXPERIMENTS])}


def title_of(name: str) -> str:
    """Return what a table is called: its number and what it holds, or the experiment's own title."""
    return f"Table {TABLES[name].number}: {TABLES[name].title}" if name in TABLES else EXPERIMENTS[name].title


def totals(cells: Iterable[dict]) -> Counter:
    """Return how many of the printed values among the cells have each verdict."""
    return Counter(c["verdict"] for c in cells if c["paper"] is not None)


def all_of(cells: dict[str, list[dict]]) -> list[dict]:
    """Return the cells of all tables in one list."""
    return [cell for found in cells.values() for cell in found]


# ---------------------------------------------------------------- where it stands


def head(cells: dict[str, list[dict]], where: Path | None = None) -> str:
    """Return one sentence on what is compared with the paper, what is not, and how many seeds stand behind it."""
    found = all_of(cells)
    n = totals(found)
    alike = [c for c in found if c["paper"] is not None and c["verdict"] in ALIKE]
    parts = [f"Of the **{sum(n.values())}** values that the paper prints, **{len(alike)}** are compared like with like"]
    if alike:
        parts[0] += f", {_seeds(alike)}"
    if n["not like for like"]:
        parts.append(f"**{n['not like for like']}** are measured otherwise and not judged ({_unlike(cells, where)})")
    if n["measured here"]:
        parts.append(f"**{n['measured here']}** are seconds on another machine")
    if n["reported only"]:
        parts.append(f"**{n['reported only']}** are quoted by the paper and not rerun")
    if n["missing"]:
        parts.append(f"**{n['missing']}** are not measured yet")
    return f"{parts[0]}; {listed(parts[1:], ', and ')}." if parts[1:] else f"{parts[0]}."


def _seeds(cells: list[dict]) -> str:
    """Return over how many seeds the cells are means, in words."""
    seeds = Counter(c["seeds"] for c in cells)
    most, one = seeds.most_common(1)[0][0], seeds[1]
    if len(seeds) == 1:
        return f"each the mean over {many(most, 'seed')}"
    single = f"; {one} rest on a single one" if one else ""
    return f"each the mean over {min(seeds)} to {max(seeds)} seeds (most often {most}{single})"


def _unlike(cells: dict[str, list[dict]], where: Path | None) -> str:
    """Return how the cells that are not like for like differ from the paper's, with their numbers."""
    kinds: Counter[str] = Counter()
    for entry in report.register(where).get("unlike", []):
        kinds[entry.get("otherwise", "see the register")] += sum(
            c["verdict"] == "not like for like" and c["method"] in entry["methods"]
            for c in cells[entry["experiment"]]
            if c["hash_length"] in entry["hash_lengths"] and c["paper"] is not None
        )
    return ", ".join(f"{n} {words}" for words, n in kinds.most_common() if n)


def summary_page(cells: dict[str, list[dict]], where: Path | None = None) -> str:
    """Return what became of every printed value, in a sentence, in tiles and by table, and the index, as MyST."""
    total = totals(all_of(cells))
    shown = [kind for kind in KINDS if total[kind]]
    tiles = "".join(f'<div class="tile {_class(v)}"><b>{total[v]}</b><span>{KINDS[v]}</span></div>' for v in shown)
    by_table = {name: totals(cells[name]) for name in TABLES}
    rows = row("th", ["", *(HEADS[v] for v in shown), "printed"])
    rows += "".join(_tally(_link(name), n, shown) for name, n in by_table.items())
    rows += _tally("all tables", total, shown)
    table = scroll("What became of the values of each table", rows, "numbers tally")
    ours = [name for name in cells if name not in TABLES]
    own = row("th", ["", "cells recorded", "not yet"])
    own += "".join(_line(_link(name), [n, len(cells[name]) - n]) for name in ours for n in [_recorded(cells[name])])
    more = details(f"Our own experiments ({len(ours)})", scroll("Our own experiments", own, "numbers tally"))
    return "\n\n".join([head(cells, where), raw(f'<div class="tiles">{tiles}</div>', table, more)]) + "\n"


def _tally(title: str, counts: Counter, shown: list[str]) -> str:
    """Return one line of the summary: a table, how many of its values have each verdict, how many there are."""
    return _line(title, [*(counts[v] for v in shown), sum(counts.values())])


def _line(title: str, numbers: Iterable[int]) -> str:
    return f'<tr><th scope="row">{title}</th>' + "".join(f"<td>{n or '·'}</td>" for n in numbers) + "</tr>"


def _link(name: str) -> str:
    return f'<a href="#{_anchor(name)}">{escape(title_of(name))}</a>'


def _recorded(cells: list[dict]) -> int:
    return sum(c["ours"] is not None for c in cells)


# ---------------------------------------------------------------- table by table


def tables_page(cells: dict[str, list[dict]], chapters: Iterable[str] = (), where: Path | None = None) -> str:
    """Return every table with its command and provenance, and the register of deviations, as MyST.

    A chapter is linked only if it is among ``chapters``.
    """
    sections = {name: _section(name, cells[name], set(chapters), where) for name in cells}
    parts = []
    for part, names in groupby(sorted(sections, key=_part), _part):
        parts += [f"## {PARTS[part]}", *([_gains(cells)] if PARTS[part] == "Improvements" else [])]
        parts += [sections[name] for name in names]
    return "\n\n".join([*parts, _register(cells, where)]) + "\n"


def _part(name: str) -> int:
    """Return in which of the ``PARTS`` a table stands."""
    if name in TABLES:
        return 0
    return 2 if name.startswith("improvements-") else 1 if EXPERIMENTS[name].chapter < BEYOND else 3


class Gain(NamedTuple):
    """What the variant that did best on the validation split scores on the queries, beside BioHash, at equal bits."""

    data: str
    hash_length: int
    variant: str
    printed: float | None
    ours: float | None
    score: float

    @property
    def over_print(self) -> float | None:
        """The gain over the printed value, where there is one."""
        return None if self.printed is None else self.score - self.printed


def gains(cells: dict[str, list[dict]]) -> list[Gain]:
    """Return the gains of every data set whose improvements are recorded, shortest codes first."""
    found = []
    for name in (name for name in cells if name.startswith("improvements-") and _recorded(cells[name])):
        data = EXPERIMENTS[name].data
        ours = _scores(cells[data], OURS)
        chosen = {method: _scores(cells[f"variants-{data}"], method) for method in {c["method"] for c in cells[name]}}
        best = max(chosen, key=lambda method: sum(chosen[method].values()))
        for k, score in _scores(cells[name], best).items():
            found.append(Gain(data, k, best, TABLES[data].value("BioHash", k), ours.get(k), score))
    return found


def _gains(cells: dict[str, list[dict]]) -> str:
    """Return the gains as a sentence and a table."""
    found = gains(cells)
    least = min((g.over_print for g in found if g.over_print is not None), default=None)
    if least is None:
        return "No variant is measured."
    head = ["", "variant", "BioHash, paper", "BioHash, ours", "variant's score", "gain over the paper"]
    rows = (
        [f"{TABLES[g.data].title}, k = {g.hash_length}", g.variant, *map(number, (*g[3:], g.over_print))] for g in found
    )
    return (
        f"Ahead of the paper's BioHash by {least:.1f} points or more, at every length that it prints and at equal "
        "bits. For each data set it is the variant that scores best on the validation split, here on the queries.\n\n"
        + raw(scroll("Improvements", row("th", head) + "".join(row("td", r) for r in rows), "numbers long"))
    )


def _scores(cells: list[dict], method: str) -> dict[int, float]:
    """Return the recorded means of a row, by hash length."""
    return {c["hash_length"]: c["ours"] for c in cells if c["method"] == method and c["ours"] is not None}


def _section(name: str, cells: list[dict], chapters: set[str], where: Path | None) -> str:
    """Return a table with what is to be said about it, or one line if no cell of it is recorded."""
    typed = ", then ".join(f"`{command}`" for command in commands(name))
    records = [r for r in results.read(name, where) if r["profile"] == "full"]
    if not records:
        return f"({_anchor(name)})=\n**{title_of(name)}.** Nothing is recorded yet; {typed} measures it."
    exp = EXPERIMENTS[name]
    metric = f", {TABLES[name].metric}" if name in TABLES else ""
    about = [f"Measured as: {exp.title}."] if name in TABLES else []
    if exp.chapter in chapters:
        about.append(f"Discussed in [](../notebooks/{exp.chapter}.ipynb).")
    for verdict, words in {"deviates": "what was tried", "not like for like": "how ours differ"}.items():
        if any(c["verdict"] == verdict for c in cells):
            about.append(f"For the cells marked {MARKS[verdict]}, [the register](report-register) says {words}.")
    cost = report.cost([name], where=where).loc[name]
    took = f"{many(int(cost['recorded']), 'trial')}, {time(cost['seconds'])} in all"
    took += ", features not counted" if len(commands(name)) > 1 else ""
    made = f"Made by {typed}: {took}." if cost["recorded"] else f"These are archived rows; {typed} measures the others."
    long = scroll(f"Every cell of {name}", _long(cells), "numbers long")
    about_it = scroll(f"Provenance of {name}", _provenance(name, records, took), "about")
    folds = [
        details("Every cell: difference, seeds, bounds over tie orders, verdict", long),
        details("Provenance", about_it),
    ]
    return "\n\n".join(
        [
            f"({_anchor(name)})=\n### {title_of(name)}{metric}",
            " ".join(about),
            raw(scroll(title_of(name), _wide(cells), "numbers")),
            made,
            raw(*folds),
        ]
    )


def _wide(cells: list[dict]) -> str:
    """Return the rows of the table as the paper prints it: ours on top, the paper's below."""
    lengths = sorted({c["hash_length"] for c in cells})
    found = {(c["method"], c["hash_length"]): c for c in cells}
    body = "".join(
        f'<tr><th scope="row">{escape(method)}</th>' + "".join(_cell(found.get((method, k))) for k in lengths) + "</tr>"
        for method in dict.fromkeys(c["method"] for c in cells)
    )
    return row("th", ["", *(f"k = {k}" for k in lengths)]) + body


def _cell(cell: dict | None) -> str:
    if cell is None:
        return "<td></td>"
    spread = "" if cell["sd"] is None else f"<small> ± {cell['sd']:.1f}</small>"
    sign = MARKS[cell["verdict"]]
    ours = sign or "–" if cell["ours"] is None else f"{number(cell['ours'])}{spread} {sign}".rstrip()
    paper = "" if cell["paper"] is None else f"<small>paper {cell['paper']:g}</small>"
    return f'<td class="{_class(cell["verdict"])}"><span>{ours}</span>{paper}</td>'


def _long(cells: list[dict]) -> str:
    head = ["method", "k", "paper", "ours", "sd", "seeds", "ours − paper", "worst", "best", "verdict"]
    keys = ["paper", "ours", "sd", "seeds", "difference", "worst", "best"]
    body = (
        f'<tr><th scope="row">{escape(c["method"])}</th><td>{c["hash_length"]}</td>'
        + "".join(f"<td>{number(c[key])}</td>" for key in keys)
        + f'<td class="{_class(c["verdict"])}">{c["verdict"]}</td></tr>'
        for c in cells
    )
    return row("th", head) + "".join(body)


def _provenance(name: str, records: list[results.Record], took: str) -> str:
    """Return the rows that say by which code, when, where and on which data an experiment was measured."""
    commits = Counter(r["commit"] or "unknown" for r in records)
    dates = sorted(r["date"][:10] for r in records)
    versions = {json.dumps(r["versions"]): r["versions"] for r in records}.values()
    machines = Counter(f"{r['machine']}, {r['device']}, {many(r['threads'], 'thread')}" for r in records)
    sums = dict.fromkeys(r["data_sha256"] for r in records if r.get("data_sha256"))
    rows = {
        "code": ", ".join(f"<code>{escape(c)}</code> ({many(n, 'record')})" for c, n in commits.most_common()),
        "measured": dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
        "software": "<br>".join(escape(", ".join(f"{p} {v}" for p, v in found.items())) for found in versions),
        "on": "<br>".join(f"{escape(m)} ({many(n, 'record')})" for m, n in machines.most_common()),
        "data": f"{escape(EXPERIMENTS[name].data)}, sha256 " + ", ".join(f"<code>{s}</code>" for s in sums),
        "cost": f"{took}, at most {max(r['peak_memory_mb'] for r in records):,} MB of memory",
        "records": f"<code>results/{name}.jsonl</code>",
    }
    return "".join(f'<tr><th scope="row">{key}</th><td>{text}</td></tr>' for key, text in rows.items())


# ---------------------------------------------------------------- the register


def _register(cells: dict[str, list[dict]], where: Path | None) -> str:
    lines = [
        "(report-register)=\n## The register of deviations",
        "Why cells lie more than three points from the paper, and which measure something else than the printed ones. "
        "The entries are those of `results/deviations.toml`, and every cell that deviates has one.",
    ]
    kinds = {"deviation": "Cells that deviate", "unlike": "Cells that are not like for like"}
    entries = report.register(where)
    for kind, title in kinds.items():
        if kind in entries:
            lines += [f"### {title}", *(f"- {_entry(entry)}" for entry in entries[kind])]
    orphans = [c for c in all_of(cells) if c["verdict"] == "deviates" and not c["reason"]]
    lines += [f"- {title_of(c['experiment'])}, {c['method']}, k = {c['hash_length']}: no reason yet." for c in orphans]
    return "\n\n".join(lines)


def _entry(entry: dict) -> str:
    """Return what the register says on some cells; experiments that it names are links to their tables."""
    name, asked = entry["experiment"], entry["hash_lengths"]
    lengths = "every k" if set(asked) >= set(EXPERIMENTS[name].hash_lengths) else f"k = {', '.join(map(str, asked))}"
    where = f"[{title_of(name)}]({_anchor(name)})"
    words = re.sub(r"`([\w-]+)`", _named, entry["reason"].strip())
    return f"**{where}**, {listed(entry['methods'])}, {lengths}. {words}"


def _named(match: re.Match) -> str:
    return f"[{match[0]}]({_anchor(match[1])})" if match[1] in EXPERIMENTS else match[0]


def _class(verdict: str) -> str:
    return f"v-{verdict.replace(' ', '-')}"


def _anchor(name: str) -> str:
    return f"report-{name}"
