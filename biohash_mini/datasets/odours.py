"""What the fly's nose says of 110 smells: responses of its receptor neurons, measured by Hallem and Carlson (2006)."""

from dataclasses import dataclass, field

import numpy as np

from ..inputs import require
from ..storage import digest
from .decoders import decode_words
from .samples import FOLDER, read_npz

SHA256 = "b0f97a821ff3e8ad7db549ab760f9f22e1dad0656710091c4872607ac009d5cc"  # of the arrays in the embedded file


@dataclass(frozen=True, eq=False)
class Odours:
    """Odours as the fly's receptor neurons answer to them."""

    rates: np.ndarray = field(repr=False)  #: float32 (110, 24), spikes in a second
    names: np.ndarray = field(repr=False)  #: str (110,), of the odours
    receptors: np.ndarray = field(repr=False)  #: str (24,)


def load_odours() -> Odours:
    r"""Return the firing rates of 24 kinds of receptor neurons to 110 odours.

    .. math:: r = \max(0, \Delta r + r_0)

    The measurement is a change :math:`\Delta r` against the rate :math:`r_0` at which a neuron fires in clean air.
    """
    arrays = read_npz(FOLDER / "odours.npz")
    require(digest(arrays) == SHA256, "the embedded sample odours.npz is damaged: reinstall the package")
    rates = np.maximum(arrays["changes"] + arrays["resting"], 0).astype(np.float32)
    return Odours(rates, decode_words(arrays["odours"]), decode_words(arrays["receptors"]))
