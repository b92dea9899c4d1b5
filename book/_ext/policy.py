"""What a page may load, said to the browser: nothing from any other server.

The theme and the widgets have their scripts and styles in the page, so those stay allowed there; a widget's module
comes from a ``blob:`` that the page itself has made, and pictures and fonts may be part of the page.
"""

from typing import Any

from sphinx.application import Sphinx

POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
META = f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(f"{k} {v}" for k, v in POLICY.items())}">'


def add_policy(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Put the policy first among the tags of a page's head."""
    context["metatags"] = "\n".join([META, context.get("metatags", "")])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook after those that add other tags."""
    app.connect("html-page-context", add_policy, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
