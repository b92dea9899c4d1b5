"""The embedded samples: npz files packed with LZMA, read by ``np.load``, small enough to ship with the package.

Colour images do not pack well as they are. They are stored as differences, which the reader sums up again: red and blue
against green, then every pixel against its left and upper neighbours, all modulo 256, so that nothing is lost.
"""

import lzma
import zipfile
import zlib
from pathlib import Path

import numpy as np

from ..inputs import require

Arrays = dict[str, np.ndarray]
FOLDER = Path(__file__).parent / "embedded"
COLOUR = (3, 32, 32)
LARGEST = 1 << 31  # bytes that an npz file may unpack to


def read_npz(path: Path) -> Arrays:
    """Return the arrays of an npz file, never unpickled; ValueError if it is broken, or unpacks to more than 2 GB."""
    try:
        with zipfile.ZipFile(path) as pack:
            size = sum(member.file_size for member in pack.infolist())
        require(size <= LARGEST, f"{path} unpacks to {size:,} bytes, more than the {LARGEST:,} that are read")
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{path} is not an intact npz file ({error})") from None


def read_sample(path: Path) -> Arrays:
    """Return the arrays of a sample file: X (n, d), with labels (n,) or words."""
    arrays = read_npz(path)
    if "differences" in arrays:
        arrays["X"] = add_up(arrays.pop("differences"))
    return arrays


def write_sample(path: Path, arrays: Arrays, image_shape: tuple[int, int, int] | None = None) -> None:
    """Write a sample file whose bytes depend on the arrays only, not on the clock."""
    if image_shape == COLOUR:
        arrays = {**arrays, "differences": take_differences(arrays["X"])}
        del arrays["X"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as pack:
        for name in sorted(arrays):
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_LZMA
            with pack.open(info, "w") as file:
                np.lib.format.write_array(file, np.ascontiguousarray(arrays[name]), allow_pickle=False)


def take_differences(X: np.ndarray) -> np.ndarray:
    """Return the differences of colour images X (n, 3072) uint8, shape (3, n, 32, 32), modulo 256."""
    red, green, blue = X.reshape(-1, *COLOUR).swapaxes(0, 1)
    planes = np.stack([green, red - green, blue - green])
    for axis in (-1, -2):
        planes = np.diff(planes, axis=axis, prepend=np.uint8(0))
    return planes


def add_up(differences: np.ndarray) -> np.ndarray:
    """Return the images X (n, 3072) uint8 whose differences these are."""
    for axis in (-1, -2):
        differences = np.cumsum(differences, axis=axis, dtype=np.uint8)
    green, red, blue = differences
    return np.stack([red + green, green, blue + green], axis=1).reshape(len(green), -1)
