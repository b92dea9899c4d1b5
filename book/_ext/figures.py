"""Figures of the chapters as the page shows them: one picture for light and one for dark pages, wide and narrow ones.

A chapter's pictures are transparent SVGs drawn for a white page (``_figures/*.svg``, beside them ``*.narrow.svg``). The
dark forms are the same drawings with other inks: greys turn round, colours become as light as they have to be.
"""

import colorsys
import re
import subprocess
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

GROUND = (0x12, 0x12, 0x12)  # of a dark page
INK = "#e3e6ea"
LEAST = 4.5  # contrast of a colour with the dark page
NARROW = "(max-width: 560px)"
HEX = re.compile(r"#[0-9a-fA-F]{6}\b")


def luminance(rgb: tuple[int, ...]) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Return the contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_dark(color: str) -> str:
    """Return what a colour of a white page becomes on a dark one: greys turn round, colours keep their hue."""
    rgb = tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))
    if max(rgb) - min(rgb) < 12:  # a grey: black to ink, white to the ground
        share = sum(rgb) / (3 * 255)
        ink = [int(INK[i : i + 2], 16) for i in (1, 3, 5)]
        return "#" + "".join(f"{round(i + share * (g - i)):02x}" for i, g in zip(ink, GROUND, strict=True))
    hue, light, full = colorsys.rgb_to_hls(*(v / 255 for v in rgb))
    while contrast(rgb, GROUND) < LEAST:
        light += 0.02
        rgb = tuple(round(255 * v) for v in colorsys.hls_to_rgb(hue, light, full))
    return "#" + "".join(f"{v:02x}" for v in rgb)


def dark(svg: str) -> str:
    """Return a drawing for a dark page. Letters without a colour of their own are black by default, so it is set."""
    svg = re.sub(r'(xlink:href="data:[^"]*")|(#[0-9a-fA-F]{6}\b)', lambda m: m[1] or on_dark(m[2]), svg)
    return svg.replace("<svg ", f'<svg fill="{INK}" ', 1)


class Pictures(SphinxPostTransform):
    """Give every figure of a chapter its four pictures."""

    default_priority = 10
    builders = ("html",)

    def run(self, **options: Any) -> None:
        """Replace the image of each figure by two ``picture`` elements, one for light, one for dark pages."""
        for image in list(self.document.findall(nodes.image)):
            if "_figures/" in image["uri"] and isinstance(image.parent, nodes.figure):
                image.replace_self(nodes.raw("", self._html(image), format="html"))

    def _html(self, image: nodes.image) -> str:
        source, target = Path(self.app.srcdir) / image["uri"], Path(self.app.outdir) / "_images"
        target.mkdir(parents=True, exist_ok=True)
        narrow = source.with_suffix(".narrow.svg")
        up = "../" * self.env.docname.count("/") + "_images/"
        parts = []
        for look in ("light", "dark"):
            names = {}
            for file in filter(Path.exists, (source, narrow)):
                text = file.read_text("utf-8")
                names[file] = f"{file.stem}.dark.svg" if look == "dark" else file.name
                (target / names[file]).write_text(dark(text) if look == "dark" else text, "utf-8")
            size = dict(re.findall(r'\b(width|height)="([\d.]+)pt"', source.read_text("utf-8")[:600]))
            box = " ".join(f'{key}="{round(float(value) * 4 / 3)}"' for key, value in size.items())
            other = f'<source media="{NARROW}" srcset="{up}{names[narrow]}">' if narrow in names else ""
            alt = escape(image.get("alt", ""))
            kind = "dark-light" if narrow in names else "dark-light wide"  # the first keeps the theme from dimming it
            picture = f'<img src="{up}{names[source]}" alt="{alt}" {box} loading="lazy" class="{kind}">'
            parts.append(f'<picture class="on-{look}">{other}{picture}</picture>')
        return "".join(parts)


class PrintedPictures(SphinxPostTransform):
    """LaTeX takes the wide picture as PDF."""

    default_priority = 10
    formats = ("latex",)

    def run(self, **options: Any) -> None:
        """Convert the drawing of each figure, and name the result in its place."""
        for image in list(self.document.findall(nodes.image)):
            if "_figures/" not in image["uri"]:
                continue
            source = Path(self.app.srcdir) / image["uri"]
            command = ["rsvg-convert", "--format", "pdf", "--output", str(source.with_suffix(".pdf")), str(source)]
            subprocess.run(command, check=True)
            image["uri"] = image["uri"].removesuffix(".svg") + ".pdf"
            image["candidates"] = {"application/pdf": image["uri"]}
            self.env.images.add_file(self.env.docname, image["uri"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transforms."""
    app.add_post_transform(Pictures)
    app.add_post_transform(PrintedPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
