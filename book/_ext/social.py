"""What a link to a page shows when it is shared: title, first sentences, the card."""

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LENGTH = 200  # characters of a description


def description(doctree: nodes.document | None, fallback: str) -> str:
    """Return the first paragraph of a page, cut at a word; pages without text get the fallback."""
    found = (p.astext() for p in doctree.findall(nodes.paragraph)) if doctree else iter(())
    text = " ".join(next((t for t in found if len(t) > 40), fallback).split())
    return text if len(text) <= LENGTH else text[:LENGTH].rsplit(" ", 1)[0] + " …"


def add_meta(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Add Open Graph tags to the head of a page."""
    base = (app.config.html_baseurl or "").rstrip("/")
    title, site = context.get("title") or app.config.html_title, app.config.html_title
    tags = {
        "og:type": "book" if page == app.config.root_doc else "article",
        "og:site_name": site,
        "og:title": nodes.unescape(title) if title else site,
        "og:description": description(doctree, site),
        "og:url": f"{base}/{page}.html",
        "og:image": f"{base}/_static/card.png",
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": "Digits, and the few units of a large crowd that answer to them.",
    }
    lines = [f'<meta property="{name}" content="{escape(text)}">' for name, text in tags.items()]
    lines += [
        f'<meta name="description" content="{escape(tags["og:description"])}">',
        '<meta name="twitter:card" content="summary_large_image">',
    ]
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("html-page-context", add_meta)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
