import weakref

import numpy as np
import pytest

from biohash_mini import LSH, BioConvHash, BioHash, FlyHash, average_precision, measures
from biohash_mini.choices import CHOICES, tie_orders
from biohash_mini.datasets import Task, load, nearest
from biohash_mini.experiments import EXPERIMENTS
from biohash_mini.images import shadow, small_task
from biohash_mini.measures import (
    METHODS,
    activity_of,
    activity_row,
    hash_task,
    keep_last,
    make_hasher,
    make_tsne_hasher,
    neighbour_purity,
    neighbour_task,
    pixel_truth,
    retrieval_task,
    training_time,
)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(120, 8)).astype(np.float32), rng.integers(0, 3, 120)
    return Task(X[:100], X[100:], labels[:100], labels[100:])


def test_a_registered_method_appears_in_every_table_without_a_list_of_its_own(monkeypatch):
    monkeypatch.setitem(METHODS, "Mine", LSH)
    for name in ("mnist", "cifar10", "solhash"):
        assert "Mine" in {cell.method for cell in EXPERIMENTS[name].cells()}


def test_long_cells_have_one_seed_and_others_all():
    seeds = [cell.seed for cell in EXPERIMENTS["cifar10"].cells() if cell[:2] == ("BioHash", 64)]
    assert seeds == [0]
    assert [c.seed for c in EXPERIMENTS["mnist"].cells() if c[:2] == ("LSH", 2)] == [0, 1, 2, 3, 4]


def test_hashers_of_the_tables_have_the_papers_activity():
    assert make_hasher("BioHash", 4, 1, "cifar10").n_units == 800
    assert make_hasher("SH", 4, 1, "mnist").get_params()["seed"] == 1
    assert make_tsne_hasher(8, 0).n_units == make_tsne_hasher(64, 0).n_units == 160


@pytest.mark.parametrize("activity", [0.0025, 0.005, 0.01, 0.025, 0.05, 0.3])
def test_rows_name_their_activity(activity):
    assert activity_of(activity_row(activity)) == pytest.approx(activity)


def test_hashing_a_task_reports_what_it_took(task):
    h = hash_task(BioHash(2, activity=0.1, max_epochs=3), task)
    assert (len(h.queries), len(h.database)) == (20, 100)
    assert h.facts["n_units"] == 20 and h.facts["epochs"] <= 3 and h.facts["params"]["hash_length"] == 2


def test_pixel_truth_of_a_query_begins_with_itself():
    task, truth = neighbour_task("mnist", "mini", 0), pixel_truth("mnist", "mini", 0)
    assert truth.shape == (len(task.queries), 100)
    assert np.array_equal(truth[:, 0], np.arange(len(truth)))
    assert np.array_equal(truth[:3], nearest(task.queries[:3], task.database, 100))


def test_purity_is_one_for_separate_classes_and_prevalence_for_mixed_ones():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 100)
    points = rng.normal(size=(400, 2))
    assert neighbour_purity(points + 50 * labels[:, None], labels) == 1
    assert neighbour_purity(points, labels) == pytest.approx(0.25, abs=0.03)


def test_tie_orders_are_orders_inside_ties(task):
    h = hash_task(LSH(2), task)
    relevant = task.query_labels[:, None] == task.database_labels
    D = h.queries.hamming(h.database)
    bounds = [100 * average_precision(D, relevant, ties=t).mean() for t in ("worst", "best", "index")]
    orders = tie_orders(h.queries, h.database, task)
    assert all(bounds[0] <= value <= bounds[1] for value in orders.values())
    assert orders["database order"] == pytest.approx(bounds[2], abs=1e-3)


@pytest.mark.parametrize("row", CHOICES)
def test_every_choice_names_parameters_that_exist(row):
    choice = CHOICES[row]
    make_hasher(choice.method, 2, 0, "mnist").set_params(**choice.params)


