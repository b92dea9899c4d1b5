"""The ties explorer: items at a few distances, an order inside each tie, and the average precision it gets."""

import numpy as np
from traitlets import Int, List, TraitError, validate

from ..metrics import average_precision
from .base import HERE, Widget, module, svg

DISTANCES = (0, 0, 2, 2, 2, 2, 4, 4)
RELEVANT = (1, 0, 1, 1, 0, 0, 0, 1)


class TiesExplorer(Widget):
    r"""A ranking whose ties can be reordered by hand, with its AP between the bounds over all orders.

    The page tries every pattern of relevant items inside the ties, which are all equally likely, so that expected,
    best and worst score are exact: those of :func:`biohash_mini.metrics.average_precision`.

    Parameters
    ----------
    distances : list of int, ascending
        Hamming distances of at most twelve items.
    relevant : list of 0 and 1
        Whether each item is relevant.
    at : int, optional
        Items that count (R); by default all.

    Attributes
    ----------
    order : list of int
        The items as they stand on the page, first to last.
    """

    _esm = module("ties.js")
    _css = Widget._css + (HERE / "ties.css").read_text("utf-8")
    sentence = (
        "A ranking of items at three distances. With scripts on, the items of a tie can be reordered, and the average "
        "precision moves between its worst and its best value."
    )
    distances = List(Int(min=0), list(DISTANCES), minlen=1, maxlen=12).tag(sync=True)
    relevant = List(Int(min=0, max=1), list(RELEVANT)).tag(sync=True)
    order = List(Int(min=0)).tag(sync=True)
    at = Int(min=1).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        n = len(traits.get("distances", DISTANCES))  # type: ignore[arg-type]
        super().__init__(**{"order": list(range(n)), "at": n} | traits)
        if list(self.distances) != sorted(self.distances) or len(self.relevant) != n:
            raise ValueError(f"{n} ascending distances need as many relevant, got {self.distances}, {self.relevant}")

    @validate("order")
    def _inside_ties(self, proposal: dict) -> list[int]:
        order, far = list(proposal["value"]), self.distances
        if sorted(order) != list(range(len(far))) or [far[i] for i in order] != list(far):
            raise TraitError(f"order must keep every item inside its tie, got {order}")
        return order

    def score(self, ties: str = "index") -> float:
        """Return the AP of the order on show ("index"), or "expected", "best" or "worst" over all orders."""
        place = self.order if ties == "index" else np.arange(len(self.order))
        far, rel = np.array(self.distances)[place], np.array(self.relevant, bool)[place]
        return float(average_precision(far, rel, at=self.at, ties=ties)[0])  # type: ignore[arg-type]

    def picture(self) -> str:
        """Return the ranking as a still SVG, a filled square for a relevant item, a gap between ties."""
        shapes, x = [], 0
        for place, item in enumerate(self.order):
            x += 6 if place and self.distances[item] != self.distances[self.order[place - 1]] else 0
            look = 'fill="#009e73"' if self.relevant[item] else 'fill="none" stroke="#777" stroke-dasharray="3 2"'
            shapes.append(f'<rect x="{x + 1}" y="1" width="16" height="16" {look}/>')
            x += 20
        return svg(f"0 0 {x} 18", *shapes)
