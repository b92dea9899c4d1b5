"""The shadow playground: a shadow on a photograph, what it does to two codes, and what they retrieve."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from traitlets import Dict, Float, Int, List, Unicode, observe

from ..codes import Codes
from ..datasets import Task, sample_per_class
from ..hashers import Hasher
from ..reproduction.protocols import shadow
from .base import HERE, Widget, module, svg
from .packing import pack, sheet

COLUMNS, TOP, QUALITY = 40, 10, 60  # images in a row of the sheet, answers on show, quality of their WebP
STRENGTHS = tuple(round(0.1 * s, 1) for s in range(10, 0, -1))


class ShadowPlayground(Widget):
    r"""A query with its lower part in the shade: units that its codes keep and lose, and the images they retrieve.

    BioHash is linear in the pixels up to the choice of winners, so the page needs only the overlap of every unit with
    every row of the image, :math:`s_{\mu y}`, and computes the code of any shadow of factor :math:`\lambda` itself:

    .. math:: \langle W_\mu, x'\rangle = \sum_{y < y_0} s_{\mu y} + \lambda \sum_{y \ge y_0} s_{\mu y}
              - \langle W_\mu, \bar x\rangle .

    BioConvHash is not; its codes come with the page for every row :math:`y_0` and the factors ``STRENGTHS``. In
    JupyterLab torch hashes the image at every move. Since one photograph proves little, the page also says what the
    paper's shadow does to all queries of the task on average.

    Parameters
    ----------
    hashers : mapping of str to Hasher
        Fitted hashers of at most 256 units whose hash length is free, by the names to show.
    task : Task
        Labelled photographs; what is retrieved is a sample of its database.
    queries : sequence of int
        Rows of the task's queries to choose from.
    hash_length : int
        Units on (k).
    names : sequence of str, optional
        Names of the classes; by default their numbers.
    n_database, seed : int
        Images to search, the same number of each class, and the seed that draws them.

    Attributes
    ----------
    query : int
        The photograph on show, counted through ``queries``.
    strength : float
        The factor on the pixels in the shade, from 0.1 to 1.
    area : float
        How much of the image is in the shade, from 0 to 1.
    """

    _esm = module("shadow.js")
    _css = Widget._css + (HERE / "shadow.css").read_text("utf-8")
    sentence = (
        "A photograph in the light and with most of it in the shade. With scripts on, strength and area of the shadow "
        "can be changed, and what it does to the codes and to what they retrieve is shown."
    )
    query = Int(0, min=0).tag(sync=True)
    strength = Float(0.3, min=0.1, max=1).tag(sync=True)
    area = Float(0.8, min=0, max=1).tag(sync=True)
    hash_length = Int(8, min=1).tag(sync=True)
    n_units = Int().tag(sync=True)
    top = Int(TOP, min=1).tag(sync=True)
    height = Int().tag(sync=True)
    strengths = List(Float(), list(STRENGTHS)).tag(sync=True)
    tables = Dict().tag(sync=True)
    means = Dict().tag(sync=True)
    n_queries = Int().tag(sync=True)
    answer = Dict().tag(sync=True)
    queries = Unicode().tag(sync=True)
    query_labels = List(Int()).tag(sync=True)
    database = Unicode().tag(sync=True)
    database_labels = List(Int()).tag(sync=True)
    names = List(Unicode()).tag(sync=True)
    columns = Int(COLUMNS).tag(sync=True)

    def __init__(
        self,
        hashers: Mapping[str, Hasher],
        task: Task,
        queries: Sequence[int],
        *,
        hash_length: int = 8,
        names: Sequence[str] | None = None,
        n_database: int = 1000,
        seed: int = 0,
        **traits: object,
    ) -> None:
        (m,) = {hasher.n_units for hasher in hashers.values()}
        if not hash_length <= m <= 256:
            raise ValueError(f"the hashers must have {hash_length} to 256 units, got {m}")
        self._hashers, self._length = hashers, hash_length
        rows = sample_per_class(task.database_labels, n_database // len(np.unique(task.database_labels)), seed)
        chosen = task.queries[list(queries)], task.database[rows]
        self._queries, X = (images.reshape(-1, *task.image_shape) for images in chosen)
        labels = task.query_labels[list(queries)]
        self._codes = {name: self._encode(name, X) for name in hashers}
        shown = {
            "hash_length": hash_length,
            "n_units": m,
            "height": task.image_shape[1],
            "tables": {name: self._table(name) | {"database": pack(self._codes[name].array)} for name in hashers},
            "means": {name: self._mean(name, task, task.database_labels[rows]) for name in hashers},
            "n_queries": len(task.queries),
            "queries": sheet(self._queries, len(labels)),
            "query_labels": labels.tolist(),
            "database": sheet(X, COLUMNS, QUALITY),
            "database_labels": task.database_labels[rows].tolist(),
            "names": list(names or map(str, range(task.database_labels.max() + 1))),
        }
        super().__init__(**shown | traits)
        self._look()

    def _encode(self, name: str, images: np.ndarray) -> Codes:
        """Return the codes of images, shape (n, c, h, w)."""
        return self._hashers[name].encode(images, self._length)

    def _table(self, name: str) -> dict[str, object]:
        """Return what the page needs to know the code of every shadow: overlaps by row, or the codes themselves."""
        hasher, (q, c, h, w) = self._hashers[name], self._queries.shape
        if hasher.takes_images:  # its codes are not linear in the pixels
            areas = 1 - np.arange(h + 1) / h
            dark = (np.stack([shadow(self._queries, s, a) for a in areas], 1) for s in STRENGTHS)  # (q, h + 1, c, h, w)
            codes = [self._encode(name, images.reshape(-1, c, h, w)).array for images in dark]
            return {"grid": pack(np.stack([found.reshape(q, h + 1, -1) for found in codes], 1))}
        alone = np.zeros((q, h, c, h, w), np.float32)
        for y in range(h):
            alone[:, y, :, y] = self._queries[:, :, y]  # one row of the image, all else black
        inputs = torch.from_numpy(alone.reshape(q * h, -1)).to(hasher.mean_.device)
        rows, mean = (hasher._activations(A).cpu().numpy() for A in (inputs, hasher.mean_[None]))
        unit = max(abs(rows).max(), abs(mean).max()) / 32767  # only the order of the overlaps counts
        return {key: pack(np.round(A / unit).astype(np.int16)) for key, A in (("rows", rows), ("mean", mean))}

    def _mean(self, name: str, task: Task, labels: np.ndarray) -> dict[str, float]:
        """Return means over all queries: units kept in the paper's shadow, and right answers in light and shade."""
        lit = task.queries.reshape(-1, *task.image_shape)
        light, dark = (self._encode(name, images) for images in (lit, shadow(lit)))
        kept = [len(np.intersect1d(a, b)) for a, b in zip(light.array, dark.array, strict=True)]
        right = {}
        for where, codes in (("light", light), ("shade", dark)):
            first = np.argsort(codes.hamming(self._codes[name]), axis=1, kind="stable")[:, : self.top]
            right[where] = float((labels[first] == task.query_labels[:, None]).sum(1).mean())
        return {"kept": float(np.mean(kept)), **right}

    @observe("query", "strength", "area")
    def _look(self, change: object = None) -> None:
        """Hash the image as it is on show, by torch."""
        if self.tables:
            image = shadow(self._queries[[self.query]], self.strength, self.area)
            codes = {name: self._encode(name, image).array[0].tolist() for name in self.tables}
            self.answer = {"query": self.query, "strength": self.strength, "area": self.area, "codes": codes}

    def ranking(self, name: str, image: np.ndarray) -> np.ndarray:
        """Return the first answers to an image, shape (c, h, w), as places in the sample, ties in its order."""
        far = self._encode(name, image[None]).hamming(self._codes[name])[0]
        return np.argsort(far, kind="stable")[: self.top]

    def picture(self) -> str:
        """Return the image in the light and in the shade as a still SVG."""
        lit = self._queries[self.query]
        pair = sheet(np.stack([lit, shadow(lit[None], self.strength, self.area)[0]]), 2)
        image = f'<image href="{pair}" width="64" height="32" image-rendering="pixelated"/>'
        return svg("0 0 64 32", image)
