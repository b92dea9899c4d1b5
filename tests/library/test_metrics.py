from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from biohash_mini import metrics, search
from biohash_mini.codes import DenseCodes
from biohash_mini.metrics import (
    Truth,
    average_precision,
    expected_recall,
    functional_smoothness,
    mean_average_precision,
    recall,
    tie_bounds,
)
from tests.helpers import random_codes


def plain_ap(ranked, at, divisor="retrieved"):
    """AP of one ranked list, as the paper prints it, or divided by all that could have been found."""
    hits = np.cumsum(ranked[:at])
    share = hits[-1] if divisor == "retrieved" else min(len(hits), ranked.sum())
    return float((hits / np.arange(1, len(hits) + 1) * ranked[:at]).sum() / share) if share else 0.0


def all_orders(distances, relevant, *given):
    """AP of every order of the items that respects the distances."""
    orders = (p for p in permutations(range(len(distances))) if all(np.diff(distances[list(p)]) >= 0))
    return np.array([plain_ap(relevant[list(p)], *given) for p in orders])


rankings = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 2), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.one_of(st.none(), st.integers(1, n + 1)),
    )
)


@settings(deadline=None, max_examples=150)
@given(rankings, st.sampled_from(["retrieved", "relevant"]))
def test_ties_agree_with_the_enumeration_of_every_order(ranking, divisor):
    distances, relevant, at = np.array(ranking[0]), np.array(ranking[1]), ranking[2]
    every = all_orders(distances, relevant, at, divisor)
    stable = plain_ap(relevant[np.argsort(distances, kind="stable")], at, divisor)
    wanted = {"expected": every.mean(), "best": every.max(), "worst": every.min(), "index": stable}
    for ties, want in wanted.items():
        assert average_precision(distances, relevant, at, ties, divisor=divisor)[0] == pytest.approx(want, abs=1e-12)


def test_a_late_relevant_item_can_lower_average_precision_at_a_cut():
    # the first item is relevant; retrieving the other relevant one at rank 3 dilutes AP from 1 to (1 + 2/3) / 2
    distances, relevant = np.array([0, 1, 1, 1]), np.array([1, 1, 0, 0], bool)
    assert average_precision(distances, relevant, 3, "best")[0] == 1.0
    assert average_precision(distances, relevant, 3, "worst")[0] == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_every_order_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    distances, relevant = rng.permutation(200).reshape(1, -1), rng.random((1, 200)) < 0.3
    want = average_precision_score(relevant[0], -distances[0])
    for ties in ("expected", "best", "worst", "index"):
        assert average_precision(distances, relevant, None, ties)[0] == pytest.approx(want, abs=1e-12)


def test_chance_at_1000_is_not_the_prevalence():
    # 20,000 random rankings average 10.596 +- 0.010
    distances, relevant = np.zeros((1, 50_000)), np.arange(50_000)[None] % 10 == 0
    assert 100 * average_precision(distances, relevant, 1000)[0] == pytest.approx(10.584, abs=1e-3)


@pytest.fixture(params=["sparse", "lists", "dense"])
def kind(request, monkeypatch):
    """Codes of either kind, the sparse ones kept in bitmaps or in inverted lists."""
    monkeypatch.setattr(search, "_SPARSE", 0 if request.param == "lists" else 64)
    return "dense" if request.param == "dense" else "sparse"


@pytest.mark.parametrize("at", [None, 7, 1000])
@pytest.mark.parametrize("ties", ["expected", "best", "worst", "index"])
def test_codes_and_distance_matrices_give_the_same_map(kind, at, ties, monkeypatch):
    database, queries = random_codes(kind, 120, 16, 3, 1), random_codes(kind, 20, 16, 3, 2)
    labels, query_labels = np.arange(120) % 4, np.array(list("abcd") * 5)
    labels = np.array(list("abcd"))[labels]
    want = average_precision(queries.hamming(database), query_labels[:, None] == labels, at, ties).mean()
    monkeypatch.setattr(search, "_BLOCK", 50)
    monkeypatch.setattr(metrics, "_BLOCK", 500)
    assert mean_average_precision(queries, database, query_labels, labels, at, ties) == pytest.approx(want, abs=1e-12)


