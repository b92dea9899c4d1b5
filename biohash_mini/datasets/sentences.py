"""Sentences of four kinds of text, and their vectors: the mean of what a small published model has for their tokens."""

import html
import io
import tarfile
from pathlib import Path, PurePosixPath

import numpy as np

from ..inputs import require
from .optional import optional
from .samples import Arrays

KINDS = ("tweets", "amazonReviewSnippets", "nytEditorialSnippets", "movieReviewSnippets")  # classes 0 to 3
LARGEST = 1 << 24  # bytes read of a file: more than any of the four has


def read_sentences(archive: bytes) -> tuple[list[str], np.ndarray]:
    """Return the distinct sentences of a tar archive, in its order of kinds, and their kinds, uint8 (n,).

    Each kind has a file whose lines are a number, a rating and a sentence with characters escaped as in HTML.
    """
    found: dict[str, int] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {PurePosixPath(member.name).name: member for member in tar if member.isfile()}
        for kind, name in enumerate(KINDS):
            file = f"{name}_GroundTruth.txt"
            require(file in files, f"the archive lacks {file}")
            for line in tar.extractfile(files[file]).read(LARGEST).decode().strip().split("\n"):
                fields = line.split("\t")
                require(len(fields) == 3, f"{file} has a line that is not a number, a rating and a sentence: {line!r}")
                found.setdefault(html.unescape(fields[2]).strip(), kind)
    return list(found), np.array([*found.values()], np.uint8)


def token_means(sentences: list[str]) -> np.ndarray:
    """Return the mean of the vectors of each sentence's tokens in the model that wordllama ships, (n, 256) float16.

    The sums are float32 in the order of the tokens, whatever the order of the sentences.
    """
    package = optional("wordllama", extra="sentences")
    shipped = Path(package.__file__).parent  # where it looks for its tokenizer only if it is called the cache
    model = package.WordLlama.load(cache_dir=shipped, disable_download=True)
    return model.embed(sentences).astype(np.float16)


def decode_sentences(archive: bytes) -> Arrays:
    """Return X (n, 256) and labels (n,), the kinds of text, of the archive of sentences."""
    sentences, labels = read_sentences(archive)
    return {"X": token_means(sentences), "labels": labels}
