"""Malformed words: arguments of the command line, and parameters of the chapters."""

from __future__ import annotations

import ast
import io
import json
import os
import random
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from biohash_mini import cli
from book import build

from . import Tally, jobs
from .malformed import alarm, silent

_NUMBERS = ["x", "", "1.5.2", "0x", "--", "nan", "1e", "１２a", "None", "[1]", "9" * 400 + "a"]
_COUNTS = ["0", "-1", "2.5", "1e3", *_NUMBERS]
_PATHS = ["/no/such/folder/x.npy", "", ".", "/dev/null", "a" * 300, "x\0y"]


def command_lines(folder: Path, short: bool) -> Iterator[list[str]]:
    """Yield command lines of which one word, or more, is wrong."""
    np.save(folder / "x.npy", jobs.rows(60))
    os.mkfifo(folder / "pipe")
    x = str(folder / "x.npy")
    to = ["--model", str(folder / "m"), "--codes", str(folder / "c")]
    silent(lambda: cli.main(["hash", x, "--hash-length", "4", *to]))
    bad = dict(_bad_files(folder))
    hashing, searching = ["hash", x, *to], ["search", x, *to]
    out = ["--results", str(folder / "results")]
    options: dict[tuple[str, ...], dict[str, list[str]]] = {
        tuple(hashing): {
            "--hash-length": ["0", "-1", "2.5", "10" * 20, *_NUMBERS],
            "--activity": ["0", "-0.1", "2", "inf", *_NUMBERS],
            "--max-epochs": ["0", "-3", "2.5", *_NUMBERS],
            "--seed": ["2.5", "9" * 40, *_NUMBERS],
            "--device": ["gpu", "cuda:99", "cpu:x", ""],
            "--method": ["nothing", "", "biohash", "BioHash "],
            "--model": [x, ".", "", str(folder / "pipe"), "/dev/null/m", "/proc/m"],
            "--codes": [x, ".", "", str(folder / "m"), "/proc/c"],
            "--nothing": ["3"],
        },
        tuple(searching): {
            "--top": ["0", "-1", "2.5", *_NUMBERS],
            "--device": ["gpu", "", "cuda:99"],
            "--model": [*_PATHS, x, str(folder / "c"), *bad],
            "--codes": [*_PATHS, x, str(folder / "m"), *bad],
        },
        ("run", "mnist", *out): {
            "--profile": ["nothing", "", "MINI"],
            "--methods": ["nothing", "", "lsh"],
            "--hash-lengths": ["3", "0", "-2", *_NUMBERS],
            "--seeds": ["99", "-1", *_NUMBERS],
            "--workers": _COUNTS,
        },
        ("rerun", "mnist", *out): {
            "--line": ["7", *_COUNTS],
            "--random": ["3", *_COUNTS],
            "--tolerance": ["nan", "inf", "-1", *_NUMBERS[:2]],
        },
        ("report",): {"--profile": ["nothing", ""], "--nothing": [""], "--results": [x, "/no/such", "x\0y"]},
        ("features", "alexnet", "--profile", "mini", "--output", str(folder / "f")): {
            "--layer": ["fc8", ""],
            "--side": _COUNTS,
            "--batch-size": _COUNTS,
            "--device": ["gpu", ""],
        },
        ("export", str(folder / "c")): {
            "--to": ["nothing", "", "redis://host", "milvus://", "npz --out", "faiss "],
        },
        ("export", str(folder / "c"), "--to", "npz"): {"--out": [str(folder / "c"), ".", "/proc/c.npz", "/dev/null/c"]},
        ("bench", "--quick", *out): {
            "--sizes": ["1,2", "a,b,c", "1,2,3,4", ",,", "0,1,2", "9,3,2"],
            "--threads": ["-1", "x", "2.5"],
        },
    }
    for start, table in options.items():
        for option, values in table.items():
            yield from ([*start, option, value] for value in values)
    for path in [*_PATHS, *bad]:
        yield ["hash", path, *to]
        yield ["search", path, *to]
        yield ["export", path, "--to", "npz"]
    for word in ("nothing", "", "mnist ", "../mnist", "MNIST", "--", "\0"):
        yield from ([command, word, *out] for command in ("run", "report"))
        if word not in ("", "--"):  # which mean all data sets
            yield from (["data", action, word] for action in ("fetch", "verify", "path"))
        yield from ([word], ["data", word], ["features", word], ["hash", word], ["search", word, *to])
    yield from (
        [],
        ["hash"],
        ["search"],
        ["data"],
        ["features"],
        ["export"],
        ["hash", x],
        ["run"],
        ["report", "--json", "--cost"],
    )
    rng = random.Random(0)
    for _ in range(10 if short else 150):  # words in any order, one of them a command that does not exist
        good = ["--top", "3", x, "hash", "search", "--seed", "0", "--model", "m", "-h-", "--method", "LSH"]
        yield ["nothing", *rng.sample(good, rng.randrange(1, 8))]


