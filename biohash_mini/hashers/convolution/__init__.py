"""BioHash on images: filters, their features kept as bytes, and a layer that learns at the cost of what is not zero."""

from .hasher import BioConvHash

__all__ = ["BioConvHash"]
