import json

import pytest

from biohash_mini.cli import main
from biohash_mini.reproduction import results
from biohash_mini.reproduction.rerun import choose, rerun
from biohash_mini.reproduction.runner import run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Records of three trials on the embedded sample."""
    folder = tmp_path_factory.mktemp("results")
    run("mnist", "mini", methods=["LSH", "FlyHash"], hash_lengths=[2], seeds=[0], where=folder)
    run("mnist", "mini", methods=["BioHash"], hash_lengths=[2], seeds=[1], where=folder)
    return folder


def change(folder, tmp_path, **fields):
    """Copy the records with some fields of the first line changed."""
    first, *rest = (folder / "mnist.jsonl").read_text().splitlines()
    (tmp_path / "mnist.jsonl").write_text("\n".join([json.dumps(json.loads(first) | fields), *rest, ""]))
    return tmp_path


def test_a_recorded_trial_measured_again_is_what_was_recorded(recorded, capsys):
    for line in (1, 2, 3):
        assert main(["rerun", "mnist", "--line", str(line), "--results", str(recorded)]) == 0
    said = capsys.readouterr().out.splitlines()
    values = [r["value"] for r in results.read("mnist", recorded)]
    assert len(said) == 3 and all(line.endswith(": equal") for line in said)
    assert all(text.count(f"{value} (") == 2 for text, value in zip(said, values, strict=True))


@pytest.mark.parametrize("fields", [{"value": 1.0}, {"best": 99.0}, {"data_sha256": "0" * 64}, {"n_units": 3}])
def test_a_record_that_does_not_hold_is_told_field_by_field(fields, recorded, tmp_path, capsys):
    assert main(["rerun", "mnist", "--line", "1", "--results", str(change(recorded, tmp_path, **fields))]) == 2
    said = capsys.readouterr()
    (name, value), *_ = fields.items()
    assert f"  {name}: {value} recorded, " in said.out and "1 of 1 lines are not what was recorded" in said.err


def test_the_parameters_are_those_of_the_line_and_not_of_the_declaration(recorded, tmp_path):
    whole = results.line("mnist", 1, recorded)
    folder = change(recorded, tmp_path, params={**whole["params"], "center": False})
    again = rerun("mnist", 1, folder)
    assert again.now["params"]["center"] is False and again.now["value"] != whole["value"]


def test_numbers_may_differ_by_the_tolerance_and_texts_may_not(recorded):
    again = rerun("mnist", 1, recorded)
    near = again._replace(now={**again.now, "value": again.now["value"] + 0.3, "data_sha256": "other"})
    assert set(near.differences()) == {"value", "data_sha256"} and set(near.differences(0.5)) == {"data_sha256"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mnist", "--line", "9"], "has 3 lines, and so no line 9"),
        (["mnist"], "name an experiment and a --line"),
        ([], "name an experiment and a --line"),
        (["--line", "1"], "name an experiment and a --line"),
        (["mnist", "--line", "1", "--random", "2"], "name an experiment and a --line"),
        (["nothing", "--line", "1"], "no experiment nothing"),
    ],
)
def test_what_cannot_be_repeated_is_one_line(words, message, recorded, capsys):
    assert main(["rerun", *words, "--results", str(recorded)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_random_lines_are_those_that_took_little_time(recorded):
    assert sorted(choose(99, 1e6, where=recorded)) == [("mnist", 1), ("mnist", 2), ("mnist", 3)]
    assert len(choose(2, 1e6, where=recorded)) == 2
    with pytest.raises(ValueError, match="no recorded trial that can be repeated took at most 0 s"):
        choose(99, 0.0, where=recorded)
    assert choose(2, 1e6, 1, recorded) == choose(2, 1e6, 1, recorded)
