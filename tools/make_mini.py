"""Make the embedded samples from the full data sets; the same files every time.

Run it from the repository's root: ``python tools/make_mini.py``. It prints the checksums that
``biohash_mini/datasets/sources.py`` must hold. The features need the weights of AlexNet (see
:mod:`biohash_mini.datasets.networks`); their last digits may differ from machine to machine.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from biohash_mini.datasets import sample_per_class
from biohash_mini.datasets.decoders import decode_words, encode_words
from biohash_mini.datasets.networks import extract_cifar10
from biohash_mini.datasets.samples import FOLDER, read_sample, write_sample
from biohash_mini.datasets.sources import SPECS, read_full
from biohash_mini.storage import digest, load_arrays, write_atomically

PER_CLASS = {"mnist": 1_100, "cifar10": 300}
N_WORDS = 12_000


def sample(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a sample: as many random rows of each class, or the most frequent words."""
    if name == "cifar10-alexnet":  # of the images in the sample of CIFAR-10
        with TemporaryDirectory() as folder:
            path = extract_cifar10("alexnet", "pooled", Path(folder) / "features.safetensors", profile="mini")
            return load_arrays(path)[0]
    full = read_full(name)
    if "words" in full:
        return {"X": full["X"][:N_WORDS], "words": encode_words(decode_words(full["words"])[:N_WORDS])}
    rows = sample_per_class(full["labels"], PER_CLASS[name], seed=0)
    return {key: values[rows] for key, values in full.items()}


def main() -> None:
    """Write the four samples, read them back and print their sizes and checksums."""
    for name in ("mnist", "cifar10", "glove-100d", "cifar10-alexnet"):
        spec, arrays = SPECS[name], sample(name)
        path = FOLDER / spec.sample
        write_atomically(path, lambda part, spec=spec, arrays=arrays: write_sample(part, arrays, spec.image_shape))
        assert digest(read_sample(path)) == digest(arrays), f"{path} does not decode to what was written"
        state = "as recorded" if digest(arrays) == spec.sample_sha256 else "NOT the recorded one"
        print(f"{spec.sample:20} {len(arrays['X']):6} rows {path.stat().st_size:9} bytes  {digest(arrays)} ({state})")


if __name__ == "__main__":
    main()
