"""One file per family of hashing methods; all obey :class:`~biohash_mini.hashers.base.Hasher`."""

from .autoencoder import UHBNN
from .base import Hasher
from .bio import BioHash, NaiveBioHash
from .conv import BioConvHash
from .deep import DH
from .fly import DenseFly, FlyHash
from .greedy import GreedyHash
from .lifting import SOLHash
from .lsh import LSH
from .pca import ITQ, PCAHash
from .spectral import SpectralHash

__all__ = [
    "DH",
    "ITQ",
    "LSH",
    "UHBNN",
    "BioConvHash",
    "BioHash",
    "DenseFly",
    "FlyHash",
    "GreedyHash",
    "Hasher",
    "NaiveBioHash",
    "PCAHash",
    "SOLHash",
    "SpectralHash",
]
