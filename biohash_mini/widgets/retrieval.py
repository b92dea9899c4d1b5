"""The retrieval explorer: a query's nearest images under each hash, and the bits of the code that matched."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from traitlets import Bool, Dict, Int, List, Unicode, observe

from ..codes import Codes, SparseCodes, concatenate
from ..datasets import Task, sample_per_class
from .base import HERE, Widget, module, svg
from .packing import pack, sheet

Pair = tuple[Codes, Codes]
COLUMNS, QUALITY = 40, 60  # images in a row of the sheet, and how well it keeps photographs


class RetrievalExplorer(Widget):
    r"""Real images as queries, their nearest images under a hash, and which bits of the codes agree.

    The page carries a sample of the task's images on one sheet, and their codes in as many bits as they take,
    :math:`k` if dense and :math:`k\,\lceil\log_2 m\rceil` if sparse. It ranks by Hamming distance itself. In
    JupyterLab, hash lengths that it does not carry are fitted by torch when they are asked for.

    Parameters
    ----------
    task : Task
        Labelled images.
    codes : mapping of (method, hash length) to (codes of the queries, codes of the database)
        Codes of the whole task.
    names : sequence of str, optional
        Names of the classes; by default their numbers.
    fit : callable (method, hash length) -> (codes of the queries, codes of the database), optional
        Makes the codes that are not there, where there is a kernel.
    n_queries, n_database, seed : int
        Images to carry, the same number of each class, and the seed that draws them.

    Attributes
    ----------
    method, hash_length : str, int
        The hash on show.
    query : int
        Item that is searched for: a query, or an item of the database, which then leaves itself out. Items are
        counted through the queries first.
    order : int
        Order inside ties: by item at 0, otherwise a random one for each number.
    """

    _esm = module("retrieval.js")
    _css = Widget._css + (HERE / "retrieval.css").read_text("utf-8")
    sentence = (
        "A query and its nearest images: a solid green border where the class is the query's, a dashed red one where "
        "it is not. With scripts on, query, method and hash length can be chosen, and codes compared bit by bit."
    )
    method = Unicode().tag(sync=True)
    hash_length = Int(1, min=1).tag(sync=True)
    query = Int(0, min=0).tag(sync=True)
    order = Int(0, min=0).tag(sync=True)
    top = Int(15, min=1).tag(sync=True)
    n_queries = Int().tag(sync=True)
    labels = List(Int()).tag(sync=True)
    names = List(Unicode()).tag(sync=True)
    sheet = Unicode().tag(sync=True)
    columns = Int(COLUMNS).tag(sync=True)
    side = Int().tag(sync=True)
    tables = Dict().tag(sync=True)
    fresh = Dict().tag(sync=True)
    can_fit = Bool(False).tag(sync=True)

    def __init__(
        self,
        task: Task,
        codes: Mapping[tuple[str, int], Pair],
        *,
        names: Sequence[str] | None = None,
        fit: Callable[[str, int], Pair] | None = None,
        n_queries: int = 30,
        n_database: int = 800,
        seed: int = 0,
        **traits: object,
    ) -> None:
        self._fit, classes = fit, len(np.unique(task.database_labels))
        rows = sample_per_class(task.query_labels, max(1, n_queries // classes), seed)
        self._queries = rows[np.argsort(task.query_labels[rows], kind="stable")]  # class by class, to choose from
        self._database = sample_per_class(task.database_labels, max(1, n_database // classes), seed)
        self._codes = {key: self._chosen(pair) for key, pair in codes.items()}
        tables: dict[str, dict] = {method: {} for method, _ in codes}
        for (method, k), chosen in sorted(self._codes.items(), key=lambda entry: entry[0][1]):
            tables[method][str(k)] = packed_codes(chosen)
        images = np.concatenate([task.queries[self._queries], task.database[self._database]])
        self._images = images.reshape(-1, *task.image_shape)
        labels = np.concatenate([task.query_labels[self._queries], task.database_labels[self._database]])
        method = str(traits.pop("method", next(reversed(tables))))
        shown = {
            "method": method,
            "hash_length": int(next(reversed(tables[method]))),
            "n_queries": len(self._queries),
            "labels": labels.tolist(),
            "names": list(names or map(str, range(labels.max() + 1))),
            "sheet": self._sheet(np.arange(len(labels)), COLUMNS),
            "side": task.image_shape[-1],
            "tables": tables,
            "can_fit": fit is not None,
        }
        super().__init__(**shown | traits)
        if fit is None and (self.method, self.hash_length) not in codes:
            raise ValueError(f"no codes of {self.method} at k = {self.hash_length}, and no way to fit them")

    def _chosen(self, pair: Pair) -> Codes:
        """Return the codes of the images on the page, queries first."""
        return concatenate([pair[0][self._queries], pair[1][self._database]])

    def _sheet(self, items: np.ndarray, columns: int) -> str:
        """Return images of the page on one sheet, as a data URI: photographs with loss, grey ones with dark ink."""
        images = self._images[items]
        return sheet(images, columns, QUALITY) if images.shape[1] == 3 else sheet(1 - images, columns)

    @observe("method", "hash_length")
    def _look(self, change: object = None) -> None:
        """Fit the chosen hash if the page does not carry its codes, and send them, or what went wrong."""
        key = self.method, self.hash_length
        if str(key[1]) in self.tables.get(key[0], {}) or self._fit is None:
            return
        about = {"method": key[0], "hash_length": key[1]}
        try:
            if key not in self._codes:
                self._codes[key] = self._chosen(self._fit(*key))
            self.fresh = about | packed_codes(self._codes[key])
        except ValueError as error:  # some methods cannot have every length
            self.fresh = about | {"trouble": str(error)}

    def ranking(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances of the first answers and their items, shapes (top,), ties by item."""
        codes = self._codes[self.method, self.hash_length]
        far = codes[self.query].hamming(codes)[0].astype(int)
        far[: self.n_queries] = far[self.query] = codes.max_distance + 1  # what is not searched
        items = np.argsort(far, kind="stable")[: self.top]
        return far[items], items

    def picture(self) -> str:
        """Return the query and its nearest images as a still SVG."""
        items = [self.query, *self.ranking()[1]]
        strip, width = self._sheet(np.array(items), len(items)), 20 * len(items)
        shapes = [f'<image href="{strip}" width="{width}" height="20"/>']
        for i, item in enumerate(items[1:], start=1):
            right = self.labels[item] == self.labels[self.query]
            look = 'stroke="#009e73"' if right else 'stroke="#cc3311" stroke-dasharray="3 2"'
            shapes.append(f'<rect x="{20 * i + 1}" y="1" width="18" height="18" fill="none" stroke-width="2" {look}/>')
        return svg(f"0 0 {width} 20", *shapes)


def packed_codes(codes: Codes) -> dict:
    r"""Return codes for the page: k, m, their kind, and the bits of each row, padded to whole bytes, in base64.

    A dense code is its m bits; a sparse one its k unit numbers in :math:`\lceil\log_2 m\rceil` bits each, highest
    first.
    """
    if not isinstance(codes, SparseCodes):
        return {"sparse": False, "k": codes.n_units, "m": codes.n_units, "bits": pack(codes.array)}
    width = (codes.n_units - 1).bit_length()
    bits = codes.active[:, :, None].astype(np.int64) >> np.arange(width)[::-1] & 1  # (n, k, width)
    rows = np.packbits(bits.reshape(len(codes), -1).astype(np.uint8), axis=1)
    return {"sparse": True, "k": codes.hash_length, "m": codes.n_units, "bits": pack(rows)}
