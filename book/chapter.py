"""How an executed notebook becomes a page: the answer first, numbered figures, folds that say what they hold.

Tags of cells decide: those tagged ``lead`` come right below the title, wherever they were computed; ``parameters`` and
``claims`` are folded, as ``hide-input`` is.
"""

from __future__ import annotations

import re
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
LITERAL = re.compile(r"(`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\{[^}]*\})")  # code, formulas, targets of links, roles


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
            _typeset(output.get("data", {}))
            if isinstance(about := output.get("metadata", {}).get("book"), dict):
                number += 1
                alt = about["alt"] or cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
                output.data = {"text/markdown": _figure(output.data[SVG], about | {"alt": alt}, stem, number, folder)}
                output.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = found
    return page


def minus(text: str) -> str:
    """Return MyST in which a number below zero has the sign of a minus and not a hyphen; code and formulas stay."""
    parts = LITERAL.split(text)
    return "".join(p if i % 2 else re.sub(r"(?<![\w.,/-])-(?=\d)", "−", p) for i, p in enumerate(parts))


def _typeset(data: dict[str, Any]) -> None:
    """Give the words and tables that a cell has computed the page's signs, and every table the look of the others."""
    if "text/markdown" in data:
        data["text/markdown"] = minus("".join(data["text/markdown"]))
    if "<table" in (html := "".join(data.get("text/html", ""))):
        html = html.replace('<table id="T_', '<table class="dataframe" id="T_')  # pandas gives styled ones no class
        html = re.sub(r"(<td[^>]*>)-(?=0(?:\.0+)?</td>)", r"\1", html)  # a zero has no sign
        data["text/html"] = re.sub(r"(<td[^>]*>)-(?=\d)", r"\1−", html)


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
    return "\n".join([f"````{{figure}} {file}.svg", *lines, "", minus(about["caption"]), "````"])
