"""The parts of the book that are written at build time: the report, the status of the chapters, two widgets.

Each function returns text; :func:`write` puts it where the hand-written pages of ``book/`` include it from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path

from biohash_mini import METHODS
from biohash_mini.reproduction import report, results
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.paper import TABLES

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
JUDGED = ("reproduced", "above", "close", "deviates", "not like for like", "missing")


def write(folder: Path, executed: Sequence[Path], where: Path) -> None:
    """Write every generated part into a folder, from these executed notebooks and the results in ``where``."""
    from biohash_mini.widgets import CircleExplorer, ResultsExplorer
    from book.cover import page as answer

    folder.mkdir(parents=True, exist_ok=True)
    cells = every_cell(where)
    cover = CircleExplorer(sigma=0.6, n_units=12, hash_length=3, points=[0.35, 0.9])
    parts = {
        "summary.md": summary_page(cells),
        "tables.md": tables_page(cells, [path.stem for path in executed], where),
        "status.md": status_page(executed),
        "methods.md": methods_page(),
        "promises.md": promises_page(where),
        "cover.html": cover.html(),
        "answer.md": answer(cells, folder),
        "explorer.html": ResultsExplorer(cell for found in cells.values() for cell in found).html(),
    }
    for name, text in parts.items():
        (folder / name).write_text(text, "utf-8")


# ---------------------------------------------------------------- the reproduction report


def every_cell(where: Path | None = None) -> dict[str, list[dict]]:
    """Return the cells of every table of the paper, in its order, then those of our own experiments, by name."""
    return {name: cells_of(name, where) for name in dict.fromkeys([*TABLES, *EXPERIMENTS])}


def tables_page(cells: dict[str, list[dict]], chapters: Iterable[str] = (), where: Path | None = None) -> str:
    """Return every table with its provenance and the register of deviations, as MyST.

    A chapter is linked only if it is among ``chapters``.
    """
    sections = {name: _section(name, cells[name], set(chapters), where) for name in cells}
    parts = ["## Table by table", *(text for name, text in sections.items() if name in TABLES)]
    parts += ["## Figures, and what the paper leaves open"]
    parts += [text for name, text in sections.items() if name not in TABLES]
    return "\n\n".join([*parts, _register(cells, where)]) + "\n"


def cells_of(name: str, where: Path | None = None) -> list[dict]:
    """Return the cells of a table, all of them missing where the book has no experiment for it yet."""
    if name in EXPERIMENTS:
        return list(report.cells([name], where=where))
    table = TABLES[name]
    blank = dict.fromkeys(("ours", "sd", "difference", "best", "worst", "reason")) | {"seeds": 0, "verdict": "missing"}
    return [
        {"experiment": name, "method": row, "hash_length": k, "paper": value, **blank}
        for row in table.rows
        for k in table.hash_lengths
        if (value := table.value(row, k)) is not None
    ]


def title_of(name: str) -> str:
    """Return the heading of a table: its number and what it holds, or the experiment's own title."""
    if name not in TABLES:
        return EXPERIMENTS[name].title
    table = TABLES[name]
    return f"Table {table.number}: {table.title}, {table.metric}"


def summary_page(cells: dict[str, list[dict]]) -> str:
    """Return how many printed values have which verdict, in all and by table, as MyST."""
    counts = {name: Counter(c["verdict"] for c in found) for name, found in cells.items()}
    total = Counter(c["verdict"] for found in cells.values() for c in found if c["paper"] is not None)
    ours = sum(total.values()) - total["reported only"]
    measured = ours - total["missing"]
    unlike = f", {total['not like for like']} are not like for like" if total["not like for like"] else ""
    seconds = f", {total['measured here']} are seconds and not judged" if total["measured here"] else ""
    words = (
        f"{_head(cells)}\n\n"
        f"The paper prints **{ours}** values that are ours to measure. **{measured}** have been measured: "
        f"**{total['reproduced']}** are reproduced, **{total['above']}** are above, **{total['close']}** are close, "
        f"**{total['deviates']}** deviate{unlike}{seconds}."
    )
    shown = [v for v in JUDGED if any(n[v] for n in counts.values())]
    tiles = "".join(
        f'<div class="tile {_class(v)}"><b>{total[v]}</b><span>{_signed(v)}</span></div>' for v in shown if total[v]
    )
    rows = "".join(_tally(name, n, shown) for name, n in counts.items())
    table = _scroll("Verdicts by table", _row("th", ["", *(MARKS[v] for v in shown), "other"]) + rows, "numbers tally")
    return "\n\n".join([words, _raw(f'<div class="tiles">{tiles}</div>', table)]) + "\n"


def _head(cells: dict[str, list[dict]]) -> str:
    """Return one sentence on what is compared with the paper, what is not, and how many seeds stand behind it."""
    measured = [c for found in cells.values() for c in found if None not in (c["paper"], c["ours"])]
    if not measured:
        return "Nothing has been measured yet."
    alike = sum(c["verdict"] not in ("not like for like", "measured here") for c in measured)
    seeds = sorted(c["seeds"] for c in measured)
    one = sum(n == 1 for n in seeds)
    return (
        f"Of {len(measured)} printed values that have ours beside them, {alike} compare like with like; the others are "
        f"features of another layer, a smaller database, a differently defined score, or seconds. Behind each of ours "
        f"stand {seeds[0]} to {seeds[-1]} seeds, {seeds[len(seeds) // 2]} in the middle, and only one behind {one}."
    )


