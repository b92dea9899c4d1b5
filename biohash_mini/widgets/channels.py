"""The channel explorer: a digit, the maps of its filters when few or many may speak, and what the codes retrieve."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from traitlets import Dict, Float, Int, List, Unicode

from ..datasets import Task
from ..hashers import BioConvHash
from ..hashers.convolution.maps import unit_patches
from .base import HERE, Widget, module, svg
from .packing import pack, sheet

COLUMNS, TOP = 25, 10  # images in a row of the sheet, answers on show


class ChannelExplorer(Widget):
    r"""A digit, the maps of some filters when :math:`k_\mathrm{CI}` channels may speak, and the images retrieved.

    The page has the activation :math:`a_{fs}` of the filters on show and its rank among all filters at the position,
    so it inhibits by itself, for any number of channels:

    .. math:: a'_{fs} = [a_{fs}]_+ \text{ where fewer than } k_\mathrm{CI} \text{ filters are stronger, else } 0 .

    What is retrieved comes from layers fitted for some numbers of channels, which are the stops of the slider, and so
    does the mean over all queries that stands beside it.

    Parameters
    ----------
    hashers : mapping of int to BioConvHash
        Fitted hashers of the same filters, at most 256 of one kernel size, by the channels that may speak.
    task : Task
        Labelled images; all of its database is searched.
    queries : sequence of int
        Rows of the task's queries to choose from.
    hash_length : int
        Units on (k).
    n_maps : int
        Filters on show, those that are strongest most often.

    Attributes
    ----------
    query : int
        The image on show, counted through ``queries``.
    winners : int
        How many channels may speak at a position, one of ``levels``.
    """

    _esm = module("channels.js")
    _css = Widget._css + (HERE / "channels.css").read_text("utf-8")
    sentence = (
        "A digit and the map of one of its filters. With scripts on, a slider says how many channels may speak at each "
        "position, and the maps and the digits that are retrieved change with it."
    )
    query = Int(0, min=0).tag(sync=True)
    winners = Int(min=1).tag(sync=True)
    levels = List(Int(min=1)).tag(sync=True)
    n_filters = Int().tag(sync=True)
    side = Int().tag(sync=True)
    maps = Dict().tag(sync=True)
    queries = Unicode().tag(sync=True)
    query_labels = List(Int()).tag(sync=True)
    n_queries = Int().tag(sync=True)
    answers = List(List(List(Int()))).tag(sync=True)
    features_on = List(List(Float())).tag(sync=True)
    means = List(Dict()).tag(sync=True)
    database = Unicode().tag(sync=True)
    database_labels = List(Int()).tag(sync=True)
    columns = Int(COLUMNS).tag(sync=True)
    top = Int(TOP).tag(sync=True)

    def __init__(
        self,
        hashers: Mapping[int, BioConvHash],
        task: Task,
        queries: Sequence[int],
        *,
        hash_length: int = 4,
        n_maps: int = 12,
        **traits: object,
    ) -> None:
        self._hashers, self._length, self._task = hashers, hash_length, task
        first = next(iter(hashers.values()))
        if len(first.kernel_sizes) > 1 or first.n_filters > 256:
            raise ValueError(f"the filters must be of one size and at most 256, got {first!r}")
        levels = sorted(hashers)
        self._images = task.queries[list(queries)].reshape(-1, *task.image_shape)
        found = [self._search(level) for level in levels]
        shown = np.stack([items[list(queries)] for items, _ in found])  # (levels, q, top)
        used, place = np.unique(shown, return_inverse=True)
        right = task.database_labels[np.stack([items for items, _ in found])] == task.query_labels[:, None]
        state = {
            "levels": levels,
            "winners": levels[len(levels) // 2],
            "n_filters": first.n_filters,
            "maps": self._maps(first, n_maps),
            "side": task.image_shape[1] - first.kernel_sizes[0] + 1,
            "queries": sheet(1 - self._images, len(self._images)),
            "query_labels": task.query_labels[list(queries)].tolist(),
            "n_queries": len(task.queries),
            "answers": place.reshape(shown.shape).tolist(),
            "features_on": [on[list(queries)].tolist() for _, on in found],
            "means": [
                {"right": float(hits.sum(1).mean()), "on": float(on.mean())}
                for hits, (_, on) in zip(right, found, strict=True)
            ],
            "database": sheet(1 - task.database[used].reshape(-1, *task.image_shape), COLUMNS),
            "database_labels": task.database_labels[used].tolist(),
        }
        super().__init__(**state | traits)

    def _search(self, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first answers to all queries, shape (n, top), and the share of features that are on, (n,)."""
        hasher = self._hashers[level]
        parts = (A.reshape(-1, *self._task.image_shape) for A in (self._task.queries, self._task.database))
        asked, stored = (hasher.features(A) for A in parts)
        codes = (hasher.encode_features(A, [self._length])[self._length] for A in (asked, stored))
        far = next(codes).hamming(next(codes))
        on = (asked > 0).float().mean(1).cpu().numpy()
        return np.argsort(far, axis=1, kind="stable")[:, : self.top], on

    def activations(self) -> torch.Tensor:
        """Return those of all filters on the images to choose from, shape (q, positions, F)."""
        hasher = next(iter(self._hashers.values()))
        (size,) = hasher.kernel_sizes
        patches = unit_patches(torch.from_numpy(np.ascontiguousarray(self._images, np.float32)), size)
        return patches @ hasher.filters(size).cpu().T

    def _maps(self, hasher: BioConvHash, count: int) -> dict[str, object]:
        """Return what the page needs of the busiest filters: activations as bytes, their ranks, and the filters."""
        A = self.activations().numpy()
        rank = np.argsort(np.argsort(-A, axis=2, kind="stable"), axis=2, kind="stable")
        inked = (A != 0).any(2)
        wins = ((rank == 0) & inked[..., None]).sum((0, 1))
        self._busy = np.argsort(-wins, kind="stable")[:count]
        strong = np.maximum(A[..., self._busy], 0)
        ranks = rank[..., self._busy].astype(np.uint8)
        W = hasher.filters(hasher.kernel_sizes[0]).cpu().numpy()[self._busy].clip(0)
        return {
            "strength": pack(np.round(255 * strong / strong.max()).astype(np.uint8).transpose(0, 2, 1)),
            "rank": pack(ranks.transpose(0, 2, 1)),
            "filters": pack(np.round(255 * W / W.max(1, keepdims=True)).astype(np.uint8)),
            "count": len(self._busy),
        }

    def picture(self) -> str:
        """Return the digit and the map of the busiest filter, inhibited, as a still SVG."""
        A = self.activations()[self.query]
        f = int(self._busy[0])
        stronger = (A > A[:, [f]]).sum(1)
        inhibited = (A[:, f].clamp(0, 1) * (stronger < self.winners)).reshape(1, self.side, self.side).numpy()
        h = self._images.shape[2]
        edge = (h - self.side) // 2, h - self.side - (h - self.side) // 2
        pair = sheet(1 - np.stack([self._images[self.query], np.pad(inhibited, ((0, 0), edge, edge))]), 2)
        image = f'<image href="{pair}" width="{2 * h}" height="{h}" image-rendering="pixelated"/>'
        return svg(f"0 0 {2 * h} {h}", image)
