"""A figure of the book: vector graphics with a caption, and a second form for narrow screens, its panels stacked."""

import io
import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
from IPython.display import Markdown, display
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

NARROW = 4.1  # inches; at this width the letters of a phone are as large as those of the text
LONG = 16  # letters; on a phone a longer name of a row would leave no room for its dots
ROW = 0.27  # inches from a row of dots to the next, where a name stands between them
DENSE = 400  # points; a cloud of more is drawn as pixels
KIND = "image/svg+xml"


def show(figure: Figure, caption: str, *, alt: str = "", name: str = "", stack: bool = True) -> None:
    """Display a figure with its caption, and return nothing.

    The caption is MyST; its first sentence states the finding. ``alt`` says what the picture shows to readers who do
    not see it; it may stand in the metadata of the cell instead. The book numbers the figure, under the ``name`` by
    which the text may refer to it, and takes the caption from the output; in JupyterLab it follows as a line of its
    own. With ``stack`` there is a second picture for narrow screens in which panels of one row stand one below the
    other.
    """
    for ax in figure.axes:
        _thin_out(ax)
    about: dict[str, Any] = {"caption": " ".join(caption.split()), "alt": alt, "name": name}
    wide = svg(figure)
    if stack and restack(figure):
        about["narrow"] = svg(figure)
    plt.close(figure)
    display({KIND: wide, "text/plain": about["caption"]}, raw=True, metadata={KIND: {"isolated": True}, "book": about})
    display(Markdown(f"*{about['caption']}*"), metadata={"book": "caption"})


def restack(figure: Figure) -> bool:
    """Return whether the figure could be made narrow, which it then is.

    Panels of one row stand in one column, and two rows of three become three of two.
    """
    panels = [ax for ax in figure.axes if ax.get_subplotspec() is not None]
    grids = {id(ax.get_subplotspec().get_gridspec()): ax.get_subplotspec().get_gridspec() for ax in panels}
    if len(grids) != 1:
        return False
    before = next(iter(grids.values())).get_geometry()
    if before != (2, 3) and (1 not in before or len(panels) > 4):
        return False
    shape = (3, 2) if before == (2, 3) else (len(panels), 1)
    height = figure.get_size_inches()[1] / before[0]
    if before[1] > 1:
        below = figure.add_gridspec(*shape)
        for i, ax in enumerate(panels):
            ax.set_subplotspec(below[divmod(i, shape[1])])
            if not ax.get_ylabel() and i and ax.get_shared_y_axes().joined(ax, panels[0]):
                ax.set_ylabel(panels[0].get_ylabel())
            if ax.get_yticks().size:
                ax.tick_params(labelleft=True)
    named = [_names_above(ax) for ax in panels]
    for ax in panels:
        if (legend := ax.get_legend()) and getattr(legend, "_ncols", 1) > 2:  # a row of names becomes two columns
            size = legend.get_texts()[0].get_fontsize()
            ax.legend(*ax.get_legend_handles_labels(), ncols=2, fontsize=size, loc="best")
    for legend in figure.legends:
        legend.set_loc("outside lower center")
    least = max(2.4 / shape[1], ROW * max(map(len, named)) + 0.6)
    figure.set_size_inches(NARROW, max(height, least) * shape[0] + 0.35 * sum(len(g.texts) for g in figure.legends))
    _break_lines(figure, panels)
    return True


def _break_lines(figure: Figure, panels: list[Axes]) -> None:
    """Give legends that are wider than the figure fewer columns, and names of axes that leave it a second line."""
    figure.draw_without_rendering()
    width = figure.bbox.width
    for legend in [*figure.legends]:
        handles = [handle for handle in legend.legend_handles if handle is not None]
        names, size = [t.get_text() for t in legend.texts], legend.texts[0].get_fontsize()
        columns = getattr(legend, "_ncols", 1)
        while columns > 1 and legend.get_window_extent().width > width:
            columns -= 1
            legend.remove()
            legend = figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=size)
            figure.draw_without_rendering()
    for label in [ax.xaxis.label for ax in panels]:
        box = label.get_window_extent()
        if box.width and (box.x0 < 0 or box.x1 > width):
            label.set_text(textwrap.fill(label.get_text(), round(0.6 * len(label.get_text()))))


def _names_above(ax: Axes) -> list[str]:
    """Write long names of rows of dots above their rows, where they take no width from the data, and return them.

    Bars keep theirs beside them, and so do scales of numbers, whose powers of ten are long only as they are written.
    """
    names = [label.get_text() for label in ax.get_yticklabels()]
    if max(map(len, names), default=0) <= LONG or len(ax.patches) >= len(names) or ax.get_yscale() != "linear":
        return []
    look: dict[str, Any] = {
        "xycoords": ax.get_yaxis_transform(),
        "textcoords": "offset points",
        "fontsize": 8,
        "color": "#555555",
    }
    for y, name in zip(ax.get_yticks(), names, strict=True):
        ax.annotate(name, (0, y), xytext=(3, 4), **look)
    ax.tick_params(axis="y", labelleft=False)
    return names


def _thin_out(ax: Axes) -> None:
    """Draw clouds of many points as pixels, of which a file needs fewer."""
    for line in ax.lines:
        if np.size(line.get_xdata()) > DENSE and line.get_marker() not in (None, "None", "", " "):
            line.set_rasterized(True)
    for cloud in ax.collections:
        if np.size(cloud.get_offsets()) > 2 * DENSE:
            cloud.set_rasterized(True)


def svg(figure: Figure) -> str:
    """Return the figure as an SVG of the same bytes at every run, its ground transparent."""
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "biohash", "svg.fonttype": "path", "savefig.dpi": 200}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :]
