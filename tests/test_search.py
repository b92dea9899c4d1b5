import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biohash_mini import search
from biohash_mini.search import HammingIndex
from tests.test_codes import random_codes


def brute_force(database, queries, top):
    D = queries.hamming(database).astype(int)
    ids = np.argsort(D, axis=1, kind="stable")[:, :top]
    return np.take_along_axis(D, ids, 1), ids


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["sparse", "dense"]), st.integers(1, 90), st.integers(1, 40), st.integers(0, 9), st.integers(1, 50)
)
def test_search_is_a_stable_sort_of_all_distances(kind, m, n, q, top):
    database, queries = random_codes(kind, n, m, 1 + m // 4, 1), random_codes(kind, q, m, 1 + m // 4, 2)
    for got, want in zip(HammingIndex(database).search(queries, top), brute_force(database, queries, top), strict=True):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_blocks_of_queries_do_not_change_the_answer(kind, monkeypatch):
    database, queries = random_codes(kind, 300, 60, 6, 1), random_codes(kind, 50, 60, 6, 2)
    monkeypatch.setattr(search, "_BLOCK", 1000)  # three queries at a time
    for got, want in zip(HammingIndex(database).search(queries, 7), brute_force(database, queries, 7), strict=True):
        assert np.array_equal(got, want)


def test_codes_with_all_units_on_are_all_at_distance_zero():
    codes = random_codes("sparse", 5, 6, 6)
    distances, ids = HammingIndex(codes).search(codes[0], 3)
    assert distances.tolist() == [[0, 0, 0]] and ids.tolist() == [[0, 1, 2]]


def test_bad_questions_get_clear_answers():
    codes = random_codes("sparse", 5, 30, 3)
    with pytest.raises(ValueError, match="top must be at least 1"):
        HammingIndex(codes).search(codes, 0)
    with pytest.raises(ValueError, match="cannot compare"):
        HammingIndex(codes).search(random_codes("sparse", 5, 31, 3))
