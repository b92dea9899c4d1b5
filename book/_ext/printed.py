"""The book on paper: HTML tables become tables, widgets their still picture, and no table is wider than the page."""

import base64
import io
import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from PIL import Image
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

SIZES = {"small": 100, "footnotesize": 116}  # of letters, and for how many of them a line has room
GAP = 3  # letters between two columns
EM = 2.1  # letters to an em
LONG = 24  # lines; a longer table may go on over the page
NUMBER = re.compile(r"[-−+±<>≤≥~]?\s*[\d.,]+\s*%?|[-–·]?|nan|None", re.IGNORECASE)
WEBP = re.compile(r'data:image/webp;base64,([^"]+)')  # librsvg does not read it


def table_of(tag: Tag) -> nodes.table:
    """Return an HTML table as nodes: rows without a data cell are the head, a cell that spans others is the first."""
    rows, texts = tag.find_all("tr"), {}
    for i, tr in enumerate(rows):
        j = 0
        for cell in tr.find_all(["th", "td"]):
            while (i, j) in texts:
                j += 1
            tall, wide = int(cell.get("rowspan", 1)), int(cell.get("colspan", 1))
            texts |= {place: [] for place in product(range(i, i + tall), range(j, j + wide))}
            texts[i, j] = _lines(cell)
            j += wide
    count = 1 + max(j for _, j in texts)
    grid = [[texts.get((i, j), []) for j in range(count)] for i in range(len(rows))]
    head = sum(not tr.find("td") for tr in rows)
    if head == 2 and not any(a and b for a, b in zip(*grid[:2], strict=True)):  # names of columns, name of the index
        grid[:2], head = [[a or b for a, b in zip(*grid[:2], strict=True)]], 1
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in range(count)), cols=count)
    group += [nodes.thead("", *map(_row, grid[:head]))] if head else []
    group += nodes.tbody("", *map(_row, grid[head:]))
    return nodes.table("", group)


def _lines(cell: Tag) -> list[str]:
    """Return the text of a cell; in the report a span and what is small stand on two lines."""
    parts = cell.find_all(["span", "small"], recursive=False)
    texts = [" ".join(part.get_text().split()) for part in (parts if cell.span else [cell])]
    return [text for text in texts if text]


def _row(cells: list[list[str]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", *(nodes.paragraph(t, t) for t in lines)) for lines in cells))


def layout(rows: list[list[str]], head: int) -> tuple[str, str, int]:
    """Return the size of the letters, the specification of the columns, and how many lines the table has at most.

    Columns keep their width if a line has room for all of them; otherwise the widest are cut to one width, the largest
    for which there is room, and their text is broken.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(len(line) for text in column for line in text.split("\n")) for column in columns]
    size = next((s for s, room in SIZES.items() if sum(widths) + GAP * len(widths) <= room), "footnotesize")
    room, cut = SIZES[size] - GAP * len(widths), max(widths)
    while sum(min(w, cut) for w in widths) > room:
        cut -= 1
    kinds = []
    for column, width in zip(columns, widths, strict=True):
        side = "r" if all(map(NUMBER.fullmatch, column[head:])) else "l"
        ragged = r"\raggedleft" if side == "r" else r"\raggedright"
        broken = width > cut or any("\n" in text for text in column)
        kinds.append(rf">{{{ragged}\arraybackslash}}p{{{min(width, cut) / EM:.1f}em}}" if broken else side)
    lines = sum(max(text.count("\n\n") + 1 + len(text) // (cut + 1) for text in row) for row in rows)
    return size, "{" + "".join(kinds) + "}", lines


def png(match: re.Match) -> str:
    """Return an embedded WebP image as an embedded PNG image."""
    file = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(match[1]))).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


class Printed(SphinxPostTransform):
    """Replace what only a browser understands, then fit the tables to the page."""

    default_priority = 10  # after the outputs of cells have been chosen, before links are resolved
    builders = ("latex",)

    def run(self, **options: Any) -> None:
        """Work on the whole book at once, as LaTeX gets it."""
        for number, node in enumerate([n for n in self.document.findall(nodes.raw) if n["format"] == "html"]):
            node.replace_self(self._printed(node, BeautifulSoup(node.astext(), "html.parser"), number))
        for table in list(self.document.findall(nodes.table)):
            self._fit(table)
        for box in list(self.document.findall(nodes.admonition)):
            if not isinstance(box[0], nodes.title):  # a proof: it says so itself, and a box would have an empty title
                box.replace_self(box.children)

    def _printed(self, node: nodes.raw, page: BeautifulSoup, number: int) -> list[nodes.Node]:
        if still := page.find("noscript"):
            return self._still(
                node, re.search("<svg.*?</svg>", node.astext(), re.DOTALL)[0], still.p.get_text(), number
            )
        folds = [fold.extract().summary.get_text() for fold in page.find_all("details")]
        found: list[nodes.Node] = [table_of(table) for table in page.find_all("table")]
        if folds:
            found.append(nodes.paragraph("", "Online: ", self._link(node, "; ".join(folds))))
        return found

    def _still(self, node: nodes.raw, svg: str, sentence: str, number: int) -> list[nodes.Node]:
        """Return a widget's picture and what it says to readers without scripts, with the address where it moves."""
        name = f"still-{number}.pdf"
        command = ["rsvg-convert", "--format", "pdf", "--output", str(Path(self.app.outdir) / name)]
        subprocess.run(command, input=WEBP.sub(png, svg), text=True, check=True)
        size = r"height=5cm,width=\linewidth,keepaspectratio"
        picture = rf"{{\noindent\centering\includegraphics[{size}]{{{name}}}\par}}"  # stays with the heading above
        words = nodes.emphasis("", f"{sentence} It moves in ")
        link = self._link(node, "the online book")
        return [nodes.raw("", picture, format="latex"), nodes.paragraph("", "", words, link, nodes.Text("."))]

    def _link(self, node: nodes.Node, text: str) -> nodes.reference:
        """Return a link to the page of the site that a node comes from."""
        while node and not isinstance(node, addnodes.start_of_file):
            node = node.parent
        page = node["docname"] if node else self.config.root_doc
        return nodes.reference(text, text, refuri=f"{self.config.html_baseurl}{page}.html")

    def _fit(self, table: nodes.table) -> None:
        head = table.next_node(nodes.thead)
        rows = [[entry.astext() for entry in row] for row in table.findall(nodes.row)]
        size, spec, lines = layout(rows, len(head) if head else 0)
        table["classes"] = ["longtable"] if lines > LONG else []
        before = nodes.raw("", rf"\begingroup\{size}", format="latex")
        after = nodes.raw("", r"\endgroup", format="latex")
        table.replace_self([before, addnodes.tabular_col_spec(spec=spec), table, after])


class NoEmptyChapters(SphinxPostTransform):
    """Drop the page of references, whose list LaTeX sets at the end, under a title of its own."""

    default_priority = 800  # after the list has been moved
    builders = ("latex",)

    def run(self, **options: Any) -> None:
        """Remove sections that hold nothing but their title."""
        for section in list(self.document.findall(nodes.section)):
            if len(section) == 1 and isinstance(section[0], nodes.title):
                section.parent.remove(section)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transforms; they touch nothing but the LaTeX of the book."""
    app.add_post_transform(Printed)
    app.add_post_transform(NoEmptyChapters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
