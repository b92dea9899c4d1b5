"""A chapter that is executed as the book's build does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat

from book import build

LINES = 6  # cells that print, each a number


def execute(folder: Path, tell: Callable[[object], None]) -> None:
    """Execute a small notebook."""
    build.EXECUTED = folder / "executed"
    notebook = folder / "chapter.ipynb"
    if not notebook.exists():
        cells = ["import time", *(f"time.sleep(0.05)\nprint({i})" for i in range(LINES))]
        page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(t, id=f"c{i}") for i, t in enumerate(cells)])
        nbformat.write(page, part := folder / "chapter.part")
        part.rename(notebook)
    build.execute(notebook)
    tell("done")


def outputs(folder: Path) -> str:
    """Return what the executed copy has printed."""
    page = nbformat.read(folder / "executed" / "chapter.ipynb", as_version=4)
    return "".join(output.text for cell in page.cells for output in cell.get("outputs", []))


def wrong(folder: Path, told: list[str]) -> str:
    """Return what is wrong with an executed copy: one that is taken for whole must be, and stay so."""
    build.EXECUTED = folder / "executed"
    if (folder / "chapter.ipynb").exists() and build.is_fresh(folder / "chapter.ipynb"):
        whole = outputs(folder) == "".join(f"{i}\n" for i in range(LINES))
        return "" if whole else "the executed copy is not whole"
    return "an executed chapter is stale" if told else ""
