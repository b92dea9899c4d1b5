"""How an executed notebook becomes a page: the answer first, numbered figures, folds that say what they hold.

Tags of cells decide: those tagged ``lead`` come right below the title, wherever they were computed; ``parameters`` and
``claims`` are folded, as ``hide-input`` is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

PROMPTS = {  # what the line says behind which a cell is folded, by its tag; the first that fits
    "parameters": "Parameters of this chapter",
    "setup": "Imports",
    "claims": "Claims checked here",
    "hide-input": "Code",
    "hide-output": "Output",
    "hide-cell": "Code and its output",
}
FOLDED = ("parameters", "setup", "claims")
SVG = "image/svg+xml"


def prepare(page: Any, stem: str, folder: Path) -> Any:
    """Return an executed notebook as the book shows it; pictures of its figures go to ``_figures`` in the folder."""
    page.cells = [cell for cell in page.cells if "injected-parameters" not in tags(cell)]
    page.metadata.pop("widgets", None)  # a kernel's copy of what the cells' outputs carry
    first, *others = page.cells
    page.cells = [first, *(c for c in others if "lead" in tags(c)), *(c for c in others if "lead" not in tags(c))]
    number = 0
    for cell in page.cells:
        _fold(cell)
        found = [output for output in cell.get("outputs", []) if output.get("metadata", {}).get("book") != "caption"]
        for output in found:
            if isinstance(about := output.get("metadata", {}).get("book"), dict):
                number += 1
                alt = about["alt"] or cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
                output.data = {"text/markdown": _figure(output.data[SVG], about | {"alt": alt}, stem, number, folder)}
                output.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = found
    return page


def tags(cell: Any) -> list[str]:
    """Return the tags of a cell."""
    return cell.metadata.get("tags", [])


def _fold(cell: Any) -> None:
    """Fold a cell whose tags say so, and name what is folded."""
    if set(FOLDED) & set(tags(cell)) and "hide-input" not in tags(cell):
        cell.metadata["tags"] = [*tags(cell), "hide-input"]
    if words := next((words for tag, words in PROMPTS.items() if tag in tags(cell)), None):
        cell.metadata.setdefault("mystnb", {}).setdefault("code_prompt_show", words)
        cell.metadata["mystnb"].setdefault("code_prompt_hide", words)


def _figure(svg: str, about: dict[str, str], stem: str, number: int, folder: Path) -> str:
    """Write the pictures of a figure, wide and, where there is one, narrow, and return its MyST."""
    (folder / "_figures").mkdir(exist_ok=True)
    file = f"_figures/{stem}-{number}"
    (folder / f"{file}.svg").write_text(svg, "utf-8")
    if narrow := about.get("narrow"):
        (folder / f"{file}.narrow.svg").write_text(narrow, "utf-8")
    options = {"name": about.get("name") or f"fig-{stem}-{number}", "alt": " ".join(about["alt"].split())}
    lines = [f":{key}: {value}" for key, value in options.items() if value]
    return "\n".join([f"````{{figure}} {file}.svg", *lines, "", about["caption"], "````"])