def test_neighbours_are_as_good_a_truth_as_labels():
    database, queries = random_codes("sparse", 120, 16, 3, 1), random_codes("sparse", 20, 16, 3, 2)
    labels = np.arange(140) % 3
    same = np.stack([np.flatnonzero(labels[20:] == label) for label in labels[:20] % 3])
    by_label = tie_bounds(queries, database, labels[:20], labels[20:], 50)
    assert tie_bounds(queries, database, at=50, truth=Truth.of_neighbours(same)) == by_label
    assert tie_bounds(queries, database, at=50, truth=Truth.of_labels(labels[:20], labels[20:])) == by_label


@pytest.mark.parametrize("at", [None, 7, 1000])
@pytest.mark.parametrize("ties", ["expected", "best", "worst", "index"])
@pytest.mark.parametrize("divisor", ["retrieved", "relevant"])
def test_leaving_an_item_out_is_having_a_database_without_it(kind, at, ties, divisor):
    codes, labels = random_codes(kind, 60, 16, 3, 1), np.arange(60) % 3
    distances, own, rest = codes.hamming(codes), np.arange(60), ~np.eye(60, dtype=bool)
    relevant = labels[:, None] == labels
    shorter = (a[rest].reshape(60, 59) for a in (distances, relevant))
    want = average_precision(*shorter, at, ties, divisor=divisor).mean()
    same = np.stack([np.flatnonzero(row) for row in relevant])  # the query among them, which is left out all the same
    for truth in (Truth.of_labels(labels, labels, own), Truth.of_neighbours(same, exclude=own)):
        got = mean_average_precision(codes, codes, at=at, ties=ties, truth=truth, divisor=divisor)
        assert got == pytest.approx(want, abs=1e-12)


def test_truth_says_what_is_relevant_block_by_block(monkeypatch):
    by_label, by_row = Truth.of_labels(["a", "b", "a"], ["b", "a", "a", "c"]), Truth.of_neighbours([[0, 3], [1, 1]])
    for sets_at_a_time in (8, 4):  # two, one
        monkeypatch.setattr(metrics, "_BLOCK", sets_at_a_time)
        for longest in (1, 9):
            for truth, want in ((by_label, [[1, 2], [0], [1, 2]]), (by_row, [[0, 3], [1]])):
                found = {}
                for rows, sets, which in truth.blocks(4, longest):
                    assert len(rows) <= longest and sets.size <= sets_at_a_time
                    found |= {q: np.flatnonzero(sets[w]).tolist() for q, w in zip(rows, which, strict=True)}
                assert [found[q] for q in range(len(want))] == want


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (Truth.of_labels(np.zeros(4), np.zeros(7)), r"query_labels has shape \(4,\), but there are 5 query codes"),
        (
            Truth.of_labels(np.zeros(5), np.zeros((7, 1))),
            r"database_labels has shape \(7, 1\), but .* 7 database codes",
        ),
        (Truth.of_neighbours(np.zeros((4, 2), int)), r"neighbours has shape \(4, 2\), but there are 5 query codes"),
        (Truth.of_neighbours(np.zeros(5, int)), r"neighbours has shape \(5,\)"),
        (Truth.of_neighbours(np.full((5, 2), 7)), r"neighbours must be row numbers, integers in \[0, 7\), got"),
        (Truth.of_neighbours(np.full((5, 2), -1)), r"neighbours must be row numbers"),
        (Truth.of_neighbours(np.zeros((5, 2))), r"neighbours must be row numbers"),
        (Truth.of_neighbours(np.zeros((5, 2), int), np.arange(4)), r"exclude has shape \(4,\)"),
        (Truth.of_neighbours(np.zeros((5, 2), int), np.zeros((5, 1), int)), r"exclude has shape \(5, 1\)"),
        (Truth.of_labels(np.zeros(5), np.zeros(7), np.full(5, -1)), r"exclude must be row numbers"),
        (Truth.of_labels(np.zeros(5), np.zeros(7), np.full(5, 7)), r"exclude must be row numbers"),
    ],
)
def test_a_truth_of_other_codes_is_refused(truth, message):
    queries, database = random_codes("sparse", 5, 16, 3), random_codes("sparse", 7, 16, 3)
    for measure in (mean_average_precision, tie_bounds):
        with pytest.raises(ValueError, match=message):
            measure(queries, database, truth=truth)


