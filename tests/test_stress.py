"""The short form of the campaign of faults and malformed input; `make stress` runs the long one."""

import os
import random
import tempfile

import pytest

from biohash_mini.datasets import sources
from book import build
from tools.stress import Tally, __main__, disk, faults, jobs, malformed, words
from tools.stress.jobs import STAGES, Stage


@pytest.fixture(autouse=True)
def afterwards_as_before():
    """Take back what the campaign sets for the processes that it starts."""
    variables, data_sets = dict(os.environ), dict(sources.SPECS)
    yield
    for now, before in ((os.environ, variables), (sources.SPECS, data_sets)):
        now.clear()
        now.update(before)
    tempfile.tempdir = None


@pytest.mark.parametrize("part", ["faults", "malformed input"])
def test_the_short_campaign_holds(part, capfd, recwarn):
    code = __main__.main(["--short", "--parts", part])
    assert code == 0, capfd.readouterr().out


def test_every_measure_of_the_load_answers():
    from tools.stress import load

    assert {limit for _, limits in load.MEASURES.values() for limit in limits} == {
        "sparse_mb",
        "dense_mb",
        "growth_mb",
        "p95",
        "p99",
    }
    assert load.single(True)["p95"] >= 1 and load.stream(True)["growth_mb"] < 50


def test_the_parameters_that_are_tried_are_those_of_the_chapters():
    for chapter in build.notebooks():
        told = words.parameters(chapter).keys()
        assert told and (words.OWN.keys() <= told or "your_own" not in chapter.stem)


def test_the_campaign_notices_what_does_not_hold(tmp_path):
    case = malformed.Case("two and two", lambda: 4, ("sum",))
    assert malformed.judged(case) == "two and two: answered 4"
    assert "unclear" in malformed.judged(case._replace(call=lambda: [].index(4)))
    assert "KeyError" in malformed.judged(case._replace(call=lambda: {}["sum"]))
    assert words.judged(["data", "path"]) == "" or "exit code 0" in words.judged(["data", "path"])
    assert "used" in disk._refusal("swapped", tmp_path, lambda path: "other", "what was written")


def test_a_kill_that_loses_something_is_counted(monkeypatch):
    careless = Stage("writing results", jobs.append, lambda folder, told: "lost", lambda folder: 0)
    with jobs.server():
        tally = faults.killed(careless, 1, random.Random(0))
    assert tally.tried == 1 and tally.held < 1 and "lost" in tally.problems[0]


def test_the_record_says_what_was_counted_and_numbers_the_campaigns(tmp_path):
    from biohash_mini.reproduction import results

    tally = Tally("faults", "kill -9: nothing", 4, 3, ["one was lost"])
    for _ in range(2):
        __main__.record([tally], tmp_path)
    first, second = results.read("stress", tmp_path)
    assert (first["seed"], second["seed"]) == (0, 1) and first["value"] == 75.0
    assert first["tried"] == 4 and first["problems"] == ["one was lost"] and "commit" in first


def test_the_long_campaign_kills_a_hundred_times():
    assert sum(stage.kills for stage in STAGES) >= 100
