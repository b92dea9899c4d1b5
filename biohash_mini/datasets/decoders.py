"""Raw files as arrays: one decoder for each published format, and words as the numbers that safetensors can hold."""

import json
import re
from collections.abc import Iterable
from itertools import islice

import numpy as np

from .samples import Arrays

N_WORDS = 50_000  # the paper's vocabulary: the most frequent words


def encode_words(words: Iterable[str]) -> np.ndarray:
    """Return the UTF-8 bytes of a newline-joined list, shape (bytes,): safetensors holds numbers only."""
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def decode_words(codes: np.ndarray) -> np.ndarray:
    """Return the words that :func:`encode_words` joined, shape (n,)."""
    return np.array(codes.tobytes().decode().split("\n"))


def decode_idx(raw: bytes) -> np.ndarray:
    """Return the array of an idx file: 0, 0, 8 for bytes, the rank, big-endian sizes, then the values."""
    if raw[:3] != b"\0\0\x08":
        raise ValueError("not an idx file of bytes")
    shape = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape.tolist())


def decode_mnist(*raw: bytes) -> Arrays:
    """Return X (n, 784) and labels (n,) of idx files given as images, labels, images, labels, ..."""
    images, labels = (np.concatenate([decode_idx(file) for file in raw[i::2]]) for i in (0, 1))
    return {"X": images.reshape(len(labels), -1), "labels": labels}


def decode_cifar10(*raw: bytes) -> Arrays:
    """Return X (n, 3072), channels first, and labels (n,) of .bin files: rows of a label and its pixels."""
    rows = np.frombuffer(b"".join(raw), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    return {"X": rows[:, 1:].copy(), "labels": rows[:, 0].copy()}


def decode_glove(text: bytes, *, through: type = np.float32) -> Arrays:
    """Return X (n, d) float16 and words of the first lines ``word value value ...`` of a GloVe text file."""
    lines = [line.decode().split(" ", 1) for line in text.split(b"\n", N_WORDS)[:N_WORDS] if line]
    X = np.stack([np.fromstring(values, sep=" ").astype(through).astype(np.float16) for _, values in lines])
    return {"X": X, "words": encode_words(word for word, _ in lines)}


def decode_wink(text: bytes) -> Arrays:
    """Return X (n, 100) float16 and words of JSON whose ``vectors`` map a word to its values, norm and number."""
    entry = re.compile(rb'("(?:[^"\\]|\\.)*"):\[([^]]*)\]')
    found = [m.groups() for m in islice(entry.finditer(text, text.index(b'"vectors":{')), N_WORDS)]
    X = np.stack([np.fromstring(values, sep=",")[:100].astype(np.float16) for _, values in found])
    return {"X": X, "words": encode_words(json.loads(word) for word, _ in found)}