def test_labels_and_truth_are_not_given_together_nor_left_out():
    codes, labels = random_codes("sparse", 5, 16, 3), np.zeros(5)
    truth = Truth.of_labels(labels, labels)
    for given_labels, given_truth in (((), None), ((labels,), None), ((labels, labels), truth), ((labels,), truth)):
        for measure in (mean_average_precision, tie_bounds):
            with pytest.raises(ValueError, match="either both arrays of labels or a truth"):
                measure(codes, codes, *given_labels, truth=given_truth)


def test_expected_recall_is_the_mean_over_orders_inside_ties():
    rng = np.random.default_rng(0)
    database, queries = (DenseCodes(rng.integers(0, 256, (n, 1), dtype=np.uint8), 8) for n in (60, 7))
    distances = queries.hamming(database).astype(float)
    truth = np.stack([rng.choice(60, 3, replace=False) for _ in distances])
    orders = [np.argsort(distances + rng.random(distances.shape), axis=1)[:, :10] for _ in range(2000)]
    by_chance = np.mean([recall(order, truth) for order in orders])
    assert expected_recall(queries, database, truth, 10) == pytest.approx(by_chance, abs=0.01)
    assert expected_recall(queries, database, truth, 60) == 1


def test_recall_is_the_share_of_the_true_neighbours_found():
    truth = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert recall(np.array([[4, 9, 1], [5, 5, 5]]), truth) == (2 / 4 + 1 / 4) / 2
    assert recall(truth[:, ::-1], truth) == 1
    assert recall(np.empty((2, 0), int), truth) == 0
    assert recall([[1, 2]], [[2, 2, 3]]) == 1 / 2


rows_of_two = st.integers(1, 4).flatmap(
    lambda r: st.lists(st.lists(st.integers(0, 6), min_size=r, max_size=r), min_size=2, max_size=2)
)


@settings(deadline=None)
@given(rows_of_two, rows_of_two)
def test_recall_is_that_of_sets(ids, truth):
    want = np.mean([len(set(t) & set(i)) / len(set(t)) for i, t in zip(ids, truth, strict=True)])
    assert recall(ids, truth) == pytest.approx(want, abs=1e-15)


@pytest.mark.parametrize(
    ("ids", "truth"), [((3, 2), (2, 2)), ((2,), (2, 2)), ((2, 2), (2,)), ((2, 2), (2, 0)), ((0, 2),) * 2]
)
def test_recall_refuses_shapes_that_do_not_fit(ids, truth):
    with pytest.raises(ValueError, match=r"must have shapes \(q >= 1, top\) and \(q, r >= 1\)"):
        recall(np.zeros(ids, int), np.zeros(truth, int))


def test_tie_bounds_enclose_the_expectation_and_equal_the_single_calls():
    database, queries = random_codes("sparse", 120, 16, 3, 1), random_codes("sparse", 20, 16, 3, 2)
    labels = np.arange(140) % 3
    args = (queries, database, labels[:20], labels[20:], 50)
    bounds = tie_bounds(*args)
    assert bounds.worst < bounds.expected < bounds.best
    for name in bounds._fields:
        assert getattr(bounds, name) == mean_average_precision(*args, ties=name)


def test_queries_with_nothing_relevant_count_as_zero():
    codes = random_codes("sparse", 5, 16, 3)
    assert mean_average_precision(codes, codes, np.full(5, 1), np.full(5, 2)) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_labels": np.zeros(4)}, r"query_labels has shape \(4,\), but there are 5"),
        ({"database_labels": np.zeros((5, 1))}, "database_labels has shape"),
        ({"at": 0}, "at must be None or at least 1"),
        ({"at": 1.5}, "at must be None or at least 1, an integer, got 1.5"),
        ({"at": True}, "at must be None or at least 1, an integer, got True"),
        ({"at": "7"}, "at must be None or at least 1, an integer, got '7'"),
        ({"ties": "random"}, "ties must be one of expected, best, worst, index"),
        ({"divisor": "all"}, "divisor must be one of retrieved, relevant"),
        ({"query_codes": random_codes("sparse", 0, 16, 3), "query_labels": np.zeros(0)}, "no query codes"),
    ],
)
def test_bad_questions_get_clear_answers(arguments, message):
    codes, labels = random_codes("sparse", 5, 16, 3), np.zeros(5)
    good = {"query_codes": codes, "database_codes": codes, "query_labels": labels, "database_labels": labels}
    with pytest.raises(ValueError, match=message):
        mean_average_precision(**{**good, **arguments})


