"""Keep each page's list of scripts short: no duplicates, and nothing of Thebe, which this book does not use."""

from typing import Any

from sphinx.application import Sphinx


def clean_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Drop Thebe's scripts (they are declared twice and name a foreign host) and repeated entries."""
    kept: dict[tuple[str, str], Any] = {}
    for script in context.get("script_files", []):
        filename, body = (
            str(getattr(script, "filename", script)),
            str(getattr(script, "attributes", {}).get("body", "")),
        )
        if "thebe" not in (filename + body).lower():
            kept.setdefault((filename, body), script)
    context["script_files"] = list(kept.values())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook after those of the other extensions."""
    app.connect("html-page-context", clean_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
