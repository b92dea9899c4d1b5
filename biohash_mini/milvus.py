"""Sparse codes in Milvus, the vector database: embedded in this process (Milvus Lite), or a cluster."""

import functools
import logging
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from tqdm.auto import tqdm

from .codes import Codes, SparseCodes
from .inputs import count
from .storage import digest

_AT_ONCE = 256  # queries in a message
_KEPT = ("codes", "units")  # what every collection of ours is known by
_OURS = "biohash."  # how the names of our properties of a collection begin


def address(url: str) -> tuple[str, str]:
    """Return where Milvus is and the name of the collection, for an address of the command line.

    ``milvus://codes.db#words`` is the collection *words* in the folder codes.db, kept by Milvus Lite in this process;
    ``milvus://host:19530`` is a server, ``milvus+https://host:443`` one behind TLS. A collection without a name is
    called *codes*.
    """
    scheme, _, rest = url.partition("://")
    place, _, name = rest.partition("#")
    if scheme not in ("milvus", "milvus+http", "milvus+https") or not place:
        raise ValueError(f"an address of Milvus is milvus://codes.db or milvus://host:19530, got {url!r}")
    local = scheme == "milvus" and place.endswith(".db")
    return place if local else f"{scheme.partition('+')[2] or 'http'}://{place}", name or "codes"


class _Reasons(logging.Handler):
    """Keeps the last error of Milvus Lite, which logs it with a traceback while its client raises one without words."""

    last: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.exc_info[1] if record.exc_info else self.last


def _told_in_a_line(method: Callable) -> Callable:
    """Return a method that raises OSError with one line where Milvus raises errors of its own."""

    @functools.wraps(method)
    def attempt(*args: Any, **given: Any) -> Any:
        try:
            from pymilvus import MilvusException
        except ImportError:
            raise ImportError('Milvus needs its client: pip install "biohash-mini[milvus]"') from None
        reasons, log = _Reasons(), logging.getLogger("milvus_lite")
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs a traceback of all that it also raises
        log.propagate = False
        log.addHandler(reasons)
        try:
            return method(*args, **given)
        except MilvusException as error:
            raise OSError(f"Milvus: {reasons.last or error.message}") from error
        finally:
            log.removeHandler(reasons)

    return attempt


