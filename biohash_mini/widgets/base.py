"""What every widget is: traits as data, one ES module that draws them, and a page that needs no kernel."""

import itertools
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import anywidget

HERE = Path(__file__).parent
_number = itertools.count()  # a page may hold several widgets

_PAGE = """<style>{css}</style>
<div class="bh" id="{id}"><noscript>{picture}<p>{sentence}</p></noscript></div>
<script type="module">
const {{ esm, state }} = {payload};
const listeners = {{}};
const model = {{ // what a widget asks of its model, for want of a kernel; it has no send()
  get: (name) => state[name],
  set(name, value) {{
    if (state[name] === value) return;
    state[name] = value;
    for (const listener of listeners[`change:${{name}}`] ?? []) listener();
  }},
  on: (event, listener) => (listeners[event] ??= []).push(listener),
  save_changes() {{}},
}};
const url = URL.createObjectURL(new Blob([esm], {{ type: "text/javascript" }}));
const {{ default: widget }} = await import(url);
URL.revokeObjectURL(url);
widget.render({{ model, el: document.getElementById("{id}") }});
</script>"""


def module(name: str) -> str:
    """Return a widget's script as one ES module: the shared helpers take the place of its import of them."""
    own = re.sub(r'import {[^}]*} from "\./common\.js";\n', "", (HERE / name).read_text("utf-8"))
    return (HERE / "common.js").read_text("utf-8") + own


class Widget(anywidget.AnyWidget):
    """A widget that lives in JupyterLab, where Python follows its traits, and in a page without a kernel.

    A subclass sets ``_esm`` to ``module()`` of its script, declares its synchronised traits, and draws
    :meth:`picture` for readers whose scripts are off. The script finds the traits in its ``model``; a model without
    ``send`` has no kernel behind it, and the script then computes for itself.
    """

    _esm = ""
    _css = (HERE / "widgets.css").read_text("utf-8")
    sentence = "This figure moves where scripts are allowed."

    def state(self) -> dict[str, Any]:
        """Return the widget's own synchronised traits, which is all that its script reads."""
        inherited = set(anywidget.AnyWidget.class_trait_names(sync=True)) | {"_esm", "_css", "_anywidget_id"}
        return {name: getattr(self, name) for name in self.trait_names(sync=True) if name not in inherited}

    def picture(self) -> str:
        """Return the widget as a still SVG."""
        raise NotImplementedError

    def html(self) -> str:
        """Return a fragment of a page that runs the widget by itself and asks nothing of any server."""
        payload = json.dumps({"esm": self._esm, "state": self.state()}, separators=(",", ":"))
        return _PAGE.format(
            css=self._css,
            id=f"{type(self).__name__}-{next(_number)}",
            picture=self.picture(),
            sentence=escape(self.sentence, quote=False),
            payload=payload.replace("<", r"\u003c"),  # so that no text can end the script
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": self.html()}, metadata


def svg(box: str, *shapes: str) -> str:
    """Return an SVG of shapes whose view is the box: its left and upper edge, y downwards, its width and height."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" aria-hidden="true">{"".join(shapes)}</svg>'


def path(points: Any, **attributes: object) -> str:
    """Return an SVG path through points of shape (n, 2), y upwards."""
    line = "L".join(f"{x:.1f},{-y:.1f}" for x, y in points)
    return f'<path d="M{line}" {_attributes(attributes)}/>'


def dots(points: Any, r: float, **attributes: object) -> str:
    """Return an SVG circle at each of the points of shape (n, 2), y upwards."""
    return "".join(f'<circle cx="{x:.1f}" cy="{-y:.1f}" r="{r:g}" {_attributes(attributes)}/>' for x, y in points)


def _attributes(attributes: dict[str, object]) -> str:
    return " ".join(f'{name.replace("_", "-")}="{escape(str(value))}"' for name, value in attributes.items())
