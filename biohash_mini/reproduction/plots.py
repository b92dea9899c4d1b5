"""The figures' common look: one style, grids of images, retrievals with green and red borders."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..hashers import METHODS
from .declarations import EXPERIMENTS

RIGHT, WRONG = "#009e73", "#cc3311"  # green and red that colour-blind readers can tell apart
COLORS = {
    "LSH": "#666666",
    "PCAHash": "#009e73",
    "FlyHash": "#0072b2",
    "SH": "#cc79a7",
    "ITQ": "#56b4e9",
    "NaiveBioHash": "#8c564b",
    "BioHash": "#d55e00",
    "BioConvHash": "#882255",
    "SOLHash": "#332288",
    "GreedyHash": "#117733",
    "DH": "#aa4499",
    "UH-BNN": "#999933",
    "paper": "#b8860b",
}
# for rows that have no colour of their own; none of the above
SPARE = "#44aa99 #6699cc #661100 #bb5566 #004488 #ddaa33 #7f7f00 #994455 #5d3a9b #00797f".split()
_CYCLE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b", "#666666"]


def color(method: str) -> str:
    """Return the colour of a registered method, one of the spare ones if it has none of its own."""
    spare = [name for name in METHODS if name not in COLORS]
    return COLORS.get(method) or SPARE[spare.index(method) % len(SPARE)]


def row_colors(experiment: str, labels: Sequence[str]) -> dict[str, str]:
    """Return a colour for each row of an experiment: its method's, where the rows have different ones, else a spare."""
    methods = {row.label: row.method for row in EXPERIMENTS[experiment].all_rows() if row.label in labels}
    if len(set(methods.values())) <= 1 < len(labels):
        methods = {}
    spare = {label: SPARE[i % len(SPARE)] for i, label in enumerate(labels)}
    return spare | {label: color(method) for label, method in methods.items()}


def use_style() -> None:
    """Set matplotlib up for the book: a white card on light and dark pages, thin axes, readable letters."""
    mpl.rc("figure", dpi=120, figsize=(7, 3.4), facecolor="white")
    mpl.rc("figure.constrained_layout", use=True)
    mpl.rc("savefig", facecolor="white")
    mpl.rc("font", size=10)
    mpl.rc("axes", grid=True, axisbelow=True, prop_cycle=plt.cycler(color=_CYCLE))
    mpl.rc("axes.spines", top=False, right=False)
    mpl.rc("grid", color="#e5e5e5", linewidth=0.8)
    mpl.rc("legend", frameon=False)


def _show(ax: Axes, image: np.ndarray, shape: Sequence[int] | None) -> None:
    """Draw one image, flat or not, without ticks; a flat one is square and grey unless a shape is given."""
    image = np.reshape(image, shape or np.shape(image))
    if image.ndim == 1:
        image = image.reshape(round(len(image) ** 0.5), -1)
    elif image.ndim == 3 and len(image) in (1, 3):  # channels first
        image = np.moveaxis(image, 0, -1)
    ax.imshow(image, cmap="gray_r", interpolation="none")
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)


def image_grid(
    images: np.ndarray,
    titles: Sequence[object] | None = None,
    columns: int = 10,
    shape: Sequence[int] | None = None,
    size: float = 0.75,
) -> Figure:
    """Return a figure with images (n, d), (n, height, width) or (n, height, width, 3), ``columns`` in a row.

    ``titles`` are words over the images. ``shape`` is that of one image, channels first or last; by default it is the
    array's own, and for flat rows a square. ``size`` is in inches.
    """
    rows = -(-len(images) // columns)
    figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=(size * columns, (size + 0.2) * rows))
    for ax in axes.flat[len(images) :]:
        ax.axis("off")
    for i, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        _show(ax, image, shape)
        if titles is not None:
            ax.set_title(str(titles[i]), fontsize=9, pad=2)
    return figure


def retrieval_grid(
    queries: np.ndarray,
    retrieved: np.ndarray,
    correct: np.ndarray,
    shape: Sequence[int] | None = None,
    size: float = 0.75,
) -> Figure:
    """Return a figure with a row per query: queries (q, ...), then what was retrieved (q, top, ...), nearest first.

    A green border marks a retrieved item that is ``correct``, bool (q, top), a dashed red one any other.
    """
    q, top = np.shape(correct)
    ratios = [1, 0.3] + [1] * top
    figure, axes = plt.subplots(q, top + 2, squeeze=False, figsize=(size * sum(ratios), size * q), width_ratios=ratios)
    for row in range(q):
        _show(axes[row, 0], queries[row], shape)
        axes[row, 1].axis("off")
        for ax, image, right in zip(axes[row, 2:], retrieved[row], correct[row], strict=True):
            _show(ax, image, shape)
            look = (RIGHT, "-") if right else (WRONG, (0, (3, 1.5)))
            ax.spines[:].set(visible=True, linewidth=2, color=look[0], linestyle=look[1])
    axes[0, 0].set_title("query", fontsize=9, pad=4)
    axes[0, 2].set_title("nearest first →", fontsize=9, pad=4, loc="left")
    return figure


def compare(
    cells: Sequence[dict], methods: Sequence[str] | None = None, ylabel: str = "mAP (%)", whiskers: bool = False
) -> Figure:
    """Return a figure of reported cells: ours filled, the paper's hollow, a line from one to the other.

    ``cells`` are those of one experiment, as :func:`biohash_mini.reproduction.report.cells` yields them; ``methods``
    the rows to draw, by default all that were measured. ``whiskers`` are the bounds over tie orders; without them the
    scale follows the values.
    """
    methods = list(methods or dict.fromkeys(c["method"] for c in cells if c["ours"] is not None))
    lengths = sorted({c["hash_length"] for c in cells})
    colors = list(row_colors(cells[0]["experiment"], methods).values())
    figure, ax = plt.subplots(figsize=(7.4, 3.8))
    for i, method in enumerate(methods):
        rows = [c for c in cells if c["method"] == method]
        x = [lengths.index(c["hash_length"]) + 0.8 * ((i + 0.5) / len(methods) - 0.5) for c in rows]
        color = colors[i]
        mark = "v" if color in colors[:i] else "o"  # a second row of the same method
        for at, c in zip(x, rows, strict=True):
            if None not in (c["paper"], c["ours"]):
                ax.vlines(at, c["paper"], c["ours"], color=color, lw=2, alpha=0.35)
            if whiskers and c["best"] is not None:
                ax.vlines(at, c["worst"], c["best"], color=color, lw=1, alpha=0.5)
        ax.plot(x, [c["ours"] for c in rows], mark, ms=4, color=color, label=method)  # None is not drawn
        ax.plot(x, [c["paper"] for c in rows], "D", ms=6, mfc="none", mec=color, mew=1)
    ax.plot([], [], "D", ms=6, mfc="none", mec="black", label="paper")
    if whiskers and any(c["best"] is not None for c in cells):
        ax.vlines([], [], [], color="black", lw=1, alpha=0.5, label="tie orders, worst to best")
    ax.set(xlabel="hash length k", ylabel=ylabel)
    ax.set_xticks(range(len(lengths)), lengths)
    ax.grid(axis="x", visible=False)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right upper", fontsize=9)
    return figure
