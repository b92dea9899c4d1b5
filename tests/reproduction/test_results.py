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


def test_a_trial_that_stands_twice_counts_once_and_the_second_line_is_named(tmp_path):
    path = tmp_path / "mnist.jsonl"
    path.write_text("".join(json.dumps(record(value=v)) + "\n" for v in (40.0, 41.0)))
    with pytest.warns(UserWarning, match=r"line 2 is passed over: it repeats the trial \('full', 'BioHash', 2, 0\)"):
        assert [r["value"] for r in results.read("mnist", tmp_path)] == [40.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<<<<<<< HEAD", "Expecting value"),
        ('{"profile": "full"', "Expecting"),
        ("[1, 2]", "it is no JSON object"),
        ("", "Expecting value"),
        ("[" * 100_000, "recursion"),
        (json.dumps({"profile": "full", "method": "LSH"}), "hash_length is None"),
        (json.dumps(record(value="40")), "value is '40'"),
        (json.dumps(record(value=None)), "value is None"),
        (json.dumps(record(value=float("nan"))), "value is nan"),
        (json.dumps(record(k="2")), "hash_length is '2'"),
        (json.dumps(record(seed=True)), "seed is True"),
        (json.dumps(record(best="high")), "best is 'high'"),
        (json.dumps(record(seconds=[1])), r"seconds is \[1\]"),
        (json.dumps(record(seconds=None)), "seconds is None"),
        (json.dumps(record(params=[1])), r"params is \[1\]"),
        (json.dumps(record(epochs=2.5)), "epochs is 2.5"),
        (json.dumps(record(value=10**400)), "value is 1000"),
    ],
)
def test_a_line_that_is_no_record_is_named_and_the_rest_is_used(line, message, tmp_path):
    whole = [json.dumps(record(seed=s)) for s in (1, 2)]
    (tmp_path / "mnist.jsonl").write_text("\n".join([whole[0], line, whole[1], ""]))
    with pytest.warns(UserWarning, match=f"line 2 is passed over: .*{message}"):
        assert [r["seed"] for r in results.read("mnist", tmp_path)] == [1, 2]
    with pytest.warns(UserWarning, match="line 2 is passed over"):
        assert results.append("mnist", record(seed=3), tmp_path)


def test_the_recorded_results_have_no_line_that_is_passed_over():
    for path in sorted(results.folder().glob("*.jsonl")):
        assert len(results.read(path.stem)) == len(path.read_bytes().splitlines())
