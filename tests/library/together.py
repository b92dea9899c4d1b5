"""Started by torchrun: fit several hashers together, each process to its share of the rows, and save them."""

import sys

import numpy as np

from biohash_mini import BioHash, NaiveBioHash
from biohash_mini.distributed import fit, gather, process_group, share

HASHERS = {
    "default": BioHash(4, activity=0.1),
    "few units": BioHash(4, activity=0.2, batch_size=64, max_epochs=3),  # 20 units: the sums of all are sent
    "naive": NaiveBioHash(24, batch_size=16, max_epochs=2),
    "printed": BioHash(4, start="normal", reduction="max", learning_rate=0.02, relative_rate=False, smooth=False)
    .set_params(max_epochs=2, norm_tol=1.06),
    "anti-Hebbian": BioHash(4, activity=0.1, delta=0.1, anti_rank=3, reduction="mean", learning_rate=0.1, max_epochs=2),
    "third power": BioHash(4, activity=0.1, p=3.0, max_epochs=2),
    "small batches": BioHash(4, activity=0.05, batch_size=3, max_epochs=1),  # of which a process may hold none
    "not centred": BioHash(4, activity=0.1, center=False, max_epochs=1),
}  # fmt: skip


def main(vectors: str, folder: str) -> None:
    X = np.load(vectors, mmap_mode="r")
    with process_group("cpu"):
        for name, hasher in HASHERS.items():
            rows = X[share(len(X))]
            fit(hasher, rows if "batches" in name else np.array(rows))  # mapped, or in memory
            codes = gather(hasher.encode(rows))
            if codes is not None:
                hasher.save(f"{folder}/{name}.model")
                codes.save(f"{folder}/{name}.codes")


if __name__ == "__main__":
    main(*sys.argv[1:])
