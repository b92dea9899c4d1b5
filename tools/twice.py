"""Execute chapters twice and compare all that they print: ``python -m tools.twice [NOTEBOOK ...]`` (default: all).

The counts are recorded in ``results/stress.jsonl``, for the page of promises. A claim that fails ends a chapter, so
both runs hold all claims. What follows from a clock is not compared: outputs of cells that read one, or use a name that
such a line has set.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import nbformat

from biohash_mini.reproduction.results import provenance
from book import build

from .stress import Tally
from .stress.__main__ import record

CLOCKS = {"perf_counter", "process_time", "thread_time", "monotonic", "time", "timeit"}
CLOCKS |= {"growth.measure", "growth.slopes"}  # of the package


def _names(node: ast.AST, kind: type[ast.expr_context]) -> set[str]:
    """Return the names in a statement that are used (Load), attributes bare and whole among them, or set (Store)."""
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, kind)}
    if kind is ast.Load:
        attributes = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
        return found | {part.attr for part in attributes} | {ast.unparse(part) for part in attributes}
    loops = [part.target for part in ast.walk(node) if isinstance(part, ast.comprehension)]  # forgotten at their end
    return found - {name for target in loops for name in _names(target, ast.Store)}


def _filled(node: ast.AST) -> set[str]:
    """Return the names of what a statement, or a function, puts entries into."""
    targets = [target for part in ast.walk(node) if isinstance(part, ast.Assign) for target in part.targets]
    places = [part for t in targets if isinstance(t, ast.Subscript) for part in ast.walk(t.value)]
    return {part.id for part in places if isinstance(part, ast.Name)}


def _flows(body: Sequence[ast.stmt]) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the names that flow into each simple statement of a block, and those that it sets or fills."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name):
                yield _names(statement, ast.Load), {name}
                yield from _flows(
                    [part for part in ast.walk(statement) if isinstance(part, ast.Assign) and _filled(part)]
                )
            case ast.For(target=target, iter=values):
                yield _names(values, ast.Load), _names(target, ast.Store)
                yield from _flows([*statement.body, *statement.orelse])
            case ast.While() | ast.If() | ast.With() | ast.Try():
                yield from _flows([*statement.body, *getattr(statement, "orelse", [])])
            case ast.stmt() if not isinstance(statement, ast.Import | ast.ImportFrom):
                yield _names(statement, ast.Load), _names(statement, ast.Store) | _filled(statement)


def timed(sources: Sequence[str]) -> list[bool]:
    """Return for each cell whether what it prints may follow from a clock."""
    clocks, found, modules = set(CLOCKS), [], set()
    for source in sources:
        source = re.sub(r"^[ \t]*[%!].*$", "pass", source, flags=re.MULTILINE)  # commands of the notebook
        tree, reads = ast.parse(source), False
        imports = [part for part in ast.walk(tree) if isinstance(part, ast.Import | ast.ImportFrom)]
        modules |= {(name.asname or name.name).split(".")[0] for part in imports for name in part.names}
        for used, bound in _flows(tree.body):
            if used & clocks:
                reads, clocks = True, clocks | bound - modules  # an entry of os.environ makes no clock of os
        found.append(reads)
    return found


def _joined(outputs: Sequence[nbformat.NotebookNode]) -> Iterator[nbformat.NotebookNode]:
    """Yield outputs, what is printed piece by piece as one: where a piece ends follows from a clock."""
    for kind, several in groupby(outputs, lambda output: output.get("name")):
        if kind is None:
            yield from several
        else:
            yield nbformat.v4.new_output("stream", name=kind, text="".join(output.text for output in several))


def printed(page: nbformat.NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield the number and text of every output that must not change: what is printed, shown as text or as prose."""
    cells = [cell for cell in page.cells if cell.cell_type == "code"]
    for number, (cell, free) in enumerate(zip(cells, timed([cell.source for cell in cells]), strict=True), 1):
        for place, output in enumerate([] if free else _joined(cell.outputs)):
            name, data = f"cell {number}, output {place + 1}", output.get("data", {})
            if output.output_type == "stream" and output.name == "stdout":
                yield name, output.text
            elif "application/vnd.jupyter.widget-view+json" not in data:
                text = "\n".join(str(data[kind]) for kind in ("text/plain", "text/markdown") if kind in data)
                yield name, re.sub(r"0x[0-9a-f]{6,}", "an address", text)


def differences(first: Path, second: Path) -> tuple[int, list[str]]:
    """Return how many outputs of two executed copies were compared, and which differ."""
    one, two = (dict(printed(nbformat.read(path, as_version=4))) for path in (first, second))
    names = {**one, **two}
    different = [name for name in names if one.get(name) != two.get(name)]
    return len(names), [f"{name}: {one.get(name)!r} and {two.get(name)!r}" for name in different]


def main(arguments: Sequence[str]) -> int:
    """Execute what is asked for, a second time beside the copy of the book, and return the exit code."""
    book, different = build.EXECUTED, 0
    provenance("cpu")  # notes the code as it is now, whatever is edited meanwhile
    for chapter in [Path(name).resolve() for name in arguments] or build.notebooks():
        first = build.execute(chapter)
        with tempfile.TemporaryDirectory() as place:
            build.EXECUTED = Path(place)
            compared, found = differences(first, build.execute(chapter))
            build.EXECUTED = book
        different += len(found)
        record([Tally("chapters", chapter.stem, compared, compared - len(found), found)])
        print(f"{chapter.stem}: {compared} outputs compared, {len(found)} differ", *found, sep="\n  ", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
