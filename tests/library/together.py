"""Started by torchrun: fit several hashers together, each process to its share of the rows, and save them."""

import sys
from pathlib import Path

import numpy as np
import torch.distributed as dist

from biohash_mini import LSH, BioHash, NaiveBioHash
from biohash_mini.distributed import fit, gather, process_group, share
from biohash_mini.storage import save_arrays

HASHERS = {
    "default": BioHash(4, activity=0.1),
    "few units": BioHash(4, activity=0.2, batch_size=64, max_epochs=3),  # 20 units: the sums of all are sent
    "naive": NaiveBioHash(24, batch_size=16, max_epochs=2),
    "printed": BioHash(
        4, start="normal", reduction="max", learning_rate=0.02, relative_rate=False, smooth=False, max_epochs=2
    ),
    "anti-Hebbian": BioHash(4, activity=0.1, delta=0.1, anti_rank=3, reduction="mean", learning_rate=0.1, max_epochs=2),
    "third power": BioHash(4, activity=0.1, p=3.0, max_epochs=2),
    "small batches": BioHash(4, activity=0.05, batch_size=3, max_epochs=1),  # of which a process may hold none
    "not centred": BioHash(4, activity=0.1, center=False, max_epochs=1),
}


def complaint(hasher, X, **given):
    """Return what a fit raises."""
    try:
        fit(hasher, X, **given)
    except ValueError as error:
        return str(error)


def main(vectors, folder):
    X = np.load(vectors, mmap_mode="r")
    with process_group("cpu"):
        rows = X[share(len(X))]
        for name, hasher in HASHERS.items():
            fit(hasher, rows if "batches" in name else np.array(rows))  # mapped, or in memory
            codes = gather(hasher.encode(rows))
            if codes is not None:
                hasher.save(folder / f"{name}.model")
                codes.save(folder / f"{name}.codes")
        rank, last = dist.get_rank(), dist.get_rank() == dist.get_world_size() - 1
        if rank == 0:
            save_arrays(folder / "foreign", {"weights": np.zeros((80, 784), np.float32)}, settings={}, steps=1)
        complaints = [
            complaint(BioHash(4), np.where([[last] * 784], np.nan, rows)),
            complaint(BioHash(4), np.array(rows), checkpoint=folder / "foreign"),
            complaint(LSH(4), np.array(rows)),
            complaint(BioHash(4), np.array(rows)[:, : 700 if last else 784]),
        ]
        one_pass = BioHash(4, center=False, max_epochs=1)
        fit(one_pass, np.array(rows), checkpoint=folder / "own", seconds=0)
        complaints.append(complaint(one_pass, rows[::-1].copy(), checkpoint=folder / "own"))  # of the same rows, turned
        (folder / f"complaints of {rank}").write_text("\n".join(map(str, complaints)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
