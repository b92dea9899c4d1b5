"""A figure of the book: vector graphics with a caption, and a second form for narrow screens, its panels stacked."""

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from IPython.display import Markdown, display
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

NARROW = 4.1  # inches; at this width the letters of a phone are as large as those of the text
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
    """Return whether the figure could be made narrow, which it then is: panels of one row stand in one column."""
    panels = [ax for ax in figure.axes if ax.get_subplotspec() is not None]
    grids = {id(ax.get_subplotspec().get_gridspec()): ax.get_subplotspec().get_gridspec() for ax in panels}
    if len(grids) != 1 or 1 not in (grid := next(iter(grids.values()))).get_geometry() or len(panels) > 4:
        return False
    height = figure.get_size_inches()[1] if grid.nrows == 1 else figure.get_size_inches()[1] / len(panels)
    if grid.ncols > 1:
        below = figure.add_gridspec(len(panels), 1)
        for i, ax in enumerate(panels):
            ax.set_subplotspec(below[i, 0])
            if not ax.get_ylabel() and i and ax.get_shared_y_axes().joined(ax, panels[0]):
                ax.set_ylabel(panels[0].get_ylabel())
            if ax.get_yticks().size:
                ax.tick_params(labelleft=True)
    for ax in panels:
        if (legend := ax.get_legend()) and getattr(legend, "_ncols", 1) > 2:  # a row of names becomes two columns
            size = legend.get_texts()[0].get_fontsize()
            ax.legend(*ax.get_legend_handles_labels(), ncols=2, fontsize=size, loc="best")
    for legend in figure.legends:
        legend.set_loc("outside lower center")
    figure.set_size_inches(NARROW, max(height, 2.4) * len(panels) + 0.35 * sum(len(g.texts) for g in figure.legends))
    return True


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
