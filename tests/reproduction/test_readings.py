import numpy as np
import pytest
import torch

from biohash_mini import DenseCodes
from biohash_mini.datasets import Task, nearest
from biohash_mini.metrics import mean_average_precision
from biohash_mini.reproduction import measure, protocols, results
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.paper import TABLES
from biohash_mini.reproduction.readings import FITTED, LITERAL, READINGS, Reading, score_readings
from biohash_mini.reproduction.runner import run
from biohash_mini.reproduction.settings import make_hasher


@pytest.fixture(scope="module")
def toy():
    """Return codes with few ties, the nearest rows of each row, and the rows."""
    X = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    projected = torch.from_numpy(X) @ torch.randn(5, 24, generator=torch.Generator().manual_seed(0))
    return DenseCodes.signs(projected), nearest(X, X, 21), np.arange(60)


def slow_ap(distances, query, near, at, kept, by_hits, n_relevant):
    """Return AP of one query, ties in the order of the rows, the way one would explain it."""
    others = [item for item in near if item != query]
    relevant = {query, *others[: n_relevant - 1]} if kept else set(others[:n_relevant])
    ranking = sorted((d, item) for item, d in enumerate(distances) if kept or item != query)
    hits, total = 0, 0.0
    for place, (_, item) in enumerate(ranking[:at], start=1):
        if item in relevant:
            hits += 1
            total += hits / place
    return total / max(hits, 1) if by_hits else total / min(at, n_relevant)


@pytest.mark.parametrize("at", [5, 20])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("divisor", ["retrieved", "relevant"])
def test_a_reading_is_what_a_slow_loop_computes(toy, at, kept, divisor):
    codes, near, rows = toy
    reading = Reading(at, kept, divisor, relevant=15)
    D = codes.hamming(codes)
    want = [slow_ap(D[q], q, near[q].tolist(), at, kept, divisor == "retrieved", 15) for q in rows]
    assert mean_average_precision(codes, codes, ties="index", **reading.given(near, rows)) == pytest.approx(
        np.mean(want), abs=1e-12
    )


def test_a_code_that_knows_only_itself_scores_a_tenth_under_the_fitted_reading():
    n = 2_000
    bits = torch.randn(n, 64, generator=torch.Generator().manual_seed(0))
    codes, rows = DenseCodes.signs(bits), np.arange(n)
    strangers = np.random.default_rng(0).integers(0, n, (n, 101))  # a truth that the codes know nothing of
    strangers[:, 0] = rows
    fitted, literal = (mean_average_precision(codes, codes, **r.given(strangers, rows)) for r in (FITTED, LITERAL))
    assert 0.1 < fitted < 0.13 and literal < 0.1


def test_readings_have_names_of_their_own_and_hold_both(toy):
    assert len({reading.name for reading in READINGS}) == len(READINGS) == 8
    assert FITTED in READINGS and LITERAL in READINGS
    assert FITTED.name == "first 10, divided by 10, query kept"
    assert LITERAL.name == "first 100, divided by the hits, query left out"
    codes, near, rows = toy
    some = tuple(Reading(at, relevant=20) for at in (3, 9))
    scores = score_readings(codes, near[::7], rows[::7], some)
    assert list(scores) == [r.name for r in some] and all(0 < s <= 100 for s in scores.values())


def test_too_few_neighbours_are_refused(toy):
    _, near, rows = toy
    with pytest.raises(ValueError, match="100 neighbours besides the query"):
        FITTED.given(near, rows)


def test_the_validation_words_are_words_to_learn_from(monkeypatch):
    train = np.arange(40, dtype=np.float32)[:, None]
    monkeypatch.setattr(protocols, "word_task", lambda *_: Task(-train[:8], -train[:8], train=train))
    validation = protocols.word_validation_task.__wrapped__("words", "mini", 1)
    assert validation.database is validation.queries and len(validation.database) == 10
    assert sorted([*validation.database[:, 0], *validation.train[:, 0]]) == train[:, 0].tolist()


def test_both_tables_are_declared_as_printed():
    for name in ("glove-euclidean", "glove-cosine"):
        trials = list(EXPERIMENTS[name].trials())
        labels = {trial.row.label for trial in trials}
        assert {trial.seed for trial in trials} == set(range(10))
        assert set(TABLES[name].rows) <= labels and "BioConvHash" not in labels
    assert make_hasher("BioHash", 2, 0, "glove").n_units == 200


def test_both_tables_are_measured_from_one_fit(tmp_path, monkeypatch):
    fits = []
    monkeypatch.setattr(measure, "_hash", lambda *given, fit=measure._hash: fits.append(given) or fit(*given))
    names = ["glove-euclidean", "glove-cosine"]
    chosen = {"methods": ["LSH", "FlyHash"], "hash_lengths": [16], "seeds": [0]}
    assert run(names, "mini", **chosen, where=tmp_path) == 4 and len(fits) == 2
    (lsh, fly), cosine = (results.read(name, tmp_path) for name in names)
    for record in (lsh, fly, *cosine):
        assert record["worst"] < record["value"] < record["best"]
        assert record["literal_worst"] < record["literal"] < record["literal_best"]
        assert record["readings"].keys() == {reading.name for reading in READINGS}
        assert record["readings"][FITTED.name] == pytest.approx(record["value"], abs=5)  # every tenth query
        assert record["readings"][LITERAL.name] == pytest.approx(record["literal"], abs=5)
    assert lsh["value"] != cosine[0]["value"] and fly["value"] > lsh["value"]


def test_a_schedule_is_judged_on_words_to_learn_from(tmp_path):
    row = "30 epochs, annealed to rate zero"
    assert run("schedule-glove", "mini", methods=[row], hash_lengths=[2], where=tmp_path) == 1
    (record,) = results.read("schedule-glove", tmp_path)
    assert record["epochs"] == 30 and record["n_units"] == 200 and record["cosine"] > 10
