"""The book as EPUB: formulas as MathML, widgets as their still picture, and nothing that asks for scripts."""

import posixpath
import re
import shutil
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from printed import WEBP, Printed, png
from sphinx.application import Sphinx
from sphinx.builders.epub3 import Epub3Builder
from sphinx.config import Config

from biohash_mini import __version__

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
FORMULA = re.compile(r'<(span|div) class="math notranslate nohighlight"([^>]*)>(.*?)</\1>\n?', re.DOTALL)
NUMBER = re.compile(r'^<span class="eqno">\(([\d.]+)\).*?</span>', re.DOTALL)
STYLES = ("ebook.css", "pygments.css")
MENDED = [  # what the pages have that a reader must not, or need not, get, and what stands in its place
    (re.compile(r"<script\b.*?</script>|<button\b.*?</button>|<a class=\"headerlink\".*?</a>", re.DOTALL), ""),
    (re.compile(rf'<link rel="stylesheet"(?![^>]*/({"|".join(STYLES)})")[^>]*>'), ""),
    (
        re.compile(r'<summary[^>]*>\s*<p class="collapsed[^>]*>(.*?)</p>.*?</summary>', re.DOTALL),
        r"<summary>\1</summary>",
    ),
    (re.compile(r' id="(proof|(proof|exercise|solution)-content)"'), ""),  # extensions give these more than once
]


class OnReader(Printed):
    """Replace what only a browser with scripts understands, as on paper."""

    builders = ("epub",)

    def _still(self, node: nodes.raw, svg: str, sentence: str, number: int) -> list[nodes.Node]:
        """Return a widget's picture and what it says to readers without scripts, with the address where it moves."""
        name = f"still-{Path(self.env.docname).stem}-{number}.svg"
        folder = Path(self.app.outdir) / "_images"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(WEBP.sub(png, svg), "utf-8")
        up = "../" * self.env.docname.count("/")
        picture = f'<p><img class="still" src="{up}_images/{name}" alt="{escape(sentence)}" /></p>'
        words = nodes.emphasis("", f"{sentence} It moves in ")
        link = self._link(node, "the online book")
        return [nodes.raw("", picture, format="html"), nodes.paragraph("", "", words, link, nodes.Text("."))]

    def _link(self, node: nodes.Node, text: str) -> nodes.reference:
        """Return a link to the page of the site that a node comes from."""
        return nodes.reference(text, text, refuri=f"{self.config.html_baseurl}{self.env.docname}.html")

    def _fit(self, table: nodes.table) -> None:
        """Leave a table as it is: a reader's screen may have any width."""


