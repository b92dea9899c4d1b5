"""Exact search in Hamming space, by counting the units in which codes agree."""

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Self

import numpy as np

from .codes import Codes, DenseCodes, SparseCodes, concatenate
from .counting import lists, slices, words
from .counting.threads import share, shares
from .inputs import count, require

_BLOCK = 1 << 21  # units of queries, or answers, held at a time: 16 MB
_SPARSE = 64  # units per active unit from which lists are kept: up to it, bitmaps are faster and take 2 x their memory
_LONG = 128  # bits of dense codes past which words are compared
_PART = 100  # blocks of long dense codes that are worth a thread


class HammingIndex:
    """Exact nearest codes by Hamming distance.

    Parameters
    ----------
    codes : Codes
        The database, n codes.
    """

    def __init__(self, codes: Codes) -> None:
        if codes.max_distance > np.iinfo(np.uint16).max or getattr(codes, "hash_length", 0) > 0x7FFF:
            raise ValueError(f"codes of more than 65,535 bits of distance are not supported, got {codes!r}")
        self.codes = codes
        #: the distance of one unit, and the highest score
        self._scale = (2, codes.array.shape[1]) if isinstance(codes, SparseCodes) else (1, codes.n_units)
        self._sparse = isinstance(codes, SparseCodes) and codes.n_units > _SPARSE * codes.hash_length
        self._long = isinstance(codes, DenseCodes) and codes.n_units > _LONG
        if self._sparse:
            self._lists = lists.invert(codes.array, codes.n_units)
        elif self._long:
            self._blocks = words.in_blocks(codes.packed())
        else:
            _ = self._slices

    @cached_property
    def _slices(self) -> np.ndarray:
        """The bitmaps of all units, and one of no unit, of zeros; those of long dense codes are made to count alone."""
        codes, shape = self.codes, (self.codes.n_units + 1, slices.words_of(len(self)))
        if isinstance(codes, DenseCodes):
            out = np.zeros(shape, dtype=np.uint64)
            slices.slice_words(codes.words(), out)
        else:
            out = np.empty(shape, dtype=np.uint64)
            share(lambda a, b: slices.slice_units(codes.array, a, b, out), shares(shape[1] // 8, 32))
        return out

    def __len__(self) -> int:
        return len(self.codes)

    def add(self, codes: Codes) -> None:
        """Append codes, whose row numbers go on counting; the work is that of an index built at once."""
        grown = type(self)(concatenate([self.codes, codes]))
        vars(self).clear()  # all at once, so that what fails before leaves the index as it was
        vars(self).update(vars(grown))

    def save(self, path: str | os.PathLike, model: str = "") -> None:
        """Write the index to a safetensors file, whole or not at all: it is that of its codes, see ``Codes.save``."""
        self.codes.save(path, model)

    @classmethod
    def load(cls, path: str | os.PathLike, model: str = "") -> Self:
        """Return the index of a file written by :meth:`save`, or of a file of codes; ValueError if it is not intact.

        With a ``model``, the digest of a hasher, also if the file names another one.
        """
        return cls(Codes.load(path, model))

    def _units(self, queries: Codes) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield blocks of queries: their units, padded to eights for slices, and all ones where a unit is to be off."""
        self.codes.check_comparable(queries)
        sparse = isinstance(queries, SparseCodes)
        width = queries.array.shape[1] if sparse else queries.n_units
        padded = width if self._sparse else -(-width // 8) * 8
        step = max(1, _BLOCK // padded)
        for i in range(0, len(queries), step):
            rows = queries.array[i : i + step]
            units = np.full((len(rows), padded), queries.n_units)  # the bitmap of no unit
            units[:, :width] = rows if sparse else np.arange(width)
            flips = np.zeros((len(rows), 0 if self._sparse else padded), dtype=np.uint64)
            if not sparse:
                flips[:, :width] -= np.unpackbits(rows, axis=1, count=width) == 0
            yield i, units, flips

    def _counter(self) -> np.ndarray:
        """Return counters, zero, for the items of one range of the lists; they leave their highest bit free."""
        return np.zeros(-(-self._lists[2] // 64) * 64, np.uint8 if self._scale[1] < 0x80 else np.uint16)

    def search(self, queries: Codes, top: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers of the nearest codes, each (q, min(top, n)), ascending, ties by row number.

        The work of a query is the length of the lists of its units where codes are sparse (m > 64 k), and a look at the
        counters they touch, eight to a word; else it is n / 64 words for each unit. Memory beyond the answer stays near
        32 MB, and for bitmaps a few bits per item and thread.
        """
        top = count("top", top)
        self.codes.check_comparable(queries)
        shape = len(queries), min(top, len(self))
        distances, ids = np.empty(shape, dtype=np.uint16), np.empty(shape, dtype=np.int64)
        if self._long:
            self._compare(queries, distances, ids)
            return distances, ids
        if self._sparse:
            active, step = queries.array, max(1, _BLOCK // (4 * queries.array.shape[1]))

            def walk(a: int, b: int) -> None:  # short, since a service asks for one code at a time
                counter = self._counter()
                for i in range(a, b, step):
                    rows = slice(i, min(i + step, b))
                    units = active[rows].astype(np.int64)
                    lists.nearest(*self._lists, len(self), units, counter, distances[rows], ids[rows])

            share(walk, shares(len(queries), 8))
            return distances, ids
        for start, units, flips in self._units(queries):

            def work(a: int, b: int, start=start, units=units, flips=flips) -> None:
                answer = distances[start + a : start + b], ids[start + a : start + b]
                slices.nearest(self._slices, len(self), units[a:b], flips[a:b], *self._scale, *answer)

            share(work, shares(len(units), 8))
        return distances, ids

    def _compare(self, queries: Codes, distances: np.ndarray, ids: np.ndarray) -> None:
        """Fill the answers of a search in long dense codes; of one query the threads take parts of the items."""
        asked, top = words.in_fours(queries.packed()), ids.shape[1]
        at_once = max(1, _BLOCK // (4 * top + 1024))
        parts = shares(len(self._blocks), max(_PART, -(-top // words.SPAN) + 1))
        if len(queries) == 1 and len(parts) > 1 and top:

            def search(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
                items = min(len(self), b * words.SPAN) - a * words.SPAN
                near, found = np.empty_like(distances), np.empty_like(ids)
                words.nearest(self._blocks[a:b], items, asked, queries.n_units, near, found)
                return near, found + a * words.SPAN

            near, found = map(np.hstack, zip(*share(search, parts), strict=True))
            best = near[0].argsort(kind="stable")[:top]  # parts come in the order of their items
            distances[0], ids[0] = near[0, best], found[0, best]
            return

        def compare(a: int, b: int) -> None:
            for i in range(a, b, at_once):
                rows = slice(i, min(i + at_once, b))
                words.nearest(self._blocks, len(self), asked[rows], queries.n_units, distances[rows], ids[rows])

        share(compare, shares(len(queries), 8) if top else [])

    def histograms(
        self,
        queries: Codes,
        relevant: np.ndarray,
        which: np.ndarray,
        exclude: np.ndarray | None = None,
        at: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many codes, and how many relevant ones, lie at each distance there can be, each (q, distances).

        The distances are 0, 2, ..., 2k for sparse codes and 0, 1, ..., m for dense ones.

        Parameters
        ----------
        queries : Codes
            q codes.
        relevant : array of bool, shape (r, n)
            Sets of relevant codes.
        which : array of int, shape (q,)
            The set of each query.
        exclude : array of int, shape (q,), or None
            The row that a query must not find.
        at : int or None
            Distances past the first ``at`` codes may be left at zero.
        """
        most = self._scale[1]
        exclude = np.full(len(queries), -1) if exclude is None else exclude.astype(np.int64)
        fit = relevant.dtype == bool and relevant.shape[1:] == (len(self),) and which.dtype.kind in "ui"
        fit = fit and which.shape == exclude.shape == (len(queries),)  # kernels look at no bounds
        inside = fit and ((which >= 0) & (which < len(relevant)) & (exclude >= -1) & (exclude < len(self))).all()
        require(bool(inside), f"sets {relevant.shape}, which {which} or exclude {exclude} are not those of {queries!r}")
        counts, hits = np.zeros((2, len(queries), most + 1), dtype=np.int64)
        bits, which = slices.slice_sets(relevant), which.astype(np.int64)
        for start, units, flips in self._units(queries):

            def work(a: int, b: int, start=start, units=units, flips=flips) -> None:
                about = (bits, *(x[start + a : start + b] for x in (which, exclude, counts, hits)))
                if self._sparse:
                    lists.histograms(*self._lists, len(self), units[a:b], self._counter(), *about)
                else:
                    slices.histograms(self._slices, len(self), units[a:b], flips[a:b], most, at or len(self), *about)

            share(work, shares(len(units), 8))
        return counts, hits

    def range_search(self, queries: Codes, radius: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all codes within a distance: limits (q + 1,), and distances and row numbers, each (limits[-1],).

        Those of query i stand at ``limits[i]:limits[i + 1]``, ascending, ties by row number.

        Parameters
        ----------
        queries : Codes
            q codes.
        radius : int >= 0
            The largest distance that is still found (faiss leaves it out).

        Notes
        -----
        They are counted first, then searched for, a few queries at a time: memory beyond the answer, which is held
        twice while its parts are joined, stays near 50 MB.
        """
        radius = count("radius", radius, 0)
        self.codes.check_comparable(queries)
        nothing, which = np.zeros((1, len(self)), dtype=bool), np.zeros(len(queries), dtype=np.int64)
        within = self.histograms(queries, nothing, which)[0][:, : radius // self._scale[0] + 1].sum(1)
        distances, ids = [np.empty(0, np.uint16)], [np.empty(0, np.int64)]
        step = max(1, _BLOCK // max(1, within.max(initial=0)))
        for i in range(0, len(queries), step):
            found = within[i : i + step]
            if top := int(found.max()):
                inside = np.arange(top) < found[:, None]
                near, rows = self.search(queries[i : i + step], top)
                distances.append(near[inside])
                ids.append(rows[inside])
        return np.concatenate([[0], within.cumsum()]), np.concatenate(distances), np.concatenate(ids)
