from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from biohash_mini import search
from biohash_mini.codes import SparseCodes, concatenate
from biohash_mini.counting import lists
from biohash_mini.search import HammingIndex
from tests.helpers import random_codes


def brute_force(database, queries, top):
    D = queries.hamming(database).astype(int)
    ids = np.argsort(D, axis=1, kind="stable")[:, :top]
    return np.take_along_axis(D, ids, 1), ids


@pytest.fixture(params=[64, 0], ids=["slices", "lists"])
def layout(request):
    """Keep sparse codes of any size in bitmaps, or in inverted lists."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_SPARSE", 1000 * request.param)
        yield request.param


def equal(got, want):
    return all(np.array_equal(g, w) for g, w in zip(got, want, strict=True))


sizes = st.tuples(st.integers(1, 90), st.integers(0, 40), st.integers(0, 9))  # m, n, q
fixed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fixed
@given(st.sampled_from(["sparse", "dense"]), sizes, st.integers(1, 50), st.floats(0, 1))
def test_search_is_a_stable_sort_of_all_distances(layout, kind, sizes, top, share):
    m, n, q = sizes
    k = 1 + round(share * (m - 1))  # from 1 to m
    database, queries = random_codes(kind, n, m, k, 1), random_codes(kind, q, m, k, 2)
    distances, ids = HammingIndex(database).search(queries, top)
    assert equal((distances, ids), brute_force(database, queries, top))
    assert distances.dtype == np.uint16 and ids.dtype == np.int64


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("n", [63, 64, 65, 511, 513, 4096, 9001])
def test_items_at_the_edges_of_words_are_found(layout, kind, n):
    database, queries = random_codes(kind, n, 40, 3, 1), random_codes(kind, 5, 40, 3, 2)
    for top in (1, n - 1, n, n + 1):
        assert equal(HammingIndex(database).search(queries, top), brute_force(database, queries, top))


@pytest.mark.parametrize("k", [127, 128, 255, 256, 300])
def test_counters_hold_long_codes(layout, k):
    database, queries = random_codes("sparse", 30, 310, k, 1), random_codes("sparse", 4, 310, k, 2)
    both = concatenate([queries, database])
    assert equal(HammingIndex(both).search(queries, 9), brute_force(both, queries, 9))


@pytest.mark.parametrize("k", [1, 3, 130])  # few lines touched, most lines touched, counters of two bytes
@pytest.mark.parametrize("size", [64, 512, 1 << 15])
def test_ranges_do_not_change_the_answer(k, size, monkeypatch):
    monkeypatch.setattr(lists, "_RANGE", size)
    for n in (1, size % 1000, 1500):
        database, queries = random_codes("sparse", n, 70 * k, k, 1), random_codes("sparse", 4, 70 * k, k, 2)
        both = concatenate([database, queries, database])  # every score occurs, in a later range too
        index, D = HammingIndex(both), queries.hamming(both)
        for top in (1, 7, 700, 3100):
            assert equal(index.search(queries, top), brute_force(both, queries, top))
        nothing = np.zeros((1, len(both)), bool), np.zeros(4, int)
        counts = [np.bincount(row // 2, minlength=k + 1) for row in D.astype(int)]
        assert np.array_equal(index.histograms(queries, *nothing)[0], counts)


@fixed
@given(
    st.integers(1, 4), st.integers(0, 2500), st.sampled_from([64, 320, 1024]), st.integers(1, 60), st.integers(0, 99)
)
def test_few_entries_in_many_ranges_are_a_stable_sort_too(k, n, size, top, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "_RANGE", size)
        database, queries = random_codes("sparse", n, 300 * k, k, seed), random_codes("sparse", 3, 300 * k, k, seed + 1)
        assert equal(HammingIndex(database).search(queries, top), brute_force(database, queries, top))


@pytest.mark.parametrize("m", [129, 257, 512, 700])
@pytest.mark.parametrize("n", [0, 1, 511, 2500])
def test_long_dense_codes_are_found(m, n):
    database, queries = random_codes("dense", n, m, 0, 1), random_codes("dense", 4, m, 0, 2)
    both = concatenate([queries, database, database])
    index = HammingIndex(both)
    for top in (1, 99, 3000):
        assert equal(index.search(queries, top), brute_force(both, queries, top))
    limits, distances, ids = index.range_search(queries, m // 2)
    assert limits[-1] == len(distances) == len(ids) == (queries.hamming(both) <= m // 2).sum()
    assert HammingIndex(database).search(queries, 3)[0].shape == (4, min(3, n))


@pytest.mark.parametrize("top", [1, 40, 600, 5000])
def test_parts_of_the_items_are_searched_side_by_side_for_one_long_code(top, monkeypatch):
    monkeypatch.setattr(search, "_PART", 1)
    few, query = random_codes("dense", 700, 160, 0, 1), random_codes("dense", 1, 160, 0, 2)
    both = concatenate([few, query, few, few, query, few])  # ties across parts
    assert equal(HammingIndex(both).search(query, top), brute_force(both, query, top))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 90), st.integers(0, 40), st.integers(0, 9), st.integers(1, 50))
def test_comparing_words_is_a_stable_sort_too(m, n, q, top):
    database, queries = random_codes("dense", n, m, 0, 1), random_codes("dense", q, m, 0, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_LONG", 0)
        assert equal(HammingIndex(database).search(queries, top), brute_force(database, queries, top))


def test_items_that_share_no_unit_follow_by_row_number(layout):
    database = SparseCodes(np.array([[4, 5], [0, 9], [4, 5], [0, 1], [4, 5]]), 200)
    queries = SparseCodes(np.array([[0, 1], [7, 8]]), 200)
    distances, ids = HammingIndex(database).search(queries, 4)
    assert distances.tolist() == [[0, 2, 4, 4], [4, 4, 4, 4]] and ids.tolist() == [[3, 1, 0, 2], [0, 1, 2, 3]]


def test_equal_codes_are_found_in_the_order_of_their_rows(layout):
    codes = random_codes("sparse", 4, 50, 3, 1)[np.tile(np.arange(4), 50)]
    assert equal(HammingIndex(codes).search(codes[:4], 120), brute_force(codes, codes[:4], 120))


def test_a_search_leaves_nothing_behind(layout):
    index, queries = HammingIndex(random_codes("sparse", 500, 40, 3, 1)), random_codes("sparse", 9, 40, 3, 2)
    first = index.search(queries, 20)
    for other in (1, 499, 500):
        index.search(queries, other)
    index.range_search(queries, 2)
    assert equal(index.search(queries, 20), first)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_histograms_count_what_lies_at_each_distance(layout, kind):
    database, queries = random_codes(kind, 600, 30, 4, 1), random_codes(kind, 8, 30, 4, 2)
    sets, which = np.random.default_rng(0).random((3, 600)) < 0.3, np.arange(8) % 3
    exclude = np.arange(8) * 70
    index, D, step = HammingIndex(database), queries.hamming(database), 2 if kind == "sparse" else 1
    for own in (None, exclude):
        counts, hits = index.histograms(queries, sets, which, own)
        for q in range(8):
            kept = np.arange(600) != (-1 if own is None else own[q])
            for d in range(counts.shape[1]):
                here = (D[q] == step * d) & kept
                assert counts[q, d] == here.sum() and hits[q, d] == (here & sets[which[q]]).sum()
        cut = index.histograms(queries, sets, which, own, at=50)[0]
        assert (cut.sum(1) >= 50).all() and ((cut == counts) | (cut == 0)).all()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_blocks_of_queries_do_not_change_the_answer(layout, kind, monkeypatch):
    database, queries = random_codes(kind, 300, 60, 6, 1), random_codes(kind, 50, 60, 6, 2)
    monkeypatch.setattr(search, "_BLOCK", 100)  # a few queries at a time
    for got, want in zip(HammingIndex(database).search(queries, 7), brute_force(database, queries, 7), strict=True):
        assert np.array_equal(got, want)


def test_codes_with_all_units_on_are_all_at_distance_zero(layout):
    codes = random_codes("sparse", 5, 6, 6)
    distances, ids = HammingIndex(codes).search(codes[0], 3)
    assert distances.tolist() == [[0, 0, 0]] and ids.tolist() == [[0, 1, 2]]


def test_bad_questions_get_clear_answers():
    codes = random_codes("sparse", 5, 30, 3)
    with pytest.raises(ValueError, match="top must be an integer of at least 1"):
        HammingIndex(codes).search(codes, 0)
    with pytest.raises(ValueError, match="cannot compare"):
        HammingIndex(codes).search(random_codes("sparse", 5, 31, 3))
    for radius in (-1, 1.0, "2", True):
        with pytest.raises(ValueError, match=f"radius must be an integer of at least 0, got {radius!r}"):
            HammingIndex(codes).range_search(codes, radius)


def same_answers(a, b, queries):
    answers = zip(
        (*a.search(queries, 7), *a.range_search(queries, 8)),
        (*b.search(queries, 7), *b.range_search(queries, 8)),
        strict=True,
    )
    return a.codes == b.codes and len(a) == len(b) and all(np.array_equal(*pair) for pair in answers)


def test_range_search_worked_by_hand(layout):
    database = SparseCodes(np.array([[2, 3], [0, 1], [0, 2], [1, 0]]), 4)  # from {0, 1}: 4, 0, 2, 0
    queries = SparseCodes(np.array([[0, 1], [1, 3]]), 4)  # from {1, 3}: 2, 2, 4, 2
    for radius, limits, distances, ids in (
        (0, [0, 2, 2], [0, 0], [1, 3]),
        (1, [0, 2, 2], [0, 0], [1, 3]),
        (3, [0, 3, 6], [0, 0, 2, 2, 2, 2], [1, 3, 2, 0, 1, 3]),
        (99, [0, 4, 8], [0, 0, 2, 4, 2, 2, 2, 4], [1, 3, 2, 0, 0, 1, 3, 2]),
    ):
        got = HammingIndex(database).range_search(queries, radius)
        assert [a.tolist() for a in got] == [limits, distances, ids]
        assert [a.dtype for a in got] == [np.int64, np.uint16, np.int64]


@fixed
@given(st.sampled_from(["sparse", "dense"]), sizes, st.integers(0, 60))
def test_range_search_finds_all_within_the_radius_and_no_other(layout, kind, sizes, radius):
    m, n, q = sizes
    database, queries = random_codes(kind, n, m, 1 + m // 4, 1), random_codes(kind, q, m, 1 + m // 4, 2)
    found = [
        sorted((int(d), i) for i, d in enumerate(row) if d <= radius) for row in queries.hamming(database).tolist()
    ]
    limits, distances, ids = HammingIndex(database).range_search(queries, np.int64(radius))
    assert limits.tolist() == [sum(map(len, found[:i])) for i in range(q + 1)]
    assert list(zip(distances.tolist(), ids.tolist(), strict=True)) == [pair for row in found for pair in row]


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_blocks_of_queries_do_not_change_what_is_in_the_range(layout, kind, monkeypatch):
    index, queries = HammingIndex(random_codes(kind, 300, 60, 6, 1)), random_codes(kind, 50, 60, 6, 2)
    whole = index.range_search(queries, 10 if kind == "sparse" else 27)
    assert 0 < len(whole[1]) < 50 * 300
    monkeypatch.setattr(search, "_BLOCK", 100)  # a few queries at a time
    for got, want in zip(index.range_search(queries, 10 if kind == "sparse" else 27), whole, strict=True):
        assert np.array_equal(got, want)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["sparse", "dense"]), st.integers(1, 70), st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_an_index_that_grew_is_the_index_built_at_once(kind, m, sizes):
    codes, queries = random_codes(kind, sum(sizes), m, 1 + m // 4, 1), random_codes(kind, 5, m, 1 + m // 4, 2)
    ends = np.cumsum(sizes)
    grown = HammingIndex(codes[: ends[0]])
    for start, end in pairwise(ends):
        assert grown.add(codes[start:end]) is None
    assert same_answers(grown, HammingIndex(codes), queries)


@pytest.mark.parametrize("m", [30, 600])
def test_an_index_whose_growth_fails_is_as_it_was(m, monkeypatch):
    codes = random_codes("sparse", 9, m, 3)
    index = HammingIndex(codes)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as full, pytest.raises(MemoryError):
        full.setattr("biohash_mini.search.lists.invert", fail)
        full.setattr("biohash_mini.search.slices.slice_units", fail)
        index.add(codes)
    assert len(index) == 9 and same_answers(index, HammingIndex(codes), codes)


def test_codes_that_do_not_fit_are_not_added():
    codes = random_codes("sparse", 9, 30, 3)
    index = HammingIndex(codes)
    for other in (random_codes("sparse", 5, 31, 3), random_codes("sparse", 5, 30, 4), random_codes("dense", 5, 30, 0)):
        with pytest.raises(ValueError, match="cannot compare"):
            index.add(other)
    assert same_answers(index, HammingIndex(codes), codes)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_an_index_survives_the_disk(kind, tmp_path):
    index = HammingIndex(random_codes(kind, 40, 30, 5))
    index.save(tmp_path / "index.safetensors")
    loaded = HammingIndex.load(tmp_path / "index.safetensors")
    assert same_answers(loaded, index, random_codes(kind, 6, 30, 5, 1))
    index.save(tmp_path / "tied.safetensors", model="a")
    assert len(HammingIndex.load(tmp_path / "tied.safetensors", model="a")) == 40
    with pytest.raises(ValueError, match="another model"):
        HammingIndex.load(tmp_path / "tied.safetensors", model="b")
    loaded.add(index.codes[:3])
    assert len(loaded) == 43
    file = tmp_path / "index.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="truncated"):
        HammingIndex.load(file)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("m", [64, 61, 7])
def test_faiss_finds_the_same_distances(kind, m):
    pytest.importorskip("faiss")
    database, queries = random_codes(kind, 200, m, 1 + m // 8, 1), random_codes(kind, 20, m, 1 + m // 8, 2)
    index = database.to_faiss()
    assert index.ntotal == 200 and index.d == 8 * -(-m // 8)
    distances, ids = index.search(queries.packed(), 15)
    want, _ = HammingIndex(database).search(queries, 15)
    assert np.array_equal(distances, want)
    assert np.array_equal(np.take_along_axis(queries.hamming(database), ids, 1), want)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_faiss_finds_the_same_range(kind):
    pytest.importorskip("faiss")
    database, queries = random_codes(kind, 200, 32, 4, 1), random_codes(kind, 20, 32, 4, 2)
    limits, distances, ids = HammingIndex(database).range_search(queries, 6)
    their_limits, _, their_ids = database.to_faiss().range_search(queries.packed(), 7)  # below 7
    assert np.array_equal(limits, their_limits)
    for a, b in pairwise(limits):
        assert set(ids[a:b]) == set(their_ids[a:b]) and (np.diff(distances[a:b].astype(int)) >= 0).all()