def _tally(name: str, counts: Counter, shown: list[str]) -> str:
    """Return one line of the summary: a table and how many of its cells have each verdict."""
    other = sum(counts.values()) - sum(counts[v] for v in shown)
    numbers = "".join(f"<td>{n or '·'}</td>" for n in [*(counts[v] for v in shown), other])
    return f'<tr><th scope="row"><a href="#{_anchor(name)}">{escape(_short(name))}</a></th>{numbers}</tr>'


def _signed(verdict: str) -> str:
    mark = MARKS[verdict]
    return verdict if mark == verdict else f"{mark} {verdict}"


def _section(name: str, cells: list[dict], chapters: set[str], where: Path | None) -> str:
    records = [r for r in results.read(name, where) if r["profile"] == "full"]
    lines = [f"({_anchor(name)})=\n### {title_of(name)}"]
    if name in TABLES and name in EXPERIMENTS:
        lines.append(f"Measured as: {EXPERIMENTS[name].title}.")
    if name in EXPERIMENTS and EXPERIMENTS[name].chapter in chapters:
        lines.append(f"Discussed in [](../notebooks/{EXPERIMENTS[name].chapter}.ipynb).")
    if name not in EXPERIMENTS:
        lines.append("The book has no experiment for this table yet.")
    elif not records:
        lines.append(f"Nothing is recorded yet. `biohash run {name} --profile full` measures it.")
    if any(c["verdict"] == "deviates" for c in cells):
        lines.append("For the cells marked ✗, [the register](report-register) says what was tried.")
    if any(c["verdict"] == "not like for like" for c in cells):
        lines.append("For the cells marked ≠, [the register](report-register) says how ours differ from the paper's.")
    if not records and name not in TABLES:
        return "\n\n".join(lines)  # neither we nor the paper have a number to show
    parts = [_scroll(title_of(name), _wide(cells), "numbers")]
    if records:
        long = _scroll(f"Every cell of {name}", _long(cells), "numbers long")
        parts.append(_details("Every cell: difference, seeds, bounds over tie orders, verdict", long))
        parts.append(
            _details("Provenance", _scroll(f"Provenance of {name}", _provenance(name, records, where), "about"))
        )
    return "\n\n".join([*lines, _raw(*parts)])


def _wide(cells: list[dict]) -> str:
    """Return the rows of the table as the paper prints it: ours on top, the paper's below."""
    lengths = sorted({c["hash_length"] for c in cells})
    found = {(c["method"], c["hash_length"]): c for c in cells}
    body = "".join(
        f'<tr><th scope="row">{escape(method)}</th>' + "".join(_cell(found.get((method, k))) for k in lengths) + "</tr>"
        for method in dict.fromkeys(c["method"] for c in cells)
    )
    return _row("th", ["", *(f"k = {k}" for k in lengths)]) + body


def _cell(cell: dict | None) -> str:
    if cell is None:
        return "<td></td>"
    spread = "" if cell["sd"] is None else f"<small> ± {cell['sd']:.1f}</small>"
    ours = "–" if cell["ours"] is None else f"{_number(cell['ours'])}{spread}"
    if cell["ours"] is None and MARKS[cell["verdict"]]:
        ours = MARKS[cell["verdict"]]
    sign = f" {MARKS[cell['verdict']]}" if cell["ours"] is not None else ""
    paper = "" if cell["paper"] is None else f"<small>paper {cell['paper']:g}</small>"
    return f'<td class="{_class(cell["verdict"])}"><span>{ours}{sign}</span>{paper}</td>'


def _long(cells: list[dict]) -> str:
    head = ["method", "k", "paper", "ours", "sd", "seeds", "ours − paper", "worst", "best", "verdict"]
    keys = ["paper", "ours", "sd", "seeds", "difference", "worst", "best"]
    body = (
        f'<tr><th scope="row">{escape(c["method"])}</th><td>{c["hash_length"]}</td>'
        + "".join(f"<td>{_number(c[key])}</td>" for key in keys)
        + f'<td class="{_class(c["verdict"])}">{c["verdict"]}</td></tr>'
        for c in cells
    )
    return _row("th", head) + "".join(body)