class MilvusIndex:
    r"""Sparse codes in a collection of Milvus, searched by Hamming distance.

    A code is a sparse vector with a one at each unit that is on. The inner product of two of them counts the units
    they share, so an exact search by inner product is one by distance: :math:`d_H = 2\,(k - s)`. Items are numbered by
    their rows, from 0.

    Parameters
    ----------
    where : str
        A name that ends in ``.db``, for a folder that Milvus Lite keeps, in this process alone; or the address of a
        server, such as ``http://localhost:19530``.
    collection : str
        Name of the collection.
    token : str
        What the server asks for, ``user:password`` or an API key; by default what ``MILVUS_TOKEN`` holds.
    """

    @_told_in_a_line
    def __init__(self, where: str | os.PathLike, collection: str = "codes", token: str | None = None) -> None:
        from pymilvus import MilvusClient

        self.where, self.collection = os.fspath(where), collection
        token = os.environ.get("MILVUS_TOKEN", "") if token is None else token
        self.client = MilvusClient(self.where, token=token)
        if self.client.has_collection(collection):
            self.client.load_collection(collection)

    @_told_in_a_line
    def __len__(self) -> int:
        return self._count("") if self.client.has_collection(self.collection) else 0

    def _count(self, condition: str) -> int:
        return self.client.query(self.collection, filter=condition, output_fields=["count(*)"])[0]["count(*)"]

    @_told_in_a_line
    def insert(self, codes: Codes, *, model: str = "", batch_size: int = 1000, verbose: bool = False) -> None:
        """Bring codes, n of them, into the collection, which is made if there is none; ``verbose`` shows a bar.

        After an interruption the same call goes on: batches that are there whole are passed over, and one that is
        there in part is written again, item for item in its place. So nothing is lost and nothing is there twice. A
        collection that was made for other codes raises ValueError.

        ``model`` is the digest of the hasher that made the codes, ``hasher.digest()``, for searches to ask for.
        """
        if not isinstance(codes, SparseCodes):
            raise ValueError(f"Milvus is given sparse codes, got {codes!r}: to_faiss takes dense ones")
        batch_size = count("batch_size", batch_size)
        about = {"codes": digest({"array": codes.array}), "units": str(codes.n_units), "model": model}
        about["count"] = str(len(codes))
        present = len(self)
        if not self.client.has_collection(self.collection):
            self._create(about)
        elif any(about[n] != v for n, v in self._about().items() if n in _KEPT or (v and about[n])):
            raise ValueError(f"{self.collection} in {self.where} holds other codes: choose another collection")
        with tqdm(total=len(codes), unit="code", disable=not verbose) as bar:
            for first in range(0, len(codes), batch_size):
                batch = _items(codes[first : first + batch_size], first)
                if not present:
                    self.client.insert(self.collection, batch)
                elif self._count(f"id >= {first} and id < {first + len(batch)}") < len(batch):
                    self.client.upsert(self.collection, batch)
                bar.update(len(batch))
        self.client.flush(self.collection)
        if len(self) != len(codes):
            raise OSError(f"{self.collection} holds {len(self)} codes after an insert of {len(codes)}")

    def _about(self) -> dict[str, str]:
        """Return what the collection was made for: digests of codes and model, how many units and codes there are."""
        found = self.client.describe_collection(self.collection).get("properties") or {}
        return {name: found.get(f"{_OURS}{name}", "") for name in ("codes", "units", "model", "count")}

    def _create(self, about: dict[str, str]) -> None:
        from pymilvus import DataType

        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("units", DataType.SPARSE_FLOAT_VECTOR)
        index = self.client.prepare_index_params()
        index.add_index("units", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        given: dict[str, Any] = {"schema": schema, "index_params": index, "consistency_level": "Strong"}
        given["properties"] = {f"{_OURS}{name}": value for name, value in about.items() if value}
        self.client.create_collection(self.collection, **given)
        self.client.load_collection(self.collection)

    @_told_in_a_line
    def search(self, queries: Codes, top: int = 10, *, model: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers of the nearest codes, each (q, min(top, n)), by distance and row.

        Distances are those of :class:`~biohash_mini.search.HammingIndex`; which of the items at the last distance are
        returned is for Milvus to choose. It returns none that shares no unit with the query: such items complete the
        list, in the order of their rows, at the distance 2k. With a ``model``, the digest of a hasher, codes of
        another one raise ValueError; so does a collection of which a part is missing.
        """
        top = count("top", top)
        if not self.client.has_collection(self.collection):
            raise FileNotFoundError(f"no collection {self.collection} in {self.where}: export codes to it")
        about, n = self._about(), len(self)
        top = min(top, max(1, n))  # Milvus makes room for as many as are asked for
        if model and about["model"] not in (model, ""):
            raise ValueError(f"{self.collection} in {self.where} holds codes of another model: hash the vectors anew")
        if about["count"] not in (str(n), ""):
            words = f"{n} of {about['count']} codes: an export was interrupted, which the same command completes"
            raise ValueError(f"{self.collection} in {self.where} holds {words}")
        some = self.client.query(self.collection, filter="", limit=1, output_fields=["units"])
        length = len(some[0]["units"]) if some else 0
        if not isinstance(queries, SparseCodes) or (
            some and (length, about["units"]) != (queries.hash_length, str(queries.n_units))
        ):
            raise ValueError(f"cannot compare {queries!r} with the codes of {self.collection}")
        k = queries.hash_length
        distances = np.empty((len(queries), min(top, n)), dtype=np.uint16)
        ids = np.empty(distances.shape, dtype=np.int64)
        for start in range(0, len(queries), _AT_ONCE):
            asked = [item["units"] for item in _items(queries[start : start + _AT_ONCE])]
            hits = self.client.search(self.collection, asked, anns_field="units", limit=top, output_fields=["id"])
            for row, found in enumerate(hits, start):
                near = np.array([2 * (k - round(hit["distance"])) for hit in found], dtype=np.int64)
                rows = np.array([hit["id"] for hit in found], dtype=np.int64)
                distances[row], ids[row] = _completed(near, rows, ids.shape[1], 2 * k)
        return distances, ids

    def close(self) -> None:
        """Leave the database; a folder of Milvus Lite may then be opened by another process."""
        self.client.close()
        if self.where.endswith(".db"):
            from milvus_lite.server_manager import server_manager_instance

            server_manager_instance.release_server(self.where)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _items(codes: SparseCodes, first: int = 0) -> list[dict[str, Any]]:
    """Return the codes as Milvus takes them, numbered from ``first``."""
    rows = enumerate(codes.active.tolist(), first)
    return [{"id": number, "units": dict.fromkeys(units, 1.0)} for number, units in rows]


def _completed(near: np.ndarray, ids: np.ndarray, width: int, farthest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and ids, each (width,), by distance and then row, the first absent rows at the end of them."""
    absent = np.setdiff1d(np.arange(width), ids)[: width - len(ids)]
    order = np.lexsort((ids, near))
    return np.append(near[order], np.full(len(absent), farthest)), np.append(ids[order], absent)
