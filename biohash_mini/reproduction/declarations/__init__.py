"""The paper's tables and figures, and our own experiments, as declarations."""

from ..experiment import Experiment
from . import pixels, studies, vectors

#: Every experiment by its name.
EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (*pixels.EXPERIMENTS, *vectors.EXPERIMENTS, *studies.EXPERIMENTS)
}
