import weakref

import numpy as np
import pytest

from biohash_mini import LSH, BioConvHash, BioHash, FlyHash, average_precision
from biohash_mini.datasets import Task, load, nearest
from biohash_mini.reproduction import measure as measuring
from biohash_mini.reproduction.embedding import neighbour_purity
from biohash_mini.reproduction.experiment import Experiment, Row, Trial
from biohash_mini.reproduction.measure import hash_task, hashed, keep_last, measure
from biohash_mini.reproduction.protocols import neighbour_task, neighbours, part_task, retrieval_task, shadow
from biohash_mini.reproduction.scores import by_tie_order, final_energy, training_seconds


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(120, 8)).astype(np.float32), rng.integers(0, 3, 120)
    return Task(X[:100], X[100:], labels[:100], labels[100:])


def test_hashing_a_task_reports_what_it_took(task):
    h = hash_task(BioHash(2, activity=0.1, max_epochs=3), task)
    assert (len(h.queries), len(h.database)) == (20, 100)
    assert h.facts["n_units"] == 20 and h.facts["epochs"] <= 3 and h.facts["params"]["hash_length"] == 2


def test_pixel_truth_of_a_query_begins_with_itself():
    task = neighbour_task("mnist", "mini", 0)
    truth = neighbours(task, 100, "euclidean")
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
    orders = by_tie_order(h.queries, h.database, task)
    assert all(bounds[0] <= value <= bounds[1] for value in orders.values())
    assert orders["database order"] == pytest.approx(bounds[2], abs=1e-3)


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


def test_channels_are_chosen_without_the_queries_of_the_table():
    table, part = retrieval_task("mnist", "mini", 0), part_task("mnist", "mini", 0, size=300, validation=True)
    rows = {name: {row.tobytes() for row in getattr(part, name)} for name in ("database", "queries")}
    known = {row.tobytes() for row in table.database}
    assert rows["queries"] <= known and rows["database"] <= known and not rows["queries"] & rows["database"]
    assert part.train is part.database and len(part.database) == 300
    held_out = part_task("mnist", "mini", 0, size=300)
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
    row = Row("FlyHash", "FlyHash")
    for k in (2, 3, 16):
        h = hashed(row, k, 1, task)
        alone = FlyHash(k, seed=1).fit(task.train)
        assert h.queries == alone.encode(task.queries) and h.database == alone.encode(task.database)
        assert h.hasher.encode(task.queries, k) == h.queries and h.facts["params"]["hash_length"] == k


def test_one_layer_may_serve_every_column(task, monkeypatch):
    fits = []
    monkeypatch.setattr(measuring, "_hash", lambda *given, fit=measuring._hash: fits.append(given) or fit(*given))
    row = Row("BioHash", "BioHash", {"activity": 0.1, "max_epochs": 3}, fit_length=8)
    codes = {k: hashed(row, k, 0, task).database for k in (2, 8, 64)}
    alone = BioHash(2, activity=2 / 80, max_epochs=3).fit(task.database)
    assert len(fits) == 1 and {c.n_units for c in codes.values()} == {80}
    assert codes[2] == alone.encode(task.database)


def test_a_row_may_change_inputs_fitted_hasher_and_queries(task):
    def negate(hasher):
        hasher.weights_ *= -1

    exp = Experiment(
        "toy",
        "a toy",
        "01",
        "none",
        (
            Row("plain", "LSH"),
            Row("doubled", "LSH", inputs=lambda X, database: 2 * X),
            Row("turned", "LSH", amend=negate),
            Row("asked", "LSH", queries=lambda found: found.task.database[:20]),
        ),
        task=lambda data, profile, seed: task,
        metric=lambda found: {"value": found.asked.to_matrix(), "queries": found.queries.to_matrix()},
    )
    plain, doubled, turned, asked = (measure(exp, Trial(row, 8, 0), "mini") for row in exp.all_rows())
    assert np.array_equal(plain["value"], doubled["value"]) and (plain["value"] != turned["value"]).all()
    assert np.array_equal(asked["queries"], plain["value"])
    assert np.array_equal(asked["value"], LSH(8).fit(task.database).transform(task.database[:20]))


@pytest.fixture(scope="module")
def digits():
    mnist = load("mnist", "mini")
    rows = np.arange(200)
    return Task(mnist.vectors(rows), mnist.vectors(rows[:20]), image_shape=mnist.image_shape)


SMALL = {
    "image_shape": (1, 28, 28),
    "activity": 0.1,
    "n_filters": 10,
    "channel_winners": 2,
    "n_patches": 400,
    "filter_epochs": 1,
    "max_epochs": 3,
}


def test_hashing_images_in_stages_is_fitting_and_encoding(digits):
    h = hash_task(BioConvHash(2, **SMALL), digits)
    plain = BioConvHash(2, **SMALL).fit(digits.database.reshape(-1, *digits.image_shape))
    assert plain.encode(digits.queries.reshape(-1, *digits.image_shape)) == h.queries
    assert h.facts["seconds_filters"] > 0 and len(h.facts["filter_norms"]) == 2
    again = hash_task(BioConvHash(3, **SMALL), digits)
    assert again.facts["seconds_filters"] == h.facts["seconds_filters"]  # the filters are those of the first


def test_training_takes_all_stages_of_a_method(digits):
    exp = Experiment(
        "toy",
        "seconds",
        "14",
        "none",
        (Row("conv", "BioConvHash", SMALL), Row("bio", "BioHash", {"max_epochs": 2}, extras=(final_energy,))),
        task=lambda data, profile, seed: digits,
        metric=training_seconds,
    )
    conv, bio = (measure(exp, Trial(row, 2, 0), "mini") for row in exp.all_rows())
    stages = [conv[f"seconds_{stage}"] for stage in ("filters", "features", "fit")]
    assert min(stages) > 0 and conv["value"] == pytest.approx(sum(stages)) and "energy" not in conv
    assert bio["value"] == bio["seconds_fit"] and bio["energy"] < 0
