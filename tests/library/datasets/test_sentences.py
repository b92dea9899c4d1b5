import io
import sys
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest

from biohash_mini.datasets import sentences


def archive(**texts):
    """Return a tar.gz with a file of a text for each kind."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for kind, text in texts.items():
            info = tarfile.TarInfo(f"folder/{kind}_GroundTruth.txt")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


TINY = dict(
    zip(sentences.KINDS, ["1\t0.5\tsalt &amp; oil\r\n2\t1\té!", "1_1\t0\tb", "1\t0\té!\n", "1\t0\tc"], strict=True)
)


@pytest.fixture
def model(monkeypatch):
    """A model in place of wordllama's: the vector of a sentence is its length and one third."""

    def load(cache_dir, disable_download):
        assert disable_download and cache_dir.name == "wordllama"
        return SimpleNamespace(embed=lambda texts: np.array([[len(text), 1 / 3] for text in texts], np.float32))

    package = SimpleNamespace(__file__="site/wordllama/__init__.py", WordLlama=SimpleNamespace(load=load))
    monkeypatch.setitem(sys.modules, "wordllama", package)


def test_sentences_are_read_in_order_each_once():
    texts, kinds = sentences.read_sentences(archive(**TINY))
    assert texts == ["salt & oil", "é!", "b", "c"] and kinds.tolist() == [0, 0, 1, 3]


def test_an_archive_decodes_to_vectors_and_kinds(model):
    arrays = sentences.decode_sentences(archive(**TINY))
    np.testing.assert_array_equal(arrays["X"], np.float16([[10, 1 / 3], [2, 1 / 3], [1, 1 / 3], [1, 1 / 3]]))
    assert arrays["X"].dtype == np.float16 and arrays["labels"].dtype == np.uint8


def test_an_archive_without_a_kind_or_with_other_lines_is_refused():
    with pytest.raises(ValueError, match="lacks movieReviewSnippets_GroundTruth"):
        sentences.read_sentences(archive(**{kind: TINY[kind] for kind in sentences.KINDS[:3]}))
    with pytest.raises(ValueError, match="not a number, a rating and a sentence: 'no tab'"):
        sentences.read_sentences(archive(**TINY | {"tweets": "no tab"}))


def test_without_the_model_the_message_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r'^wordllama is not installed: pip install "biohash-mini\[sentences\]"$'):
        sentences.decode_sentences(archive(**TINY))


def test_the_shipped_model_takes_the_mean_over_tokens():
    pytest.importorskip("wordllama")
    one, two, both = sentences.token_means(["cat", "dog", "cat dog"]).astype(float)
    np.testing.assert_allclose(both, (one + two) / 2, atol=2e-3)
