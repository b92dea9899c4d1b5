import json
import multiprocessing

import pytest

from biohash_mini.reproduction import results


def record(method="BioHash", k=2, seed=0, **values):
    return {"profile": "full", "method": method, "hash_length": k, "seed": seed, "value": 40.0} | values


def test_a_trial_is_recorded_once(tmp_path):
    assert results.append("mnist", record(), tmp_path)
    assert not results.append("mnist", record(value=99.0), tmp_path)
    assert results.append("mnist", record(seed=1), tmp_path)
    assert [r["value"] for r in results.read("mnist", tmp_path)] == [40.0, 40.0]


@pytest.mark.parametrize("torn", [b'{"profile": "fu', b"{", b'{"profile": "full"}'[:-1]])
def test_a_torn_last_line_is_repaired(torn, tmp_path):
    results.append("mnist", record(), tmp_path)
    with open(tmp_path / "mnist.jsonl", "ab") as f:
        f.write(torn)
    assert len(results.read("mnist", tmp_path)) == 1
    results.append("mnist", record(seed=1), tmp_path)
    lines = (tmp_path / "mnist.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]


def test_a_last_line_that_only_lacks_its_end_is_kept(tmp_path):
    (tmp_path / "mnist.jsonl").write_text(json.dumps(record()))
    results.append("mnist", record(seed=1), tmp_path)
    assert [r["seed"] for r in results.read("mnist", tmp_path)] == [0, 1]


def _append_many(where, worker):
    for seed in range(40):
        results.append("mnist", record(method=str(worker), seed=seed, filler="x" * 5000), where)


def test_two_runs_at_once_do_not_corrupt_the_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(tmp_path, i)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines = (tmp_path / "mnist.jsonl").read_text().splitlines()
    assert len({(r["method"], r["seed"]) for r in map(json.loads, lines)}) == len(lines) == 80


def test_records_come_as_a_frame(tmp_path):
    for seed, profile in ((0, "full"), (1, "full"), (0, "mini")):
        results.append("mnist", record(seed=seed, profile=profile, tie_orders={"a": 1.0}), tmp_path)
    frame = results.frame("mnist", where=tmp_path)
    assert frame["seed"].tolist() == [0, 1] and frame["tie_orders"][0] == {"a": 1.0}
    assert len(results.frame("mnist", profile=None, where=tmp_path)) == 3
    assert results.frame("nothing", where=tmp_path).empty and "value" in results.frame("nothing", where=tmp_path)


def test_the_documented_fields_are_those_of_the_records():
    for line in results.read("mnist"):
        assert set(line) <= set(results.Record.__annotations__)