def _provenance(name: str, records: list[dict], where: Path | None) -> str:
    """Return the rows that say by which code, when, where and on which data an experiment was measured."""
    commits = Counter(r["commit"] or "unknown" for r in records)
    dates = sorted(r["date"][:10] for r in records)
    versions = {json.dumps(r["versions"]): r["versions"] for r in records}.values()
    machines = Counter(f"{r['machine']}, {r['device']}, {_many(r['threads'], 'thread')}" for r in records)
    sums = dict.fromkeys(r["data_sha256"] for r in records if r.get("data_sha256"))
    seconds = report.cost([name], where=where).loc[name, "seconds"]
    rows = {
        "code": ", ".join(f"<code>{escape(c)}</code> ({_many(n, 'record')})" for c, n in commits.most_common()),
        "measured": dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
        "software": "<br>".join(escape(", ".join(f"{p} {v}" for p, v in found.items())) for found in versions),
        "on": "<br>".join(f"{escape(m)} ({_many(n, 'record')})" for m, n in machines.most_common()),
        "data": f"{escape(EXPERIMENTS[name].data)}, sha256 " + ", ".join(f"<code>{s}</code>" for s in sums),
        "cost": f"{_time(seconds)} in all, at most {max(r['peak_memory_mb'] for r in records):,} MB of memory",
        "again": f"<code>biohash run {name} --profile full</code>",
    }
    return "".join(f'<tr><th scope="row">{key}</th><td>{text}</td></tr>' for key, text in rows.items())


def _register(cells: dict[str, list[dict]], where: Path | None) -> str:
    entries = report.register(where)
    lines = ["(report-register)=\n## The register of deviations"]
    lines.append(
        "Why cells lie more than three points from the paper, and which measure something else than the printed ones. "
        "The entries are those of `results/deviations.toml`; a test fails for a deviating cell that has none."
    )
    kinds = {"deviation": "", "unlike": " (not like for like)"}
    for kind, words in kinds.items():
        for entry in entries.get(kind, []):
            lengths = ", ".join(map(str, entry["hash_lengths"]))
            link = f"[{entry['experiment']}]({_anchor(entry['experiment'])})"
            lines.append(f"- {link}, {', '.join(entry['methods'])}, k = {lengths}{words}: {entry['reason'].strip()}")
    orphans = [c for found in cells.values() for c in found if c["verdict"] == "deviates" and not c["reason"]]
    lines += [f"- {c['experiment']}, {c['method']}, k = {c['hash_length']}: no reason yet." for c in orphans]
    return "\n\n".join(lines)


# ---------------------------------------------------------------- the promises

PARTS = {  # what the campaign counts, and the words for it
    "faults": ("fault", "nothing was lost and nothing broken, or the error was one clear line"),
    "malformed input": ("malformed input", "the answer was an error that names the problem"),
    "load": ("limit", "it was kept"),
}


def promises_page(where: Path | None = None) -> str:
    """Return what the campaign of faults, malformed input and load has counted, each kind when it last ran, as MyST."""
    last = list({r["method"]: r for r in results.read("stress", where)}.values())
    if not last:
        return "Nothing has been recorded yet: `make stress` runs the campaign.\n"
    lines = []
    for part, (noun, words) in PARTS.items():
        mine = [r for r in last if r["part"] == part]
        tried, held = (sum(r[name] for r in mine) for name in ("tried", "held"))
        lines.append(f"- **{tried:,} {noun}{'s' * (tried != 1)}**: in {held:,} of them {words}.")
    head = _row("th", ["", "tried", "held", "measured"])
    rows = "".join(
        f'<tr><th scope="row">{escape(r["name"])}</th><td>{r["tried"]:,}</td><td>{r["held"]:,}</td>'
        f"<td>{escape(_facts(r['facts']))}</td></tr>"
        for r in last
    )
    r = last[-1]
    about = f"Recorded {r['date'][:10]} by `{r['commit']}` with Python {r['versions']['python']} and torch"
    about += f" {r['versions']['torch']}, in `results/stress.jsonl`."
    table = _raw(_scroll("What was tried, and how often it held", head + rows, "numbers"))
    return "\n\n".join(["\n".join(lines), table, about]) + "\n"


def _facts(facts: dict) -> str:
    """Return what a load has measured, in words."""
    units = {"mb": "MB", "us": "µs"}
    words = []
    for name, value in facts.items():
        stem, _, unit = name.removesuffix("_wall").rpartition("_")
        clock = " by the clock" * name.endswith("_wall")
        words.append(f"{stem or unit} {value:,.10g}{f' {units[unit]}' if unit in units else ''}{clock}")
    return ", ".join(words)


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
    return "\n".join([*lines, "", f"Together: {_time(total)} of computing.{where}"]) + "\n"


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
    return f"{host['machine']}, {_many(host['threads'], 'thread')}, {python}, torch {host['versions']['torch']}"


# ---------------------------------------------------------------- small words of HTML


def _raw(*parts: str) -> str:
    return "```{raw} html\n" + "\n".join(parts) + "\n```"


def _scroll(label: str, rows: str, kind: str = "numbers") -> str:
    """Return a table in a frame of its own that scrolls sideways, by keyboard too."""
    frame = f'<div class="report-scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
    return f'{frame}<table class="report {kind}">{rows}</table></div>'


def _details(title: str, body: str) -> str:
    return f'<details class="report-more"><summary>{title}</summary>{body}</details>'


def _row(tag: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def _class(verdict: str) -> str:
    return f"v-{verdict.replace(' ', '-')}"


def _anchor(name: str) -> str:
    return f"report-{name}"


def _short(name: str) -> str:
    return f"{TABLES[name].number} · {name}" if name in TABLES else name


def _number(value: float | None) -> str:
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"


def _many(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"
