"""Draw the book's logo, favicon and social card from the embedded digits, into book/_static.

python tools/make_card.py    a few seconds; the same files every time
"""

from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from PIL import Image

from biohash_mini import BioHash, circle
from biohash_mini.datasets import load

STATIC = Path(__file__).resolve().parent.parent / "book" / "_static"
NIGHT, AMBER, BLUE, ORANGE = "#14181e", "#e0a94a", "#0072b2", "#e66a1f"
COLUMNS, ROWS, K = 20, 15, 9
DPI = 100


def logo(ax: Axes, sigma: float = 1.2, m: int = 9, k: int = 3) -> None:
    """Draw units at their optimum around the density they follow, the k nearest to its peak switched on."""
    phi = np.linspace(-np.pi, np.pi, 400)
    turn = phi + np.pi / 2  # the peak on top
    band = 1 + 0.42 * circle.density(phi, sigma) / circle.density(0, sigma)
    ax.fill(
        np.concatenate([band * np.cos(turn), np.cos(turn)[::-1]]),
        np.concatenate([band * np.sin(turn), np.sin(turn)[::-1]]),
        color=AMBER,
        lw=0,
    )
    units = np.asarray(circle.optimal_angles(m, sigma))
    on = np.argsort(np.abs(units))[:k]
    colors = np.where(np.isin(np.arange(m), on), ORANGE, BLUE)
    for angle, color in zip(units + np.pi / 2, colors, strict=True):
        ax.add_patch(plt.Circle((0.73 * np.cos(angle), 0.73 * np.sin(angle)), 0.16, color=color, lw=0))
    ax.set(xlim=(-1.25, 1.25), ylim=(-1.05, 1.45), aspect="equal")
    ax.axis("off")


def _clearest(X: np.ndarray, W: np.ndarray, wanted: np.ndarray) -> int:
    """Return which of the wanted rows its K best units fit best, by cosine."""
    S = np.sort((X / np.linalg.norm(X, axis=1, keepdims=True)) @ W.T, axis=1)[:, -K:]
    return int(np.where(wanted, S.mean(1), -1).argmax())


def card(figure: plt.Figure) -> None:
    """Draw the learned units of BioHash as a crowd, lit where a digit switches them on."""
    task = load("mnist").retrieval_task(seed=0)
    m = COLUMNS * ROWS
    hasher = BioHash(K, activity=K / m, seed=0, device="cpu").fit(task.database)
    W = hasher.weights_.numpy().reshape(m, 28, 28)
    digit = _clearest(task.queries - task.database.mean(0), hasher.weights_.numpy(), task.query_labels == 3)
    on = hasher.encode(task.queries[digit : digit + 1]).active[0]

    crowd = LinearSegmentedColormap.from_list("crowd", ["#2d6f9e", NIGHT, AMBER])
    tiles = np.empty((ROWS * 30, COLUMNS * 30, 4))
    tiles[:] = mpl.colors.to_rgba(NIGHT)
    night = np.array(mpl.colors.to_rgba(NIGHT))
    for unit in range(m):
        row, column = divmod(unit, COLUMNS)
        picture = crowd(0.5 + 0.5 * np.clip(W[unit] / np.abs(W).max() * 2.2, -1, 1))
        if unit not in on:
            picture = night + 0.5 * (picture - night)
        tiles[30 * row + 1 : 30 * row + 29, 30 * column + 1 : 30 * column + 29] = picture
    ax = figure.add_axes((0.375, 0.055, 0.6, 0.89))
    ax.imshow(tiles, interpolation="nearest")
    for unit in on:
        row, column = divmod(int(unit), COLUMNS)
        ax.add_patch(plt.Rectangle((30 * column, 30 * row), 29, 29, fill=False, ec=ORANGE, lw=2.2))
    ax.axis("off")

    ax = figure.add_axes((0.045, 0.5, 0.24, 0.42))
    ax.imshow(task.queries[digit].reshape(28, 28), cmap="gray", interpolation="nearest")
    ax.axis("off")
    figure.text(0.045, 0.375, "Bio-Inspired\nHashing", color="white", size=32, weight="bold", va="center")
    figure.text(0.045, 0.17, "How a fly names a smell,\nrebuilt and run again", color="#c6ccd4", size=17, va="center")
    figure.text(0.045, 0.07, f"{K} of {m} units answer", color=AMBER, size=14, va="center")


def save(figure: plt.Figure, name: str, *, colors: int, transparent: bool = False) -> None:
    """Write a figure as a PNG with a palette, which is a fraction of the size."""
    raw = BytesIO()
    figure.savefig(raw, dpi=DPI, transparent=transparent)
    plt.close(figure)
    picture = Image.open(raw).convert("RGBA" if transparent else "RGB")
    method = Image.Quantize.FASTOCTREE if transparent else Image.Quantize.MEDIANCUT
    picture.quantize(colors, method=method).save(STATIC / name, optimize=True)
    print(f"{name}: {(STATIC / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    for name, side in (("logo.png", 320), ("favicon.png", 64)):
        figure = plt.figure(figsize=(side / DPI, side / DPI))
        logo(figure.add_axes((0, 0, 1, 1)))
        save(figure, name, colors=64, transparent=True)
    figure = plt.figure(figsize=(12, 6.3), facecolor=NIGHT)
    card(figure)
    save(figure, "card.png", colors=96)
