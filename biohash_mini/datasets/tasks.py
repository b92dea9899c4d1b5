"""Data sets and the tasks made of them: which rows are searched, which are the queries, and their true neighbours."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..inputs import count as whole
from ..inputs import real_array, require, rows_near_one, unit_of
from ..storage import digest, load_arrays
from .decoders import decode_words
from .optional import optional
from .samples import FOLDER, read_sample
from .sources import SPECS, find, known, read_full

NAMES = tuple(SPECS)
PROFILES = ("mini", "full")
QUERIES_PER_CLASS = {("cifar10", "full"): 1_000, ("cifar10", "mini"): 50}  # 100 of all others
SAMPLE_LAYER = "alexnet pooled, 224 px"  # of the embedded features
FEATURES = tuple(name for name, spec in SPECS.items() if not spec.sha256)  # of CIFAR-10's images, row by row


@dataclass(frozen=True, eq=False)
class Task:
    """Queries to answer from a database, and the rows that a method may learn from.

    A retrieved item is relevant if its label is the query's; without labels the truth is :func:`nearest`.
    """

    database: np.ndarray = field(repr=False)  #: float32 (n, d)
    queries: np.ndarray = field(repr=False)  #: float32 (q, d)
    database_labels: np.ndarray | None = field(default=None, repr=False)  #: (n,)
    query_labels: np.ndarray | None = field(default=None, repr=False)  #: (q,)
    database_ids: np.ndarray | None = field(default=None, repr=False)  #: int64 (n,), row numbers in the data set
    query_ids: np.ndarray | None = field(default=None, repr=False)  #: int64 (q,)
    train: np.ndarray = field(default=None, repr=False)  #: float32 (t, d), what methods fit on; by default the database
    image_shape: tuple[int, int, int] | None = None  #: channels, height, width
    sha256: str = ""  #: checksum of the data set

    def __post_init__(self) -> None:
        if self.train is None:
            object.__setattr__(self, "train", self.database)

    def validation(self, per_class: int = 100, seed: int = 0) -> "Task":
        """Return the task to choose parameters by: some rows of each class of the database query the others.

        The queries of this task stay unseen. With the paper's 100 per class, MNIST's 69,000 rows become 68,000 and
        1,000, those of CIFAR-10 49,000 and 1,000.
        """
        require(self.database_labels is not None, "a validation split needs labels, and this task has none")
        X, labels, rows = self.database, self.database_labels, np.arange(len(self.database))
        ids = rows if self.database_ids is None else self.database_ids
        chosen = sample_per_class(labels, per_class, seed)
        rest = np.delete(rows, chosen)
        split = {"database_labels": labels[rest], "query_labels": labels[chosen]}
        split |= {"database_ids": ids[rest], "query_ids": ids[chosen]}
        return replace(self, database=X[rest], queries=X[chosen], **split, train=None)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set as stored: rows of pixels or vectors, with labels or words."""

    name: str
    profile: str
    X: np.ndarray = field(repr=False)  #: (n, d), uint8 pixels in the order channel, row, column, or float16 vectors
    sha256: str  #: checksum of the arrays
    labels: np.ndarray | None = field(default=None, repr=False)  #: uint8 (n,)
    words: np.ndarray | None = field(default=None, repr=False)  #: str (n,)
    image_shape: tuple[int, int, int] | None = None  #: channels, height, width
    layer: str = ""  #: what the rows of features are, such as "alexnet pooled, 224 px"

    def __len__(self) -> int:
        return len(self.X)

    def vectors(self, rows: np.ndarray | slice | None = None) -> np.ndarray:
        """Return the rows, or all of them, as float32 of shape (n, d), pixels scaled to [0, 1]."""
        X = (self.X if rows is None else self.X[rows]).astype(np.float32)
        if self.X.dtype == np.uint8:
            X /= 255
        return X

    def retrieval_task(self, seed: int = 0, queries_per_class: int | None = None) -> Task:
        """Return the task of finding the items of a query's class: random queries of each class, the rest to search.

        The paper takes 100 queries per class on MNIST (69,000 rows left) and 1,000 on CIFAR-10 (50,000 left), and so
        does ``queries_per_class=None``; the mini samples take 100 and 50.
        """
        if self.labels is None:
            raise ValueError(f"{self.name} has no labels; use word_task, whose truth is the nearest neighbours")
        images = "cifar10" if self.name in FEATURES else self.name
        usual = QUERIES_PER_CLASS.get((images, self.profile), 100)
        queries = sample_per_class(self.labels, usual if queries_per_class is None else queries_per_class, seed)
        return self._task(np.delete(np.arange(len(self)), queries), queries)

    def word_task(self, seed: int = 0, size: int | None = None) -> Task:
        """Return the task of finding neighbours: ``size`` random rows are searched with each of them, the rest trains.

        The paper takes 10,000 of 50,000 words. ``size=None`` takes that many, or a fifth of a smaller data set. There
        are no labels: :func:`nearest` gives the truth, in which every query also finds itself.
        """
        most = len(self) - 1  # a row is left to train on
        size = min(10_000, len(self) // 5) if size is None else whole("size", size, 1, most)
        order = np.random.default_rng(whole("seed", seed, 0)).permutation(len(self))
        chosen, rest = np.sort(order[:size]), np.sort(order[size:])
        return self._task(chosen, chosen, train=self.vectors(rest), labelled=False)

    def _task(self, database: np.ndarray, queries: np.ndarray, train=None, labelled: bool = True) -> Task:
        """Return the task whose database and queries are these rows."""
        X, Q = self.vectors(database), self.vectors(queries)
        labels = (self.labels[database], self.labels[queries]) if labelled else (None, None)
        return Task(X, Q, *labels, database, queries, train, self.image_shape, self.sha256)


def load(name: str, profile: str = "mini", *, pool: bool = True) -> Dataset:
    """Return a data set, n rows of d values.

    Parameters
    ----------
    name : {"mnist", "cifar10", "glove", "glove-100d", "sentences",
            "cifar10-vgg16", "cifar10-vgg16bn", "cifar10-alexnet"}
        ``glove`` has the 300 dimensions of the paper; its mini sample, and ``glove-100d``, have 100. ``sentences`` are
        computed by the package wordllama unless they are the sample. The last three are features of CIFAR-10's images
        in their order: fc7 if it was extracted, else pool5, which is pooled here, else the pooled convolutions. They
        share a mini sample, AlexNet's.
    profile : {"mini", "full"}
        The embedded sample, or everything; the latter may take a download the first time.
    pool : bool
        Whether the maps of pool5 are averaged over their positions.
    """
    spec = known(name)
    require(profile in PROFILES, f"unknown profile {profile!r}; choose one of {', '.join(PROFILES)}")
    layer = SAMPLE_LAYER if name in FEATURES else ""
    if profile == "full" and name in FEATURES:
        arrays, about = load_arrays(path := find(name))
        features = {"X", "labels"} <= set(arrays) and {"network", "layer", "side"} <= set(about)
        require(features, f"{path} does not hold features of images: move it away and extract them anew")
        sha256 = digest(arrays)
        if about["layer"] == "pool5" and pool:
            arrays["X"], about["layer"] = pool_positions(arrays["X"], about["network"]), "pooled"
        layer = "{network} {layer}, {side} px".format(**about)
    elif profile == "full":
        arrays, sha256 = read_full(name), spec.sha256
    else:
        arrays, sha256 = read_sample(FOLDER / spec.sample), spec.sample_sha256
        require(digest(arrays) == sha256, f"the embedded sample {spec.sample} is damaged: reinstall the package")
    words = decode_words(arrays["words"]) if "words" in arrays else None
    return Dataset(name, profile, arrays["X"], sha256, arrays.get("labels"), words, spec.image_shape, layer)


def pool_positions(maps: np.ndarray, network: str) -> np.ndarray:
    """Return the mean of each channel of flattened maps over its positions, shape (n, channels) float16."""
    channels = 256 if network == "alexnet" else 512
    return maps.reshape(len(maps), channels, -1).mean(2, np.float32).astype(np.float16)


def sample_per_class(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return ``count`` random row numbers of each class, ascending, shape (classes * count,)."""
    classes, sizes = np.unique(labels, return_counts=True)
    most = sizes.min() - 1
    count = whole("the number of rows per class", count, 1, most)  # so that each class keeps one
    rng = np.random.default_rng(whole("seed", seed, 0))
    return np.sort(np.concatenate([rng.choice(np.flatnonzero(labels == c), count, replace=False) for c in classes]))


def nearest(queries: np.ndarray, database: np.ndarray, top: int, metric: str = "euclidean") -> np.ndarray:
    """Return the row numbers of the ``top`` nearest database rows of each query, nearest first, shape (q, top) int64.

    Queries (q, d) are compared with the database (n, d) by "euclidean" or "cosine" distance. Every distance is
    computed, in float32 by faiss: nothing is approximated but the last digits. A query in the database finds itself.
    """
    require(metric in ("euclidean", "cosine"), f"unknown metric {metric!r}; choose euclidean or cosine")
    top = whole("top", top, 1, len(database))
    faiss = optional("faiss", extra="faiss")
    with np.errstate(over="ignore"):
        Q, X = (
            np.array(real_array("queries and database", a), np.float32, order="C")  # a copy: faiss normalises in place
            for a in (queries, database)
        )
    same = Q.ndim == X.ndim == 2 and Q.shape[1] == X.shape[1]
    require(same, f"queries {Q.shape} and database {X.shape} must have shapes (q, d) and (n, d)")
    finite = np.isfinite(Q).all() and np.isfinite(X).all()
    require(bool(finite), "queries and database must be finite in float32: no row is nearest to NaN or infinity")
    if metric == "cosine":
        Q, X = rows_near_one(Q), rows_near_one(X)
    elif (unit := unit_of(max(np.abs(Q).max(initial=0), np.abs(X).max(initial=0)))) != 1:
        Q, X = Q * np.float32(unit), X * np.float32(unit)  # squares of so large or small values are lost in float32
    if metric == "cosine":
        faiss.normalize_L2(Q)
        faiss.normalize_L2(X)
    index = (faiss.IndexFlatL2 if metric == "euclidean" else faiss.IndexFlatIP)(X.shape[1])
    index.add(X)
    chunks = [index.search(Q[i : i + 1024], top)[1] for i in range(0, len(Q), 1024)]
    return np.concatenate(chunks) if chunks else np.empty((0, top), np.int64)
