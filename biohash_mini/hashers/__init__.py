"""The hashing methods, one file per family; all obey :class:`~biohash_mini.hashers.base.Hasher`.

``METHODS`` is the registry: a method that has a line there is known to the command line, the tables, the figures, the
reference and the tests.
"""

from .autoencoder import UHBNN
from .base import Hasher
from .bio import BioHash, NaiveBioHash
from .convolution import BioConvHash
from .deep import DH
from .fly import DenseFly, FlyHash
from .greedy import GreedyHash
from .lifting import SOLHash
from .lsh import LSH
from .orthogonal import POSH
from .pca import ITQ, PCAHash
from .spectral import SpectralHash
from .wta import WTAHash

#: The methods by the names that the paper's tables give them.
METHODS: dict[str, type[Hasher]] = {
    "LSH": LSH,
    "PCAHash": PCAHash,
    "FlyHash": FlyHash,
    "SH": SpectralHash,
    "ITQ": ITQ,
    "NaiveBioHash": NaiveBioHash,
    "BioHash": BioHash,
    "BioConvHash": BioConvHash,
    "DenseFly": DenseFly,
    "WTAHash": WTAHash,
    "DH": DH,
    "UH-BNN": UHBNN,
    "GreedyHash": GreedyHash,
    "SOLHash": SOLHash,
    "POSH": POSH,
}

__all__ = ["METHODS", "Hasher", *sorted(method.__name__ for method in METHODS.values())]
