r"""BioHash learned by several processes, on one machine or many, from rows of which each holds a share.

Every process has all synapses, and its own rows of every minibatch. A minibatch moves a unit by sums over its samples
(:func:`~biohash_mini.plasticity.sums`), and sums can be taken in parts: each process adds up its own samples,
one all-reduce adds up the processes, and all of them move their synapses alike. So P processes learn what one learns
from the same minibatches, up to rounding.

``torchrun`` starts the processes (``torchrun --nproc-per-node 2 -m biohash_mini.cli hash vectors.npy ...``); torch's
gloo connects processors, nccl connects graphics cards.
"""

from .group import gather, process_group, share
from .jobs import fit_and_encode
from .training import SharedRows, fit

__all__ = ["SharedRows", "fit", "fit_and_encode", "gather", "process_group", "share"]
