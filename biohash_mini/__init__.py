"""Bio-inspired hashing for similarity search: learn sparse codes, search them exactly, measure them honestly."""

import sys

try:
    from .codes import Codes, DenseCodes, SparseCodes
    from .datasets import load
    from .hashers import (
        DH,
        ITQ,
        LSH,
        METHODS,
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
    )
    from .metrics import average_precision, mean_average_precision, recall, tie_bounds
    from .search import HammingIndex
except (
    KeyboardInterrupt
):  # imports take seconds, and come before any line of ``cli``; the command ends as its ``main`` does
    if not sys.argv[0].endswith("biohash"):
        raise
    print("biohash: interrupted", file=sys.stderr)
    sys.exit(130)

__version__ = "0.1.0"

__all__ = [
    "DH",
    "ITQ",
    "LSH",
    "METHODS",
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
    "average_precision",
    "load",
    "mean_average_precision",
    "recall",
    "tie_bounds",
]
