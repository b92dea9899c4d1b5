"""The tSNE explorer: one layer read out at several activities, its codes as points that move between the maps."""

from collections.abc import Sequence
from math import log

import numpy as np
from traitlets import Dict, Int, List, Unicode, observe

from ..codes import Codes
from ..hashers import Hasher
from ..reproduction.embedding import embed, neighbour_purity
from .base import HERE, Widget, dots, module, svg
from .packing import pack, sheet

COLUMNS, FINE = 20, 32767  # images in a row of the sheet, steps from the middle of a map to its border
_ON_LIGHT = "#0072b2 #c64f00 #00795a #8a3ab9 #c1121f #7a5230 #c2408f #767300 #5f6b7a #007e91"  # pages
_ON_DARK = "#56b4e9 #f59a4c #2fd1a0 #c79bf2 #ff7b7b #c9a27a #f29ad0 #d6d24a #b3bfcc #5fd8e8"
COLORS = list(zip(_ON_LIGHT.split(), _ON_DARK.split(), strict=True))  # of the classes


class TsneExplorer(Widget):
    r"""Codes of one layer in the plane, for a slider of the activity :math:`a = k/m`.

    The map of the largest k is laid out first; every other one starts from that of the next larger k, so a point moves
    only as far as the new distances pull it. The page carries the maps of ``hash_lengths``. In JupyterLab the slider
    also stops between them: torch reads the codes out, and their map is made when it is asked for.

    Parameters
    ----------
    layer : Hasher
        A fitted layer of m units whose hash length is free.
    X : array of shape (n, d)
        Grey images to lay out, square, values in [0, 1].
    labels : int array of shape (n,)
        Their classes, at most ten.
    hash_lengths : sequence of int in 1..m
        Units on (k) of the maps that the page carries.
    start : array of shape (n, 2), optional
        The map of the largest of them; by default :func:`biohash_mini.reproduction.embedding.embed` makes it.
    names : sequence of str, optional
        Names of the classes; by default their numbers.
    seed : int
        Seed of that first map.

    Attributes
    ----------
    hash_length : int
        The k on show.
    item : int
        The point that is selected.
    purity : dict of str to float
        Neighbour purity of each map, by k.
    """

    _esm = module("tsne.js")
    _css = Widget._css + (HERE / "tsne.css").read_text("utf-8")
    sentence = (
        "Codes of images in the plane, a colour for each class. With scripts on, a slider changes how many units are "
        "on and the points move; each of them shows its image."
    )
    hash_length = Int(8, min=1).tag(sync=True)
    item = Int(0, min=0).tag(sync=True)
    n_units = Int().tag(sync=True)
    stops = List(Int()).tag(sync=True)
    maps = Dict().tag(sync=True)
    purity = Dict().tag(sync=True)
    labels = List(Int()).tag(sync=True)
    names = List(Unicode()).tag(sync=True)
    colors: List = List().tag(sync=True)
    sheet = Unicode().tag(sync=True)
    columns = Int(COLUMNS).tag(sync=True)

    def __init__(
        self,
        layer: Hasher,
        X: np.ndarray,
        labels: np.ndarray,
        *,
        hash_lengths: Sequence[int] = (2, 4, 8, 16, 32, 64),
        start: np.ndarray | None = None,
        names: Sequence[str] | None = None,
        seed: int = 0,
        **traits: object,
    ) -> None:
        self._layer, self._X, self._labels = layer, X, np.asarray(labels)
        side, m, lengths = round(X.shape[1] ** 0.5), layer.n_units, sorted(hash_lengths)
        last = embed(layer.encode(X, lengths[-1]), seed) if start is None else start
        self._maps: dict[int, np.ndarray] = {lengths[-1]: np.asarray(last, np.float32)}
        between = {round(2 ** (i / 3)) for i in range(30)}
        shown = {
            "n_units": m,
            "stops": sorted({*lengths, *(k for k in between if lengths[0] <= k <= lengths[-1])}),
            "labels": self._labels.tolist(),
            "names": list(names or map(str, range(self._labels.max() + 1))),
            "colors": COLORS,
            "sheet": sheet(1 - X.reshape(-1, 1, side, side), COLUMNS),
            "hash_length": lengths[0],
        }
        super().__init__(**shown | traits)
        for k in [*reversed(lengths), self.hash_length]:
            self._lay_out(k)

    @observe("hash_length")
    def _follow(self, change: object) -> None:
        if self.maps:  # not while they are being made
            self._lay_out(self.hash_length)

    def _lay_out(self, k: int) -> None:
        """Add the map of k, made from the nearest that is there."""
        if str(k) in self.maps:
            return
        if k not in self._maps:
            nearest = min(self._maps, key=lambda other: abs(log(other / k)))
            self._maps[k] = follow(self._layer.encode(self._X, k), self._maps[nearest])
        xy = self._maps[k]
        with self.hold_sync():
            self.purity = {**self.purity, str(k): neighbour_purity(xy, self._labels)}
            self.maps = {**self.maps, str(k): pack(np.round(FINE * in_square(xy)).astype(np.int16))}

    def picture(self) -> str:
        """Return the map on show as a still SVG."""
        xy, labels = 100 * in_square(self._maps[self.hash_length]), self._labels
        points = (dots(xy[labels == c], 1.6, fill=COLORS[c][0]) for c in np.unique(labels))
        return svg("-104 -104 208 208", *points)


def follow(codes: Codes, start: np.ndarray) -> np.ndarray:
    """Return a tSNE map of the codes by Hamming distance that starts from another map of the items, shape (n, 2).

    There is no early exaggeration, which would pull the start together and tear it up again.
    """
    few = min(30, (len(codes) - 1) / 3)
    return embed(codes, 0, init=start, perplexity=few, early_exaggeration=1.0, max_iter=500)


def in_square(xy: np.ndarray) -> np.ndarray:
    """Return the points, shape (n, 2), moved and scaled so that they reach the border of [-1, 1]²."""
    low, high = xy.min(0), xy.max(0)
    return (2 * xy - low - high) / (high - low).max()
