"""Figures that move: widgets that Python drives in JupyterLab and that live in the book without a kernel."""

from .base import Widget
from .circle import CircleExplorer
from .playground import PlasticityPlayground

__all__ = ["CircleExplorer", "PlasticityPlayground", "Widget"]
