"""Bio-inspired hashing for similarity search: learn sparse codes, search them exactly, measure them honestly."""

from .codes import Codes, DenseCodes, SparseCodes
from .datasets import load
from .hashers import (
    DH,
    ITQ,
    LSH,
    METHODS,
    POSH,
    UHBNN,
    BioConvHash,
    BioHash,
    DenseFly,
    FlyHash,
    GreedyHash,
    Hasher,
    NaiveBioHash,
    PCAHash,
    SOLHash,
    SpectralHash,
    WTAHash,
)
from .metrics import average_precision, mean_average_precision, recall, tie_bounds
from .search import HammingIndex

__version__ = "0.1.0"

__all__ = [
    "DH",
    "ITQ",
    "LSH",
    "METHODS",
    "POSH",
    "UHBNN",
    "BioConvHash",
    "BioHash",
    "Codes",
    "DenseCodes",
    "DenseFly",
    "FlyHash",
    "GreedyHash",
    "HammingIndex",
    "Hasher",
    "NaiveBioHash",
    "PCAHash",
    "SOLHash",
    "SparseCodes",
    "SpectralHash",
    "WTAHash",
    "average_precision",
    "load",
    "mean_average_precision",
    "recall",
    "tie_bounds",
]
