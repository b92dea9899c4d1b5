"""Codes laid out in the plane, as in figure 5."""

from typing import Any

import numpy as np
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from ..codes import Codes


def embed(codes: Codes, seed: int, **given: Any) -> np.ndarray:
    """Return a tSNE embedding of the codes by their Hamming distances, shape (n, 2); ``given`` goes to tSNE."""
    settings = {"init": "random", "perplexity": 30, "random_state": seed} | given
    return TSNE(metric="precomputed", **settings).fit_transform(codes.hamming(codes).astype(np.float32))


def neighbour_purity(points: np.ndarray, labels: np.ndarray, neighbours: int = 10) -> float:
    """Return the mean share of a point's nearest neighbours in the plane that have its label."""
    ids = NearestNeighbors(n_neighbors=neighbours + 1).fit(points).kneighbors(return_distance=False)[:, :neighbours]
    return float((labels[ids] == labels[:, None]).mean())
