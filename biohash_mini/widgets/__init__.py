"""Figures that move: widgets that Python drives in JupyterLab and that live in the book without a kernel."""

from .base import Widget
from .channels import ChannelExplorer
from .circle import CircleExplorer
from .explorer import ResultsExplorer
from .playground import PlasticityPlayground
from .retrieval import RetrievalExplorer
from .shadow import ShadowPlayground
from .ties import TiesExplorer
from .tsne import TsneExplorer

__all__ = ["ChannelExplorer", "CircleExplorer", "ResultsExplorer", "RetrievalExplorer", "TsneExplorer"]
__all__ += ["PlasticityPlayground", "ShadowPlayground", "TiesExplorer", "Widget"]
