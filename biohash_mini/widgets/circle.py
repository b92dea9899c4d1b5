"""The circle explorer: units drift to their optimum, two data points show their codes."""

import numpy as np
from traitlets import Float, Int, List, observe

from .. import circle
from .base import Widget, dots, module, path, svg

RADIUS, BAND = 84, 28


class CircleExplorer(Widget):
    r"""Units on the circle, data of density :math:`\propto e^{-|\varphi|/\sigma}`, and the codes of two points.

    Parameters
    ----------
    sigma : float in [0.1, 10]
        Width of the density.
    n_units : int in [2, 16]
        Units (m).
    hash_length : int in [1, m - 1]
        Units on in a code (k).
    points : list of two floats
        Angles of the data points A and B.

    Attributes
    ----------
    optimum : list of float
        Angles of lowest energy, :func:`biohash_mini.circle.optimal_angles`.
    angles : list of float
        Where the units last came to rest on the page.
    """

    _esm = module("circle.js")
    sentence = (
        "Units (dots) where they come to rest on the circle. The band shows where the data are dense. "
        "With scripts on, the units move and two points can be dragged to compare their codes."
    )
    sigma = Float(0.5, min=0.1, max=10).tag(sync=True)
    n_units = Int(6, min=2, max=16).tag(sync=True)
    hash_length = Int(2, min=1, max=15).tag(sync=True)
    points = List(Float(), [0.3, 1.1], minlen=2, maxlen=2).tag(sync=True)
    optimum = List(Float()).tag(sync=True)
    angles = List(Float()).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        super().__init__(**traits)
        self._solve()

    @observe("sigma", "n_units")
    def _solve(self, change: object = None) -> None:
        self.hash_length = min(self.hash_length, self.n_units - 1)
        self.optimum = [round(a, 6) for a in circle.optimal_angles(self.n_units, self.sigma).tolist()]

    def picture(self) -> str:
        """Return the density, the circle and the units at their optimum as a still SVG."""
        phi = np.linspace(-np.pi, np.pi, 121)
        band = BAND * circle.density(phi, self.sigma) / circle.density(0, self.sigma)
        return svg(
            "-126 -126 252 252",
            path(np.concatenate([_around(phi, RADIUS + band), _around(phi[::-1], RADIUS)]), fill="#e0a94a"),
            path(_around(phi, RADIUS), fill="none", stroke="currentColor"),
            dots(_around(np.array(self.optimum), RADIUS), 7, fill="#0072b2"),
        )


def _around(phi: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Return the points at these angles, shape (n, 2)."""
    return np.stack([radius * np.cos(phi), radius * np.sin(phi)], axis=1)
