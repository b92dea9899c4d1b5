import json

import numpy as np
import pytest

from biohash_mini.datasets import decoders
from biohash_mini.storage import digest

from .conftest import idx


def test_mnist_files_decode_in_order(tiny):
    raw, arrays = tiny
    decoded = decoders.decode_mnist(*raw.values())
    assert digest(decoded) == digest(arrays)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: b"<html>" + raw, lambda raw: b""])
def test_a_damaged_idx_file_is_refused(damage):
    with pytest.raises(ValueError):
        decoders.decode_idx(damage(idx(np.arange(6).reshape(2, 3))))


def test_cifar10_files_decode_in_order():
    rows = np.random.default_rng(0).integers(0, 10, (4, 3_073), np.uint8)
    decoded = decoders.decode_cifar10(rows[:3].tobytes(), rows[3:].tobytes())
    assert digest(decoded) == digest({"X": rows[:, 1:], "labels": rows[:, 0]})
    with pytest.raises(ValueError):
        decoders.decode_cifar10(rows.tobytes()[:-5])


def test_glove_text_decodes_words_and_halves(monkeypatch):
    monkeypatch.setattr(decoders, "N_WORDS", 2)
    decoded = decoders.decode_glove("the 0.5 -1.25\ncafé 0.0029459 2\nrare 9 9\n".encode())
    assert decoders.decode_words(decoded["words"]).tolist() == ["the", "café"]
    np.testing.assert_array_equal(decoded["X"][0], np.array([0.5, -1.25], np.float16))


def test_one_decimal_rounds_in_two_ways():
    twice, once = (decoders.decode_glove(b"word 0.0029459", through=t)["X"][0, 0] for t in (np.float32, np.float64))
    assert twice != once == np.float16(0.0029459)


def test_wink_json_decodes_words_and_halves(monkeypatch):
    monkeypatch.setattr(decoders, "N_WORDS", 2)
    vectors = {'say "vectors":{': [0.5] * 100 + [5.0, 0], "é": [-1.5] * 100 + [15.0, 1], "rare": [0] * 102}
    text = json.dumps({"size": 3, "words": list(vectors), "vectors": vectors}, separators=(",", ":"))
    decoded = decoders.decode_wink(text.encode())
    assert decoders.decode_words(decoded["words"]).tolist() == ['say "vectors":{', "é"]
    np.testing.assert_array_equal(decoded["X"], np.repeat(np.float16([[0.5], [-1.5]]), 100, axis=1))