def test_distances_that_are_no_distances_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        average_precision(np.array([[np.nan, 1.0]]), np.array([[True, False]]))
    with pytest.raises(ValueError, match="non-empty"):
        average_precision(np.zeros((2, 3)), np.zeros((3, 2), bool))


def test_smoothness_is_the_correlation_of_the_extreme_pairs():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 6)), random_codes("sparse", 30, 20, 4)
    cosines, distances = [], []
    for i in range(30):
        for j in range(i + 1, 30):
            cosines.append(X[i] @ X[j] / np.linalg.norm(X[i]) / np.linalg.norm(X[j]))
            distances.append(int(codes[i].hamming(codes[j])[0, 0]))
    order = np.argsort(cosines)
    take = round(0.2 * len(order))
    want = [np.corrcoef(np.array(cosines)[r], -np.array(distances)[r])[0, 1] for r in (order[-take:], order[:take])]
    assert functional_smoothness(X, codes, 0.2, self_pairs=False) == pytest.approx(want, abs=1e-12)


def test_smoothness_is_undefined_where_all_distances_are_equal():
    assert np.isnan(functional_smoothness(np.eye(6), random_codes("sparse", 6, 3, 3))).all()


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1, 2], ["1", "2"], "labels must be of one type, numbers or texts, got int64 and <U1"),
        ([1.0, np.nan], [1.0, np.nan], "labels must not be NaN"),
        (np.array(["1", 1], object), ["1"], "labels must be of one type"),
        ([True], [1], "labels must be of one type"),
        (["1", 1], ["1", "2"], "labels must be of one type"),
        (["cat", np.nan], ["cat", "nan"], "labels must be of one type"),
        (np.array(["NaT"], "M8[s]"), np.array(["2020"], "M8[s]"), "labels must not be NaN"),
        (np.ma.masked_equal([1, 2], 2), [1, 2], "labels must all be known"),
        (np.array([2**53 + 1], np.uint64), [2**53], "have no type in common that holds them all"),
        ([2**53 + 1], [2.0**53], "have no type in common that holds them all"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(a, b, message):
    for first, second in ((a, b), (b, a)):
        with pytest.raises(ValueError, match=message.split(", got")[0]):
            Truth.of_labels(first, second)


def test_texts_in_an_array_of_objects_are_labels_like_others():
    truth = Truth.of_labels(np.array(["cat", "dog"], object), ["dog", "cat"])
    assert (truth.query_labels[:, None] == truth.database_labels).tolist() == [[False, True], [True, False]]
    assert Truth.of_labels([1, 2], [2.0, 3.5]).database_labels[0] == Truth.of_labels([1, 2], [2.0, 3.5]).query_labels[1]


def test_bytes_and_large_integers_of_one_type_are_labels():
    assert (
        Truth.of_labels([b"a", b"b"], [b"b"]).database_labels == Truth.of_labels([b"a", b"b"], [b"b"]).query_labels[1]
    )
    same = Truth.of_labels(np.array([2**63, 2**63 + 1], np.uint64), np.array([2**63 + 1], np.uint64))
    assert (same.query_labels == same.database_labels).tolist() == [False, True]


@pytest.mark.parametrize("relevant", [["0", "1"], [0.5, 1.0], [np.nan, 1.0], [2, 1], [None, True]])
def test_relevance_that_is_not_yes_or_no_is_refused(relevant):
    with pytest.raises(ValueError, match="relevant must be True or False, or 0 and 1"):
        average_precision([1, 2], relevant)


@pytest.mark.parametrize("power", [-700, 0, 700])
def test_smoothness_knows_directions_whatever_their_length(power):
    X, codes = np.random.default_rng(0).normal(size=(30, 6)), random_codes("sparse", 30, 20, 4)
    lengths = np.random.default_rng(1).integers(-200, 200, (30, 1))
    assert functional_smoothness(np.ldexp(X, power + lengths), codes) == functional_smoothness(X, codes)


def test_recall_of_rows_that_do_not_exist_is_refused():
    with pytest.raises(ValueError, match="row numbers"):
        recall(np.array([[0, -1]]), np.array([[-1]]))