def _bad_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    np.save(folder / "good.npy", jobs.rows(60))
    whole = (folder / "good.npy").read_bytes()
    contents = {"empty": b"", "text": b"1,2\n3,4\n", "half": whole[:1000], "head": whole[:90], "zeros": bytes(3000)}
    contents |= {"longheader": whole[:8] + b"\xff\xff" + whole[10:], "zip": b"PK\x03\x04" + bytes(200)}
    for name, content in contents.items():
        (path := folder / f"{name}.npy").write_bytes(content)
        yield str(path), content
    for name, shape in (("negative", (-3, 30)), ("absurd", (1 << 61, 2))):
        np.lib.format.write_array_header_1_0(
            file := io.BytesIO(), {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        (path := folder / f"{name}.npy").write_bytes(file.getvalue() + bytes(240))
        yield str(path), b""
    arrays = {
        "nan": np.full((9, 30), np.nan),
        "flat": np.zeros(9),
        "cube": np.zeros((2, 3, 4)),
        "text": np.array([["a"]]),
    }
    arrays |= {"none": np.zeros((0, 4)), "complex": np.ones((4, 30), complex), "record": np.zeros(4, "f4,f4")}
    for name, array in arrays.items():
        np.save(path := folder / f"array-{name}.npy", array)
        yield str(path), b""


def judged(line: list[str]) -> str:
    """Return what is wrong with the answer to a command line; "" for exit code 2 with an error and no traceback."""
    shown = " ".join(word[-40:] for word in line)
    try:
        with alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code, _, said = silent(lambda: cli.main(line))
    except SystemExit as end:  # argparse: usage, then the error
        return "" if end.code == 2 else f"{shown}: exit code {end.code}"
    except BaseException as error:
        return f"{shown}: {type(error).__name__}: {str(error)[:150]}"
    lines = [text for text in str(said).splitlines() if text.startswith("biohash: ")]
    clear = code == 2 and len(lines) == 1 and len(lines[0]) > 15 and "Traceback" not in str(said)
    return "" if clear else f"{shown}: exit code {code}, {str(said)[:200]!r}"


# ---------------------------------------------------------------- the parameters of the chapters

_LONGEST = 180  # seconds of a cell, of which one measures the growth of all costs
_PROFILES = ["nothing", "", None, 3, "FULL"]
_SEEDS = ["zero", 0.5]
OWN = {
    "vectors": ["/no/such/file.npy", "."],
    "hash_length": [0, -1, 2.5, "32", 10**12],
    "activity": [0, -0.1, 1.5, "a", float("nan")],
    "seed": ["zero", 0.5],
}


def parameters(chapter: Path) -> dict[str, object]:
    """Return the parameters of a chapter, and what they are by default."""
    cells = json.loads(chapter.read_text("utf-8"))["cells"]
    (source,) = ("".join(c["source"]) for c in cells if "parameters" in c["metadata"].get("tags", []))
    given = [node for node in ast.parse(source).body if isinstance(node, ast.AnnAssign) and node.value]
    return {ast.unparse(node.target): ast.literal_eval(node.value) for node in given}


def notebook_cases(short: bool) -> Iterator[tuple[Path, str, object]]:
    """Yield chapters, each with a bad value of one of its parameters."""
    for chapter in build.notebooks()[:: 8 if short else 1]:
        if "your_own" in chapter.stem:
            yield from ((chapter, name, value) for name, values in OWN.items() for value in values)
        else:
            if "profile" in parameters(chapter):
                yield from ((chapter, "profile", value) for value in _PROFILES)
            if "seed" in parameters(chapter):
                yield from ((chapter, "seed", value) for value in _SEEDS)


def judged_chapter(chapter: Path, name: str, value: object, most: int = 8) -> str:
    """Return what is wrong with a chapter's answer to a bad parameter: it must stop, and say which value is bad."""
    import matplotlib
    from IPython.core.interactiveshell import InteractiveShell

    matplotlib.use("Agg")
    shown, shell = f"{chapter.stem} with {name}={value!r}", InteractiveShell()
    cells = [c for c in json.loads(chapter.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    for cell in cells[:most]:
        with alarm(_LONGEST), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = silent(partial(shell.run_cell, "".join(cell["source"])))[0]
        if error := outcome.error_in_exec or outcome.error_before_exec:  # type: ignore[attr-defined]
            text = str(error)
            return (
                "" if name in text.lower() or str(value) in text else f"{shown}: {type(error).__name__}: {text[:150]}"
            )
        if "parameters" in cell["metadata"].get("tags", []):
            shell.user_ns[name] = value
    return f"{shown}: goes on"


def campaign(short: bool) -> Iterator[Tally]:
    """Yield the tallies of command lines and of chapters."""
    tally = Tally("malformed input", "command lines")
    with tempfile.TemporaryDirectory() as place:
        for number, line in enumerate(command_lines(Path(place), short)):
            if not short or number % 4 == 0:
                tally.count(judged(line))
    yield tally
    tally = Tally("malformed input", "parameters of chapters")
    for case in notebook_cases(short):
        tally.count(judged_chapter(*case))
    yield tally
