"""The paper's tables and figures, and our own experiments, as declarations."""

from ..experiment import Experiment
from . import critics, improvements, pixels, studies, uses, vectors

_MODULES = (pixels, vectors, studies, improvements, uses, critics)

#: Every experiment by its name.
EXPERIMENTS: dict[str, Experiment] = {e.name: e for module in _MODULES for e in module.EXPERIMENTS}