def test_the_last_result_is_let_go_before_the_next_is_computed():
    made, alive = [], []

    @keep_last
    def make(size, seed=0):
        alive.append([ref() is not None for ref in made])
        array = np.zeros(size)
        made.append(weakref.ref(array))
        return array

    for size in (3, 3, 4, 4):
        make(size, seed=1)
    assert alive == [[], [False]] and made[1]().shape == (4,)


def test_cells_that_a_table_skips_are_nowhere():
    assert ("BioConvHash", 64) not in {cell[:2] for cell in EXPERIMENTS["mnist"].cells()}
    assert "BioConvHash" not in {cell.method for cell in EXPERIMENTS["solhash"].cells()}


def test_channels_are_chosen_without_the_queries_of_the_table():
    table, part = retrieval_task("mnist", "mini", 0), small_task("mnist", "mini", 0, size=300, validation=True)
    rows = {name: {row.tobytes() for row in getattr(part, name)} for name in ("database", "queries")}
    known = {row.tobytes() for row in table.database}
    assert rows["queries"] <= known and rows["database"] <= known and not rows["queries"] & rows["database"]
    assert part.train is part.database and len(part.database) == 300
    held_out = small_task("mnist", "mini", 0, size=300)
    assert np.array_equal(held_out.queries, table.queries[:1000])


def test_shadows_darken_the_lower_part():
    images = np.ones((2, 3, 10, 10), np.float32)
    dark = shadow(images, strength=0.3, area=0.8)
    assert np.allclose(dark[:, :, :2], 1) and np.allclose(dark[:, :, 2:], 0.3) and images.min() == 1
    assert np.array_equal(shadow(images, area=0), images)


def test_a_shadow_may_lie_at_any_side():
    image = np.ones((1, 1, 10, 10), np.float32)
    upper, left, right = (shadow(image, side=side)[0, 0] < 1 for side in ("upper", "left", "right"))
    assert upper[:8].all() and not upper[8:].any()
    assert left[:, :8].all() and not left[:, 8:].any()
    assert right[:, 2:].all() and not right[:, :2].any()


def test_a_shared_projection_gives_the_codes_of_each_hash_length(task):
    for k in (2, 3, 16):
        h = hash_task(FlyHash(k, seed=1), task)
        alone = FlyHash(k, seed=1).fit(task.train)
        assert h.queries == alone.encode(task.queries) and h.database == alone.encode(task.database)
        assert h.hasher.encode(task.queries) == h.queries and h.facts["params"]["hash_length"] == k


@pytest.fixture(scope="module")
def digits():
    mnist = load("mnist", "mini")
    rows = np.arange(200)
    return Task(mnist.vectors(rows), mnist.vectors(rows[:20]), image_shape=mnist.image_shape)


SMALL = {"activity": 0.1, "n_filters": 10, "channel_winners": 2, "n_patches": 400, "filter_epochs": 1, "max_epochs": 3}


def test_hashing_images_in_stages_is_fitting_and_encoding(digits):
    h = hash_task(BioConvHash(2, **SMALL), digits)
    plain = BioConvHash(2, **SMALL).fit(digits.database.reshape(-1, *digits.image_shape))
    assert plain.encode(digits.queries.reshape(-1, *digits.image_shape)) == h.queries
    assert h.facts["seconds_filters"] > 0 and len(h.facts["filter_norms"]) == 2
    again = hash_task(BioConvHash(3, **SMALL), digits)
    assert again.facts["seconds_filters"] == h.facts["seconds_filters"]  # the filters are those of the first


def test_training_bioconvhash_takes_all_three_stages(digits, monkeypatch):
    monkeypatch.setattr(measures, "retrieval_task", lambda *_: digits)
    monkeypatch.setattr(measures, "make_hasher", lambda method, k, *_: BioConvHash(k, **SMALL))
    exp = EXPERIMENTS["training-time"]
    cell = next(c for c in exp.cells() if c.method == "BioConvHash")
    record = training_time(exp, cell, "mini")["BioConvHash"]
    stages = [record[f"seconds_{stage}"] for stage in ("filters", "features", "fit")]
    assert min(stages) > 0 and record["value"] == pytest.approx(sum(stages))