class Ebook(Epub3Builder):
    """Sphinx's builder, after which the formulas become MathML, by the typesetter that the pages carry."""

    name = "epub"

    def handle_finish(self) -> None:
        """Mend pages and pictures, then pack them."""
        pages = {path: path.read_text("utf-8") for path in Path(self.outdir).rglob("*.xhtml")}
        for before, after in MENDED:
            pages = {path: before.sub(after, text) for path, text in pages.items()}
        found = {m[0]: formula(m[3]) for text in pages.values() for m in FORMULA.finditer(text)}
        typeset = dict(zip(found, mathml([tex for _, tex in found.values()], Path(self.srcdir)), strict=True))

        def replace(match: re.Match) -> str:
            number = found[match[0]][0]
            tag = f'<span class="eqno">({number})</span>' if number else ""
            return f'<{match[1]} class="math"{match[2]}>{tag}{typeset[match[0]]}</{match[1]}>'

        for path, text in pages.items():
            path.write_text(FORMULA.sub(replace, text), "utf-8")
        for path in Path(self.outdir).rglob("*.svg"):
            path.write_text(sound(path.read_text("utf-8")), "utf-8")
        super().handle_finish()

    def copy_static_files(self) -> None:
        """Keep the styles and the cover of what the site brings."""
        super().copy_static_files()
        for path in (Path(self.outdir) / "_static").iterdir():
            if path.name not in (*STYLES, "card.png"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def get_toc(self) -> None:
        """Collect the contents; their root lies in a folder, from which Sphinx leads back and forth."""
        super().get_toc()
        for entry in self.refnodes:
            entry["refuri"] = posixpath.normpath(entry["refuri"])

    def toc_metadata(self, level: int, navpoints: list[Any]) -> dict[str, Any]:
        """Return what the old table of contents says: the same identifier as the new one."""
        return super().toc_metadata(level, navpoints) | {"uid": escape(self.config.epub_identifier)}

    def build_content(self) -> None:
        """Write the list of contents, which has to say on which pages there are formulas."""
        super().build_content()
        package = Path(self.outdir) / "content.opf"

        def declare(match: re.Match) -> str:
            page = (Path(self.outdir) / match[1]).read_text("utf-8")
            return match[0].replace(" />", ' properties="mathml" />') if "<math" in page else match[0]

        package.write_text(
            re.sub(r'<item id="[^"]*" href="([^"]+\.xhtml)"[^>]* />', declare, package.read_text("utf-8")), "utf-8"
        )


def sound(svg: str) -> str:
    """Return a drawing that obeys SVG 1.1: blanks have an empty outline, a picture that occurs twice has no name."""
    svg = re.sub(r"<path (?![^>]*\bd=)", '<path d="" ', svg)
    return re.sub(r' id="image\w+"', "", svg).replace(
        ' image-rendering="pixelated"', ' style="image-rendering: pixelated"'
    )


def formula(body: str) -> tuple[str, str]:
    r"""Return the number, if any, and the LaTeX of a formula as Sphinx wrote it, ``\(…\)`` or ``\[…\]``."""
    number = NUMBER.match(body)
    tex = unescape(NUMBER.sub("", body)).strip()
    return number[1] if number else "", tex


def mathml(formulas: list[str], source: Path) -> list[str]:
    """Return formulas as MathML."""
    from playwright.sync_api import sync_playwright

    settings = '{loader: {load: ["core", "input/tex-base", "[tex]/ams"]}, tex: {packages: ["base", "ams"]}}'
    script = (source / "book" / "_static" / "mathjax" / "startup.js").as_uri()
    page_file = source / "formulas.html"
    page_file.write_text(f'<!doctype html><script>MathJax = {settings}</script><script src="{script}"></script>')
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=next(filter(None, map(shutil.which, BROWSERS))), args=FLAGS)
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.evaluate("MathJax.startup.promise")
        display = [tex.startswith((r"\[", r"\begin")) for tex in formulas]
        bare = [re.sub(r"^\\[(\[]|\\[)\]]$", "", tex) for tex in formulas]
        found: list[str] = page.evaluate(
            "(all) => all.map(([tex, display]) => MathJax.tex2mml(tex, { display }))",
            list(zip(bare, display, strict=True)),
        )
        browser.close()
    if wrong := [tex for tex, result in zip(formulas, found, strict=True) if "<merror" in result]:
        raise ValueError(f"formulas that could not be typeset: {wrong}")
    return [re.sub(r"\n\s*|\s(data-[\w-]+|class)=\"[^\"]*\"", "", text) for text in found]


def describe(app: Sphinx, config: Config) -> None:
    """Tell the package its address, its version and its cover."""
    config.epub_identifier, config.version = config.html_baseurl, __version__
    config.epub_cover = ("_static/card.png", "")


def without_theme(app: Sphinx) -> None:
    """Keep the site's theme, whose buttons and scripts a reader has no use for, away from the pages of the EPUB."""
    if app.builder.name == "epub":
        app.events.listeners["html-page-context"].clear()
        app.config.html_domain_indices = False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the builder and the transform."""
    app.connect("config-inited", describe)
    app.connect("builder-inited", without_theme, priority=900)
    app.add_builder(Ebook, override=True)
    app.add_post_transform(OnReader)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
