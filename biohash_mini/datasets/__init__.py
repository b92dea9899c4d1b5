"""The paper's data and its protocols: ``load`` a data set, split it into a ``Task``, find the true neighbours.

``load(name, "mini")`` reads a real sample that ships with the package; ``load(name, "full")`` the whole data set, from
the places that :mod:`biohash_mini.datasets.sources` knows. Both are checked by the SHA-256 of their decoded arrays.
Features of images are computed by :mod:`biohash_mini.datasets.networks`.
"""

from .sources import data_path, fetch, find, verify
from .tasks import FEATURES, NAMES, PROFILES, Dataset, Task, load, nearest, pool_positions, sample_per_class

__all__ = ["FEATURES", "NAMES", "PROFILES", "Dataset", "Task", "load", "nearest", "pool_positions", "sample_per_class"]
__all__ += ["data_path", "fetch", "find", "verify"]
