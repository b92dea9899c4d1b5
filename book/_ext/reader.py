"""What stands around every chapter: how to cite it, what a word means, where to mend it, the book as a file."""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from biohash_mini import __version__

GLOSSARY = "book/notation"
SHARED = ("proof-content", "exercise-content", "solution-content")  # ids that extensions give more than once
WHOLE = [f"bio-inspired-hashing.{kind}" for kind in ("pdf", "epub")]  # beside the pages, if made before they were built
SOURCES = "main"  # the branch on which changes are made; the launch buttons have one of their own


def bibtex(app: Sphinx, page: str, title: str) -> str:
    """Return the entry of a chapter."""
    number = page.rsplit("/", 1)[1].split("_")[0]
    fields = {
        "author": f"{{{app.config.author}}}",
        "title": f"{{{title}}}",
        "booktitle": app.config.html_title,
        "chapter": str(int(number)),
        "year": re.search(r"\d{4}", app.config.copyright)[0],
        "url": f"{app.config.html_baseurl}{page}.html",
        "note": f"biohash\\_mini {__version__}",
    }
    body = ",\n".join(f"  {name:9} = {{{text}}}" for name, text in fields.items())
    return f"@incollection{{biohash-book-{number},\n{body}\n}}"


class CiteThis(SphinxPostTransform):
    """End every chapter with a fold that says how to cite it."""

    default_priority = 900
    builders = ("html",)

    def run(self, **options: Any) -> None:
        """Add the fold to the last line of the chapter's first section."""
        if not self.env.docname.startswith("notebooks/"):
            return
        entry = escape(bibtex(self.app, self.env.docname, self.env.titles[self.env.docname].astext()))
        summary = "<summary>Cite this chapter</summary>"
        fold = f'<details class="cite-this">{summary}<pre tabindex="0">{entry}</pre></details>'
        next(iter(self.document.findall(nodes.section))).append(nodes.raw("", fold, format="html"))


class FoldedProofs(SphinxPostTransform):
    """Fold every proof: the claim stands in the text, the reason a click away."""

    default_priority = 5  # while proofs are still boxes of their own
    builders = ("html",)

    def run(self, **options: Any) -> None:
        """Put each proof into a fold, without the word that is its name; ids that every box has are taken away."""
        for box in [n for n in self.document.findall(nodes.admonition) if "proof" in n["ids"]]:
            word = next(t for t in box.findall(nodes.Text) if t.startswith("Proof. "))
            word.parent.replace(word, nodes.Text(word.removeprefix("Proof. ")))
            head = nodes.raw("", '<details class="proof-fold"><summary>Proof</summary>', format="html")
            place = box.parent.index(box)  # replace_self would hand the id of the box, the same for all, to the fold
            box.parent[place : place + 1] = [head, *box.children, nodes.raw("", "</details>", format="html")]
        for body in self.document.findall(nodes.section):
            body["ids"] = [name for name in body["ids"] if name not in SHARED]


class Meanings(SphinxPostTransform):
    """Let a word of the glossary say what it means when the pointer rests on it."""

    default_priority = 900
    builders = ("html",)

    def run(self, **options: Any) -> None:
        """Give every link to the glossary the first sentence of the definition as its title."""
        if self.env.docname == GLOSSARY:
            return
        links = [n for n in self.document.findall(nodes.reference) if "#term-" in n.get("refuri", "")]
        meanings = self._meanings() if links else {}
        for link in links:
            if words := meanings.get(link["refuri"].split("#")[1]):
                link["reftitle"] = words

    def _meanings(self) -> dict[str, str]:
        found = {}
        for item in self.env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
            text = " ".join(item.next_node(nodes.definition).astext().split())
            first = re.split(r"(?<=[.:]) (?=[A-Z])", text)[0]
            found |= {name: first for term in item.findall(nodes.term) for name in term["ids"]}
        return found


def mend_links(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Point "suggest an edit" to the branch of the sources, and say in plain words what the buttons do."""
    words = {
        "source-edit-button": "Suggest an edit",
        "source-issues-button": "Report a problem",
        "source-repository-button": "Repository",
    }
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("label") in words:
                button["text"] = button["tooltip"] = words[button["label"]]
            if button.get("label") == "source-edit-button":
                button["url"] = re.sub(r"/edit/[^/]+/", f"/edit/{SOURCES}/", button["url"])
            if button.get("label") == "source-issues-button":
                button["url"] = button["url"].split("?")[0] + f"?title=On%20{page}%3A%20"


def offer_whole(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Let the download button begin with the whole book, and say that the theme's own prints one page."""
    there = [name for name in WHOLE if (Path(app.srcdir) / "book" / "_beside" / name).exists()]
    for group in context.get("header_buttons", []):
        if group.get("label") != "download-buttons":
            continue
        for button in group["buttons"]:
            if button["label"] == "download-pdf-button":
                button["text"], button["tooltip"] = "Print this page", "Print this page"
        for name in reversed(there):
            kind = name.rsplit(".", 1)[1]
            link = {"type": "link", "url": context["pathto"](name, 1), "icon": "fas fa-book"}
            words = f"The whole book, {kind.upper()}"
            group["buttons"].insert(
                0, link | {"text": words, "tooltip": words, "label": f"download-book-{kind}-button"}
            )


def mend_roles(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Give the entries of the list of references the role that a list asks for, not the one that was withdrawn."""
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def setup(app: Sphinx) -> dict[str, bool]:
    """Register transforms and hooks, those of the buttons after the theme's own."""
    app.add_post_transform(CiteThis)
    app.add_post_transform(FoldedProofs)
    app.add_post_transform(Meanings)
    app.connect("html-page-context", mend_links, priority=901)
    app.connect("html-page-context", offer_whole, priority=901)
    app.connect("html-page-context", mend_roles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
