import numpy as np
import pytest

from biohash_mini import SparseCodes
from biohash_mini.reproduction import worth
from biohash_mini.reproduction.results import read
from biohash_mini.reproduction.worth import lists, quality, sets


@pytest.fixture
def small(monkeypatch):
    """Make every data set a few hundred clustered rows with labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 900)
    X = (rng.normal(size=(4, 64))[labels] + rng.normal(size=(900, 64))).astype(np.float32)
    monkeypatch.setattr(sets, "vectors", lambda name, profile: (X, labels, "sum"))
    monkeypatch.setattr(sets, "HELD", 50)


def test_the_queries_are_in_neither_database(small):
    task = sets.task("mnist", "mini")
    rows = {tuple(row) for asked in (task.test, task.validation) for row in asked.database}
    assert not rows & {tuple(row) for row in task.test.queries}
    assert not {tuple(row) for row in task.train} & {tuple(row) for row in task.validation.queries}


def test_sentences_are_compared_by_angle_and_labelled_by_their_kind():
    task = sets.task("sentences", "mini")
    assert task.test.database.shape == (2700, 256) and len(task.test.queries) == 300 and len(task.train) == 2400
    np.testing.assert_allclose(np.linalg.norm(task.test.database, axis=1), 1, rtol=1e-5)
    both = np.concatenate(task.test.labels)
    assert np.bincount(both).tolist() == [750] * 4
    same = task.test.labels[1][task.test.truth] == task.test.labels[0][:, None]
    assert same.mean() > 0.6  # of the nearest; a quarter by chance


def test_every_method_is_measured_at_no_more_bits_than_allowed(small):
    rows = {
        (row["method"].split(": ")[1], row["hash_length"]): row for row in quality.rows("mnist", "mini", bits=(32,))
    }
    assert {name for name, _ in rows} >= {*quality.METHODS_HERE, "BioHash", "BioHash for classes", "PQ", "OPQ"}
    assert all(row["bits_per_item"] <= 32 for key, row in rows.items() if key[1])
    assert rows["vectors", 0]["value"] == 100
    assert all(0 <= row["map"] <= 100 and row["us_search"] > 0 for row in rows.values())


def test_a_part_goes_on_where_it_stopped(small, tmp_path, monkeypatch):
    monkeypatch.setattr(quality, "METHODS_HERE", ("LSH",))
    first = worth.run(["mnist"], "mini", tmp_path)
    assert first == len(read("worth", tmp_path)) > 0
    assert worth.run(["mnist"], "mini", tmp_path) == 0
    with pytest.raises(ValueError, match="no part is called nothing"):
        worth.run(["nothing"])


def test_lists_touch_the_items_that_share_a_unit():
    rng = np.random.default_rng(0)
    database, queries = (
        SparseCodes(np.stack([rng.choice(30, k, replace=False) for _ in range(n)]), 30) for n, k in ((200, 3), (9, 5))
    )
    shared = queries.to_matrix().astype(int) @ database.to_matrix().astype(int).T
    candidates = lists.touched(database, queries)
    assert (candidates == (shared.toarray() > 0)).all()
    work = lists.work_of_lists(database, queries)
    assert work["entries"] == pytest.approx(100 * shared.sum() / 1800, abs=1e-3) and work["even"] == 50
