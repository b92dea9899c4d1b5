import csv
import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import faiss
import numpy as np
import pytest
import scipy.sparse as sp

from biohash_mini import BioHash, Codes, HammingIndex, datasets
from biohash_mini.cli import main
from biohash_mini.datasets import load, networks
from tests.library.datasets.pictures import Tiny, pictures

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture
def vectors(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    return X


def files(tmp_path):
    return ["--model", str(tmp_path / "m.safetensors"), "--codes", str(tmp_path / "c.safetensors")]


def test_hash_then_search_is_what_the_library_does(vectors, tmp_path, capsys):
    assert main(["hash", str(tmp_path / "x.npy"), "--hash-length", "3", "--activity", "0.1", *files(tmp_path)]) == 0
    assert "200 codes, 3 of 30 units on" in capsys.readouterr().out
    np.save(tmp_path / "q.npy", vectors[:5].astype(np.float64))
    assert main(["search", str(tmp_path / "q.npy"), *files(tmp_path), "--top", "4"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    codes = BioHash(3, activity=0.1).fit(vectors).encode(vectors)
    distances, ids = HammingIndex(codes).search(codes[:5], 4)
    assert [int(r["id"]) for r in rows] == ids.ravel().tolist()
    assert [int(r["distance"]) for r in rows] == distances.ravel().tolist()


def test_exported_codes_are_found_where_they_were_sent(vectors, tmp_path, capsys):
    x, (model, codes) = x_file(tmp_path), (files(tmp_path)[:2], files(tmp_path)[3])
    assert main(["hash", x, "--hash-length", "3", "--activity", "0.1", *files(tmp_path)]) == 0
    for to in (f"milvus://{tmp_path}/codes.db#mine", "faiss", "npz"):
        capsys.readouterr()
        assert main(["export", codes, "--to", to]) == 0
        assert "200 codes, 3 of 30 units on" in capsys.readouterr().out
    want = Codes.load(codes)
    assert Codes.from_matrix(sp.load_npz(tmp_path / "c.npz")) == want
    assert faiss.read_index_binary(str(tmp_path / "c.faiss")).ntotal == 200
    answers = []
    for place in (codes, f"milvus://{tmp_path}/codes.db#mine"):
        assert main(["search", x, *model, "--codes", place, "--top", "5"]) == 0
        answers.append([row["distance"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))])
    assert answers[0] == answers[1] and len(answers[0]) == 1000
    absent = f"milvus://{tmp_path}/absent.db"
    expect_error(capsys, ["search", x, *model, "--codes", absent], "no such database")
    assert not (tmp_path / "absent.db").exists()
    before = Path(codes).read_bytes()
    expect_error(capsys, ["export", codes, "--to", "npz", "--out", codes], "is the file of the codes")
    assert Path(codes).read_bytes() == before
    want.save(tmp_path / "v1.2.safetensors")
    assert main(["export", str(tmp_path / "v1.2.safetensors"), "--to", "npz"]) == 0
    assert (tmp_path / "v1.2.npz").exists() and not (tmp_path / "v1.2").exists()
    assert main(["hash", x, "--hash-length", "3", "--activity", "0.1", "--seed", "1", *files(tmp_path)]) == 0
    capsys.readouterr()
    expect_error(capsys, ["search", x, *model, "--codes", f"milvus://{tmp_path}/codes.db#mine"], "of another model")
    expect_error(capsys, ["export", codes, "--to", "redis"], "codes go to an address")
    expect_error(capsys, ["export", codes, "--to", "milvus://localhost:9"], "Milvus: ")


@pytest.mark.parametrize("method", ["LSH", "FlyHash", "SH", "DenseFly"])
def test_other_methods_are_a_flag_away(method, vectors, tmp_path):
    assert main(["hash", str(tmp_path / "x.npy"), "--method", method, "--hash-length", "4", *files(tmp_path)]) == 0


def spoil(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return str(tmp_path / name)


def expect_error(capsys, argv, message):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and message in captured.err


def test_errors_are_one_line_and_exit_code_two(vectors, tmp_path, capsys):
    x = str(tmp_path / "x.npy")
    np.save(tmp_path / "nan.npy", np.full((3, 2), np.nan))
    np.save(tmp_path / "object.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    expect_error(capsys, ["hash", str(tmp_path / "none.npy"), *files(tmp_path)], "none.npy")
    expect_error(capsys, ["hash", spoil(tmp_path, "junk.npy", b"junk"), *files(tmp_path)], "not an .npy file")
    expect_error(capsys, ["hash", str(tmp_path / "object.npy"), *files(tmp_path)], "not an .npy file")
    expect_error(capsys, ["hash", str(tmp_path / "nan.npy"), *files(tmp_path)], "X[0, 0] is NaN")
    expect_error(capsys, ["hash", x, "--hash-length", "0", *files(tmp_path)], "hash_length")
    expect_error(capsys, ["hash", x, "--activity", "2", *files(tmp_path)], "activity must lie in (0, 1]")
    expect_error(capsys, ["hash", x, "--method", "LSH", "--activity", "0.1", *files(tmp_path)], "no activity")
    expect_error(capsys, ["run"], "name experiments, or say --all")
    assert not (tmp_path / "m.safetensors").exists()


def test_damaged_models_and_codes_are_refused(vectors, tmp_path, capsys):
    x = str(tmp_path / "x.npy")
    main(["hash", x, *files(tmp_path)])
    capsys.readouterr()
    for name in ("m.safetensors", "c.safetensors"):
        whole = (tmp_path / name).read_bytes()
        spoil(tmp_path, name, whole[:-7])
        expect_error(capsys, ["search", x, *files(tmp_path)], "truncated")
        spoil(tmp_path, name, whole[:-1] + b"\x55")
        expect_error(capsys, ["search", x, *files(tmp_path)], "checksum")
        spoil(tmp_path, name, whole)
    swapped = ["--model", str(tmp_path / "c.safetensors"), "--codes", str(tmp_path / "m.safetensors")]
    expect_error(capsys, ["search", x, *swapped], "no hasher")


@pytest.mark.parametrize("command", [[], ["data"], ["hash"], ["search"], ["export"], ["run"], ["report"], ["bench"]])
def test_help_shows_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--help"])
    assert "example" in capsys.readouterr().out


def test_unknown_words_exit_with_two(capsys):
    for argv in (["dance"], ["data", "fetch", "imagenet"], ["hash", "x.npy", "--method", "nothing"]):
        with pytest.raises(SystemExit, match="2"):
            main(argv)
    capsys.readouterr()
    expect_error(capsys, ["report", "nothing"], "no experiment nothing; choose among mnist")
    expect_error(capsys, ["run", "mnist", "--methods", "nothing"], "no row of mnist is called nothing")


def test_data_tells_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)
    expect_error(capsys, ["data", "path", "mnist"], "biohash data fetch mnist")
    expect_error(capsys, ["data", "verify", "mnist"], "biohash data fetch mnist")
    monkeypatch.setattr(datasets, "fetch", lambda name: tmp_path / name)
    assert main(["data", "fetch", "mnist"]) == 0 and capsys.readouterr().out.endswith("mnist\n")


def test_the_command_extracts_to_where_the_data_set_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BIOHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BIOHASH_DATA", raising=False)
    monkeypatch.setattr(networks, "pretrained", lambda name, layer: Tiny())
    monkeypatch.setattr(networks, "load", lambda name, profile: small)
    rows_of = {"labels": np.repeat(np.arange(10), 2), "image_shape": (3, 32, 32)}
    small = datasets.Dataset("cifar10", "full", pictures(20).reshape(20, -1), "", **rows_of)
    assert main(["features", "alexnet", "--side", "20", "--batch-size", "8"]) == 0
    assert capsys.readouterr().out.strip() == str(datasets.data_path("cifar10-alexnet"))
    assert load("cifar10-alexnet", "full").layer == "alexnet pooled, 20 px"
    assert main(["features", "alexnet", "--side", "24"]) == 2  # never over features of another kind
    assert main(["data", "path", "cifar10-vgg16"]) == 2 and "biohash features vgg16" in capsys.readouterr().err


def test_model_codes_and_vectors_must_be_three_files(vectors, tmp_path, capsys):
    x, other = str(tmp_path / "x.npy"), str(tmp_path / "other")
    before = (tmp_path / "x.npy").read_bytes()
    expect_error(capsys, ["hash", x, "--model", other, "--codes", other], "--codes")
    expect_error(capsys, ["hash", x, "--model", other, "--codes", x], "is the file of the vectors")
    expect_error(capsys, ["hash", x, "--model", f"{tmp_path}/./x.npy", "--codes", other], "is the file of the vectors")
    os.symlink(x, tmp_path / "link")
    expect_error(capsys, ["hash", x, "--model", other, "--codes", str(tmp_path / "link")], "is the file of the vectors")
    assert (tmp_path / "x.npy").read_bytes() == before and not Path(other).exists()


def test_a_place_that_cannot_be_written_is_told_before_any_training(vectors, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(BioHash, "fit", lambda *_: pytest.fail("trained in vain"))
    argv = ["hash", str(tmp_path / "x.npy"), "--model", str(tmp_path / "m"), "--codes"]
    expect_error(capsys, [*argv, str(tmp_path)], "is a folder")
    expect_error(capsys, [*argv, str(tmp_path / "x.npy" / "c")], "x.npy")


def test_codes_of_another_model_are_not_searched(vectors, tmp_path, capsys, monkeypatch):
    x, argv = str(tmp_path / "x.npy"), ["--hash-length", "3", *files(tmp_path)]
    assert main(["hash", x, *argv]) == 0

    def fail(self, path, **_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("biohash_mini.codes.Codes.save", fail)
        assert main(["hash", x, "--seed", "1", *argv]) == 2  # leaves the new model beside the old codes
    capsys.readouterr()
    expect_error(capsys, ["search", x, *files(tmp_path)], "holds codes of another model")
    assert main(["hash", x, "--seed", "1", *argv]) == 0 == main(["search", x, *files(tmp_path)])


def test_broken_archives_are_one_line(vectors, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", vectors=vectors)
    whole = (tmp_path / "x.npz").read_bytes()
    expect_error(capsys, ["hash", str(tmp_path / "x.npz"), *files(tmp_path)], "not an .npy file")
    expect_error(capsys, ["hash", spoil(tmp_path, "half.npz", whole[:300]), *files(tmp_path)], "not an .npy file")
    expect_error(capsys, ["search", x_file(tmp_path), "--model", str(tmp_path / "x.npz"), "--codes", "c"], "truncated")


def x_file(tmp_path):
    return str(tmp_path / "x.npy")


def test_absurd_lengths_activities_and_seeds_are_one_line(vectors, tmp_path, capsys):
    argv = ["hash", x_file(tmp_path), *files(tmp_path)]
    expect_error(capsys, [*argv, "--hash-length", "1" + "0" * 30], "hash_length must be at most")
    expect_error(capsys, [*argv, "--hash-length", "2000000000"], "weights must be at least 1 and at most")
    expect_error(capsys, [*argv, "--activity", "1e-300"], "weights must be at least 1 and at most")
    expect_error(capsys, [*argv, "--activity", "nan"], "activity must be a finite number")
    expect_error(capsys, [*argv, "--seed", "9" * 30], "seed must lie in")
    for words in (["run", "mnist", "--workers", "0"], ["features", "alexnet", "--side", "x"]):
        with pytest.raises(SystemExit, match="2"):
            main(words)
    assert "must be an integer of at least 1" in capsys.readouterr().err
    for value in ("nan", "inf", "-1", "x"):  # with which all would be equal, or nothing
        with pytest.raises(SystemExit, match="2"):
            main(["rerun", "mnist", "--line", "1", "--tolerance", value])
        assert "must be a finite number of at least 0" in capsys.readouterr().err


@pytest.mark.parametrize("shape", [(-3, 30), (1 << 61, 2), (1 << 40, 1 << 40)])
def test_an_array_of_an_absurd_shape_is_one_line(tmp_path, capsys, shape):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        file.write(bytes(400))
    expect_error(capsys, ["hash", str(tmp_path / "x.npy"), *files(tmp_path)], "is not an .npy file of numbers")


def test_words_that_would_measure_nothing_are_told(tmp_path, capsys):
    absent = ["--results", str(tmp_path / "absent")]
    expect_error(capsys, ["rerun", "--random", "3", *absent], "no recorded trial")
    expect_error(capsys, ["report", *absent], "no folder of results")
    for size in ("0,3,9", "9,0,9", "9,4,3"):
        expect_error(capsys, ["bench", "sparse", "--sizes", size, *absent], "a size is n,k,m")


def test_more_workers_than_work_are_not_started(tmp_path):
    argv = ["run", "mnist", "--methods", "LSH", "--hash-lengths", "2", "--seeds", "0", "--results", str(tmp_path)]
    assert main([*argv, "--workers", "9" * 18]) == 0


def test_a_method_that_no_row_has_measures_nothing_and_says_so(tmp_path, capsys):
    expect_error(capsys, ["run", "--all", "--methods", "NOPE", "--results", str(tmp_path)], "is called NOPE")


def command(tmp_path, *argv, path=(), **given):
    """Run the command in a process of its own, from the entry point that ``pyproject.toml`` declares."""
    module, name = PROJECT["scripts"]["biohash"].split(":")
    (tmp_path / "biohash").write_text(f"import sys\nfrom {module} import {name}\nsys.exit({name}())\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, *sys.path]))}
    words = [sys.executable, str(tmp_path / "biohash"), *argv]
    return subprocess.run(words, env=env, text=True, stderr=subprocess.PIPE, **given)


def _close(*handles):
    return lambda: [os.close(handle) for handle in handles]


def test_closed_or_full_standard_streams_are_no_traceback(tmp_path):
    assert command(tmp_path, "report", "nothing", preexec_fn=_close(1, 2)).returncode == 2
    closed = command(tmp_path, "report", "mnist", "--json", "--results", str(tmp_path), preexec_fn=_close(1))
    assert closed.returncode == 0 and closed.stderr == ""
    with open("/dev/full", "w") as full:
        run = command(tmp_path, "report", "mnist", "--json", "--results", str(tmp_path), stdout=full)
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and "No space left" in run.stderr


def test_an_interrupt_while_modules_are_imported_is_one_line_of_the_command_alone(tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "torch.py").write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background is started without it
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)"
    )
    run = command(tmp_path, "--help", path=[tmp_path / "slow"])
    assert run.returncode == 130 and run.stderr == "biohash: interrupted\n"
    code = "try:\n    import biohash_mini\nexcept KeyboardInterrupt:\n    print('mine')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "slow"), *sys.path])}
    run = subprocess.run([sys.executable, "-c", code], env=env, text=True, capture_output=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "mine\n", "")  # who imports the library decides


def test_a_damaged_record_is_one_line_and_the_rest_is_reported(tmp_path):
    (tmp_path / "mnist.jsonl").write_text("<<<<<<< HEAD\n")
    run = command(tmp_path, "report", "mnist", "--json", "--results", str(tmp_path), stdout=subprocess.PIPE)
    assert run.returncode == 0 and run.stdout.startswith("[")
    assert run.stderr.count("\n") == 1 and "mnist.jsonl, line 1 is passed over" in run.stderr
