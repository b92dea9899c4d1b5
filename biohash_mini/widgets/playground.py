"""The plasticity playground: units as particles, moved by the learning rule on a density in the plane."""

from typing import Any

import torch
from torch import Tensor
from traitlets import Dict, Float, Int, List, Unicode, observe

from ..plasticity import annealed, row_norms, step_
from .base import Widget, dots, module, path, svg

SIDE, EXTENT, BATCH = 32, 2.4, 24  # cells along an edge of the map, half its width, rows of a minibatch


_middle = EXTENT * (2 * torch.arange(SIDE, dtype=torch.double) + 1 - SIDE) / SIDE
CENTRES = torch.cartesian_prod(-_middle, _middle).flip(1)  # of the cells, row by row from the upper left, (side², 2)


def _blob(x: float, y: float, width: float) -> Tensor:
    """Return a Gaussian density at the centres, shape (side²,)."""
    return torch.exp(-(CENTRES - torch.tensor([x, y])).square().sum(1) / (2 * width**2))


def _digits(weights: Tensor) -> str:
    """Return a density as one digit per cell, 9 at its peak."""
    return "".join(str(int(d)) for d in (9 * weights / weights.max()).round())


def _presets() -> dict[str, str]:
    angle, radius = torch.atan2(CENTRES[:, 1], CENTRES[:, 0]), CENTRES.norm(dim=1)
    ring = torch.exp(-((radius - 1.4) / 0.22).square())
    densities = {
        "three peaks": _blob(1.2, 0.7, 0.3) + 0.8 * _blob(-1.2, 0.8, 0.3) + 0.6 * _blob(0.1, -1.4, 0.3),
        "ring": ring,
        "crescent": ring * angle.cos().clamp_min(0),
        "spiral": torch.exp(-(((angle - 2.2 * radius) / 2).sin() / 0.3).square()) * (radius < 2.1),
        "one corner": _blob(1.1, 0.9, 0.45),
    }
    return {name: _digits(density) for name, density in densities.items()}


class PlasticityPlayground(Widget):
    r"""Units in the plane under the learning rule, on data that can be chosen or painted.

    In JupyterLab every step is :func:`biohash_mini.plasticity.step_`; on a page without a kernel the same rule runs
    in the browser. The learning rate falls to zero over a round of ``n_steps``.

    Parameters
    ----------
    n_units : int in [2, 40]
        Units (m).
    p : float in [1, 5]
        Order of the norm.
    delta : float in [0, 1]
        Strength of the anti-Hebbian update.
    anti_rank : int in [2, 6]
        Rank of the unit that receives it (r).
    learning_rate : float
        First learning rate.
    init_norm : float in [0.1, 2]
        p-norm of every unit at the start; directions are random.
    preset : str
        Name of the density, one of ``presets``, "blank", or "painted".
    seed : int
        Seed of the directions and of the minibatches drawn in Python.

    Attributes
    ----------
    weights : list of m pairs
        The units.
    density : str
        One digit per cell of the map, row by row from the upper left.
    """

    _esm = module("playground.js")
    sentence = (
        "Units (large dots) after a round of learning on data (small dots): those that won data have come to the "
        "dashed curve of norm one. With scripts on, the rule can be watched and its parameters changed."
    )
    n_units = Int(12, min=2, max=40).tag(sync=True)
    p = Float(2.0, min=1, max=5).tag(sync=True)
    delta = Float(0.0, min=0, max=1).tag(sync=True)
    anti_rank = Int(2, min=2, max=6).tag(sync=True)
    learning_rate = Float(0.05, min=0.005, max=0.2).tag(sync=True)
    init_norm = Float(1.5, min=0.1, max=2).tag(sync=True)
    preset = Unicode("three peaks").tag(sync=True)
    presets = Dict(_presets()).tag(sync=True)
    density = Unicode().tag(sync=True)
    extent = Float(EXTENT).tag(sync=True)
    start = List(Float()).tag(sync=True)
    weights: List = List().tag(sync=True)
    batch: List = List().tag(sync=True)
    step = Int(0).tag(sync=True)
    n_steps = Int(400).tag(sync=True)

    def __init__(self, *, seed: int = 0, **traits: object) -> None:
        self._rng = torch.Generator().manual_seed(seed)
        super().__init__(**traits)
        angles = 2 * torch.pi * torch.rand(self.traits()["n_units"].max, generator=self._rng)
        self.start = [round(a, 3) for a in angles.tolist()]
        self.weights = self._launch().tolist()
        self._load()
        self.on_msg(self._on_message)

    @observe("preset")
    def _load(self, change: object = None) -> None:
        if self.preset != "painted":
            self.density = self.presets.get(self.preset, "0" * SIDE**2)

    def _launch(self) -> Tensor:
        """Return the units at the start, shape (m, 2)."""
        angles = torch.tensor(self.start[: self.n_units], dtype=torch.double)
        W = torch.stack([angles.cos(), angles.sin()], 1)
        return self.init_norm * W / row_norms(W, self.p)[:, None]

    def _sample(self, n: int, rng: torch.Generator) -> Tensor:
        """Return n random data, shape (n, 2): a cell by its weight, then a place in it."""
        mass = torch.tensor([float(digit) for digit in self.density])
        if not (n and mass.any()):
            return torch.empty(0, 2, dtype=torch.double)
        cells = CENTRES[torch.multinomial(mass, n, replacement=True, generator=rng)]
        return cells + 2 * EXTENT / SIDE * (torch.rand(n, 2, generator=rng) - 0.5)

    def _learn(self, W: Tensor, steps: range, rng: torch.Generator) -> Tensor:
        """Move W in place by these steps of a round, if there are data, and return the last minibatch."""
        rule: dict[str, Any] = {"p": self.p, "delta": self.delta, "anti_rank": min(self.anti_rank, self.n_units)}
        X = self._sample(BATCH * len(steps), rng)
        for t, batch in zip(steps, X.view(-1, BATCH, 2), strict=False):
            step_(W, batch, annealed(self.learning_rate, t, self.n_steps), **rule)
        return X[-BATCH:]

    def _on_message(self, _: object, content: dict, buffers: object) -> None:
        """Take the steps that the page asks for."""
        W, last = torch.tensor(self.weights, dtype=torch.double), min(self.step + content["steps"], self.n_steps)
        X = self._learn(W, range(self.step, last), self._rng)
        with self.hold_sync():
            self.weights, self.batch, self.step = W.tolist(), X.tolist(), last

    def picture(self) -> str:
        """Return data, the unit sphere of the p-norm and the units after a round as a still SVG."""
        rng, W, scale = torch.Generator().manual_seed(0), self._launch(), 100 / EXTENT
        self._learn(W, range(self.n_steps), rng)
        turn = torch.linspace(0, 2 * torch.pi, 121, dtype=torch.double)
        sphere = torch.stack([turn.cos(), turn.sin()], 1)
        sphere /= row_norms(sphere, self.p)[:, None]
        return svg(
            "-100 -100 200 200",
            dots(scale * self._sample(150, rng), 1.2, fill="#e0a94a"),
            path(scale * sphere, fill="none", stroke="currentColor", stroke_dasharray="2 2"),
            dots(scale * W, 3.6, fill="#0072b2"),
        )
