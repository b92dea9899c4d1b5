"""Inputs that mean nothing: each must end at once in an error that names the problem, never in an answer.

A case is what is called and the words of which the message must hold one. In the library an error is a ValueError, or
an OSError for a file that is not there, of one line; on the command line, a line on standard error and exit code 2.
"""

from __future__ import annotations

import inspect
import io
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from biohash_mini import METHODS, HammingIndex, average_precision, circle, datasets, mean_average_precision, recall
from biohash_mini.codes import Codes, DenseCodes, SparseCodes
from biohash_mini.hashers import Hasher
from biohash_mini.hashers.ranges import RANGES
from biohash_mini.metrics import Truth, functional_smoothness
from biohash_mini.reproduction import results
from biohash_mini.storage import load_arrays, save_arrays

from . import Tally, jobs

SECONDS = 30  # after which a case hangs
nan, inf = float("nan"), float("inf")


class Case(NamedTuple):
    """One malformed input."""

    words: str  #: what it is, for the list of problems
    call: Callable[[], object]
    named: tuple[str, ...]  #: of which the message must hold one


# ---------------------------------------------------------------- hashers

_SMALL: dict[str, dict[str, Any]] = {
    "BioConvHash": {"image_shape": (1, 5, 6), "kernel_sizes": (2,), "n_filters": 12, "channel_winners": 3}
    | {"pool": 2, "stride": 1, "n_patches": 500, "filter_epochs": 1, "max_epochs": 1},
    "DH": {"max_epochs": 1},
    "GreedyHash": {"max_epochs": 1},
    "UH-BNN": {"n_iterations": 20},
}


def make(name: str, **given: object) -> Hasher:
    """Return a small hasher of a method."""
    return METHODS[name](**{"hash_length": 4, **_SMALL.get(name, {}), **given})  # type: ignore[arg-type]


def _at(row: int, column: int, value: float) -> np.ndarray:
    X = jobs.rows(60).copy()
    X[row, column] = value
    return X


def bad_arrays() -> dict[str, object]:
    """Return what is no matrix of finite real numbers, by its name."""
    X = jobs.rows(60)
    return {
        "NaN": _at(3, 5, nan),
        "infinity": _at(59, 0, inf),
        "minus infinity": _at(0, 29, -inf),
        "too large for float32": X.astype(np.float64) * 1e300,
        "a vector": X[0],
        "three dimensions": X.reshape(60, 5, 6),
        "five dimensions": X.reshape(6, 10, 1, 5, 6),
        "no dimension": np.float32(3),
        "no rows": X[:0],
        "no columns": X[:, :0],
        "objects": X.astype(object),
        "texts": X.astype(str),
        "bytes": X.astype("S4"),
        "complex numbers": X + 1j,
        "dates": X.astype("datetime64[s]"),
        "a record array": np.zeros(60, dtype=[("a", "f4"), ("b", "f4")]),
        "a sparse matrix": sp.csr_array(X),
        "rows of different length": [[1.0, 2.0], [3.0]],
        "nothing": None,
        "a dictionary": {"X": X},
        "a text": "vectors.npy",
        "a set": {1.0, 2.0},
        "a function": len,
        "complex tensor": torch.from_numpy(X) + 1j,
        "NaN tensor": torch.full((60, 30), nan),
        "a sparse tensor": torch.from_numpy(X).to_sparse(),
    }


@cache
def _fitted(name: str) -> Hasher:
    return make(name).fit(jobs.rows(60))


def arrays(short: bool) -> Iterator[Case]:
    """Yield bad arrays for every method, to learn from and to encode."""
    for name in [*METHODS][::6] if short else METHODS:
        for words, X in bad_arrays().items():
            yield Case(f"{name}.fit of {words}", partial(make(name).fit, X), ("X",))
            yield Case(f"{name}.encode of {words}", partial(_fitted(name).encode, X), ("X",))
            if hasattr(make(name), "partial_fit"):
                yield Case(f"{name}.partial_fit of {words}", partial(make(name).partial_fit, X), ("X",))  # type: ignore[attr-defined]
        other = jobs.rows(60)[:, :29]
        yield Case(f"{name}.encode of other features", partial(_fitted(name).encode, other), ("features",))
        yield Case(f"{name}.encode before fit", partial(make(name).encode, jobs.rows(5)), ("fit",))
        for k in (0, -1, 2.5, "4", nan, True, 10**9):
            yield Case(f"{name}.encode to {k!r}", partial(_fitted(name).encode, jobs.rows(5), k), ("hash_length",))


_TEXT = [None, 3, "", "no such thing", ["mean"]]
_BAD: dict[str, list] = {
    "an integer": [None, "3", 2.5, nan, True, [1], np.array([1, 2]), 1j, {}],
    "an integer of at least 1": [None, "3", 2.5, nan, True, [1], 0, -1, 10**12],
    "a finite number": [None, "0.1", nan, inf, -inf, True, {}, 1j, "a"],
    "True or False": [None, 1, 0, "yes", [True], 0.5],
    "a text": [None, 3, "gpu", "cuda:99", ["cpu"]],
}
_OUTSIDE = {"activity": [0, -0.1, 1.5], "fan_in": [0, 2], "p": [0.5, -1], "momentum": [1, -0.1], "percentile": [50, -1]}
_OUTSIDE |= {"seed": [1 << 64, -(1 << 64)]}


def _outside(name: str) -> list:
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    words = RANGES[name].words
    numbers = {"at least 1": [0, -1, 10**12], "not be negative": [-1], "be positive": [0, -1.0]}
    return next((values for key, values in numbers.items() if key in words), [])


def parameters(short: bool) -> Iterator[Case]:
    """Yield bad values of every parameter of every method."""
    for name in [*METHODS][::6] if short else METHODS:
        defaults = inspect.signature(METHODS[name]).parameters
        for given in (g for g in make(name).get_params() if g in RANGES):
            for value in [*_BAD.get(RANGES[given].kind, _TEXT), *_outside(given)]:
                if value is None and defaults[given].default is None:
                    continue
                fit = partial(_fit_with, name, {given: value})
                yield Case(f"{name} with {given}={value!r}", fit, (given,))
    shapes: dict[str, list] = {
        "kernel_sizes": [(), (0,), 3, (2.5,), "3", None, (99,), (2, -1), {2}],
        "image_shape": [(0, 5, 6), (5, 6), "x", (1, 5, 7), (1, 5.0, 6), 30],
        "channel_winners": [13],
        "delta": [(0.1, 0.2), "x", (nan,), [None]],
        "n_filters": [10**10],
    }
    for given, values in shapes.items():
        for value in values:
            words = (given, "kernel", "image")
            yield Case(f"BioConvHash with {given}={value!r}", partial(_fit_with, "BioConvHash", {given: value}), words)


def _fit_with(name: str, given: dict) -> object:
    return make(name, **given).fit(jobs.rows(60))


# ---------------------------------------------------------------- codes, search, metrics, circle, data


def functions(short: bool) -> Iterator[Case]:
    """Yield bad arguments of the functions of the library."""
    codes, dense = next(iter(jobs.models().values()))[1], DenseCodes(np.zeros((5, 2), np.uint8), 16)
    few, index, labels = codes[:5], HammingIndex(codes), np.arange(600) % 3
    for top in (0, -1, 2.5, nan, "3", None, True, [3]):
        yield Case(f"search of top={top!r}", partial(index.search, few, top), ("top",))
        yield Case(f"nearest of top={top!r}", partial(datasets.nearest, np.eye(3), np.eye(3), top), ("top",))
    for radius in (-1, 2.5, nan, "3", None, True):
        yield Case(f"range_search of radius={radius!r}", partial(index.range_search, few, radius), ("radius",))
    for other in (dense, codes[:0].array, None, "codes", SparseCodes(np.zeros((2, 1), int), 320)):
        yield Case(
            f"search with {type(other).__name__}", partial(index.search, other, 3), ("compare", "Codes", "codes")
        )
        yield Case(f"distances to {type(other).__name__}", partial(few.hamming, other), ("compare", "Codes", "codes"))
        yield Case(f"adding {type(other).__name__}", partial(index.add, other), ("compare", "Codes", "codes"))
    for units in ([[0, 0]], [[-1, 2]], [[5, 400]], [[0.5, 1]], [1, 2], [[]], [["a"]], None):
        yield Case(f"sparse codes of {units!r}", partial(SparseCodes, np.array(units), 320), ("active units",))
    for m in (0, -8, 8, 17, 2.5, "16", None):
        yield Case(
            f"dense codes of {m!r} bits", partial(DenseCodes, np.zeros((3, 2), np.uint8), m), ("bits", "n_units")
        )
        yield Case(f"sparse codes of {m!r} units", partial(SparseCodes, [[9, 18]], m), ("units", "n_units"))
    for k in (0, -1, 7, 2.5, "2", None):
        yield Case(f"top_k of {k!r}", partial(SparseCodes.top_k, torch.eye(6), k), ("hash_length",))
    for matrix in ([[0, 2]], [[nan, 1]], [0, 1], [["a", "b"]], None, [[0.5]], np.zeros((2, 2, 2))):
        yield Case(f"codes of {matrix!r}", partial(Codes.from_matrix, matrix), ("matrix",))
    score = partial(mean_average_precision, few, codes, labels[:5], labels)
    for at in (0, -1, 2.5, nan, "3", True, [3]):
        yield Case(f"mAP at {at!r}", partial(score, at), ("at",))
    for given in ({"ties": "none"}, {"ties": None}, {"divisor": 3}, {"truth": Truth()}, {"ties": ["best"]}):
        yield Case(f"mAP with {given}", partial(score, **given), (*given,))  # type: ignore[arg-type]
    for bad in (
        labels[:4],
        labels[:, None],
        None,
        3,
        "abc",
        labels.astype(float) * nan,
        labels.astype(str),
        [[1], [2, 3]],
    ):
        yield Case(
            f"mAP of labels {bad!r:.30}", partial(mean_average_precision, few, codes, labels[:5], bad), ("label",)
        )
    for ids in ([[-1]], [[0.5]], [["a"]], [0], [[True]], None):
        truth = partial(_with_neighbours, few[:1], codes, ids)
        yield Case(f"mAP of neighbours {ids!r}", truth, ("neighbours", "row numbers", "label"))
        yield Case(f"mAP without {ids!r}", partial(_without, few[:1], codes, ids), ("exclude", "row numbers"))
        yield Case(f"recall of {ids!r}", partial(recall, [[0]], ids), ("truth", "row numbers"))
    for pair in (([nan, 1.0], [1, 0]), ([1.0], [1, 0]), ([], []), (None, None), (["a"], [1]), ([1j], [1])):
        yield Case(f"average precision of {pair!r}", partial(average_precision, *pair), ("distances", "relevant"))
    for X in (np.zeros((3, 2)), np.full((5, 2), nan), np.zeros(5), None, np.full((5, 2), "a")):
        yield Case(f"smoothness of {X!r:.40}", partial(functional_smoothness, X, few), ("X", "rows"))
    for fraction in (0, -0.1, 1.5, nan, "a", None):
        smooth = partial(functional_smoothness, np.eye(5), few, fraction)
        yield Case(f"smoothness of fraction={fraction!r}", smooth, ("fraction",))
    for sigma in (0, -1, nan, "a", [1.0], 1j):
        yield Case(f"circle of sigma={sigma!r}", partial(circle.optimal_angles, 4, sigma), ("sigma",))
        yield Case(f"energy of sigma={sigma!r}", partial(circle.energy, [0.0, 1.0], sigma), ("sigma",))
    for n in (0, -1, 2.5, nan, "4", None):
        yield Case(f"circle of {n!r} units", partial(circle.optimal_angles, n, 0.5), ("n_units",))
        yield Case(f"circle of length {n!r}", partial(circle.kl_divergence, 0.5, n, 4), ("hash_length",))
        yield Case(f"false negatives of {n!r} units", partial(circle.false_negative_rate, 0.3, n, 1), ("n_units",))
    yield Case("circle of a billion units", partial(circle.optimal_angles, 10**9, 0.5), ("n_units",))
    for angles in ([nan, 0.0], [inf], [], ["a"], None, [1j]):
        yield Case(f"energy of angles {angles!r}", partial(circle.energy, angles, 0.5), ("angles",))
    for theta in (-0.1, 4.0, nan, "a", None):
        yield Case(
            f"false negatives at {theta!r}", partial(circle.false_negative_rate, theta, 5, 1), ("theta", "angle")
        )
    sample = datasets.load("mnist")
    for seed in (-1, 0.5, "zero", None, True, nan, [1]):
        yield Case(f"task of seed={seed!r}", partial(sample.retrieval_task, seed), ("seed",))
        yield Case(f"words of seed={seed!r}", partial(sample.word_task, seed), ("seed",))
        yield Case(f"split of seed={seed!r}", partial(sample.retrieval_task().validation, 10, seed), ("seed",))
    for count in (0, -1, 10**6, 2.5, nan, "3", True):
        yield Case(f"{count!r} queries", partial(sample.retrieval_task, 0, count), ("per class",))
        yield Case(f"{count!r} words", partial(sample.word_task, 0, count), ("size",))
    for name in ("imagenet", "", None, 3, ["mnist"], "../mnist", "MNIST"):
        yield Case(f"data set {name!r}", partial(datasets.load, name), ("data set",))
        yield Case(f"profile {name!r}", partial(datasets.load, "mnist", name), ("profile",))
    for pair in ((np.eye(3), np.eye(4)), (np.eye(3)[0], np.eye(3)), (np.eye(3) * nan, np.eye(3)), (None, np.eye(3))):
        yield Case(f"nearest of {pair!r:.40}", partial(datasets.nearest, *pair, 1), ("queries",))
    for metric in ("manhattan", None, 2, ""):
        near = partial(datasets.nearest, np.eye(3), np.eye(3), 1, metric)
        yield Case(f"nearest by {metric!r}", near, ("metric",))


def _with_neighbours(queries: Codes, database: Codes, ids: object) -> float:
    return mean_average_precision(queries, database, truth=Truth.of_neighbours(ids))  # type: ignore[arg-type]


def _without(queries: Codes, database: Codes, ids: Any) -> float:
    rows = None if ids is None else ids[0] if isinstance(ids[0], list) else ids[0:0]
    truth = Truth.of_neighbours([[0]], exclude=[-5] if rows is None else rows)
    return mean_average_precision(queries, database, truth=truth)


# ---------------------------------------------------------------- files


def files(short: bool) -> Iterator[Case]:
    """Yield files that are no models, codes or records, also such as have the right checksum and the wrong content."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        contents = {"empty": b"", "text": b"hello\n" * 40, "zeros": bytes(4096), "zip": b"PK\x03\x04" + bytes(99)}
        contents |= {"json": b'{"hasher": "BioHash"}', "npy": b"\x93NUMPY\x01\x00" + bytes(90), "huge": b"\xff" * 64}
        for words, content in contents.items():
            (path := folder / f"{words}.safetensors").write_bytes(content)
            for read in (Hasher.load, Codes.load, HammingIndex.load, load_arrays):
                yield Case(f"{read.__qualname__} of {words}", partial(read, path), (path.name,))
        for path in (folder / "absent", folder, Path(place, "a" * 300), Path("/dev/null")):
            for read in (Hasher.load, Codes.load, HammingIndex.load):
                yield Case(f"{read.__qualname__} of {path.name[:20]}", partial(read, path), (path.name[:20], "name"))
        for name in ["BioHash"] if short else METHODS:
            yield from _hostile_models(folder, name)
        yield from _hostile_codes(folder)
        for line, words in _lines().items():
            yield Case(f"a record {line[:40]}", partial(_read_line, folder, line), (words,))


def _hostile_models(folder: Path, name: str) -> Iterator[Case]:
    """Yield models with a right checksum: strange names, wrong shapes and types, absurd sizes."""
    _fitted(name).save(folder / "good")
    arrays, about = load_arrays(folder / "good")
    params, state = about["params"], about["state"]
    first = next(iter(arrays))
    variants: dict[str, tuple[dict, dict]] = {
        f"{a} as {kind}": ({**arrays, a: v}, about)
        for a in arrays
        for kind, v in {
            "float64": arrays[a].astype(np.float64),
            "NaN": np.full_like(arrays[a], nan),
            "other shape": np.zeros((3, *arrays[a].shape), np.float32),
            "empty": np.zeros((0,), np.float32),
        }.items()
    }
    for strange in ("fit", "encode", "_check_params", "__class__", "n_units", "save"):
        variants[f"{strange} as state"] = (arrays, {**about, "state": {**state, strange: 3}})
        variants[f"{strange} as array"] = ({**arrays, strange: arrays[first]}, about)
    for value in (0, -1, 10**12, "4", 2.5, None, [4], {"a": 1}):
        variants[f"hash_length {value!r}"] = (arrays, {**about, "params": {**params, "hash_length": value}})
        variants[f"n_features_in_ {value!r}"] = (arrays, {**about, "state": {**state, "n_features_in_": value}})
    for hasher in ("Hasher", "Stored", "os.system", "", None, 3, ["BioHash"], "biohash"):
        variants[f"hasher {hasher!r}"] = (arrays, {**about, "hasher": hasher})
    variants |= {f"no {key}": (arrays, {k: v for k, v in about.items() if k != key}) for key in about}
    variants |= {f"no {a}": ({k: v for k, v in arrays.items() if k != a}, about) for a in arrays}
    variants |= {f"{key} a list": (arrays, {**about, key: [1]}) for key in ("params", "state")}
    for i, (words, (content, facts)) in enumerate(variants.items()):
        save_arrays(path := folder / f"model{i}.safetensors", content, **facts)
        yield Case(f"a model {name} with {words}", partial(Hasher.load, path), (path.name,))


def _hostile_codes(folder: Path) -> Iterator[Case]:
    next(iter(jobs.models().values()))[1].save(folder / "good")
    arrays, about = load_arrays(folder / "good")
    array = arrays["array"]
    variants: list[tuple[str, dict, dict]] = [
        (f"{key} {value!r}", arrays, {**about, key: value})
        for key, values in {"n_units": [0, -1, 5, "320", None, 2.5, True], "codes": ["Codes", None, 3, "fit"]}.items()
        for value in values
    ]
    wrong = {"float": array.astype(np.float32), "flat": array.ravel(), "empty": array[:, :0], "equal": array * 0}
    variants += [(f"an array {kind}", {"array": a}, about) for kind, a in wrong.items()]
    variants += [("another array", {"other": array}, about), ("two arrays", {**arrays, "b": array}, about)]
    variants += [
        ("bits past the last", {"array": np.full((3, 2), 255, np.uint8)}, {"codes": "DenseCodes", "n_units": 9})
    ]
    for i, (words, content, facts) in enumerate(variants):
        save_arrays(path := folder / f"codes{i}.safetensors", content, **facts)
        for read in (Codes.load, HammingIndex.load):
            yield Case(f"codes with {words}", partial(read, path), (path.name,))


def _lines() -> dict[str, str]:
    whole = {"profile": "full", "method": "LSH", "hash_length": 2, "seed": 0, "value": 1.0}
    lines = dict.fromkeys(["<<<<<<< HEAD", "{", "[1, 2]", "null", '"a"', "{}", "\x00\x01", "[" * 5000], "line 1")
    for key in whole:
        for value in (None, [1], {}, "x" if key not in ("profile", "method") else 3, True, nan):
            lines[str({**whole, key: value}).replace("'", '"').replace("None", "null").replace("True", "true")] = (
                "line 1"
            )
    return lines


def _read_line(folder: Path, line: str) -> None:
    """Read a bad line before a good one; the warning is the error."""
    (folder / "bad.jsonl").write_text(f"{line}\n")
    results.append("bad", jobs.record(1), folder / "elsewhere")
    with open(folder / "bad.jsonl", "ab") as file:
        file.write((folder / "elsewhere" / "bad.jsonl").read_bytes())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rest = results.read("bad", folder)
    if [r["seed"] for r in rest] != [1]:
        raise AssertionError(f"the rest is not used: {rest}")
    raise ValueError(str(said[0].message) if len(said) == 1 else f"{len(said)} warnings")


SOURCES: dict[str, Callable[[bool], Iterator[Case]]] = {
    "arrays": arrays,
    "parameters": parameters,
    "functions": functions,
    "files": files,
}


# ---------------------------------------------------------------- the judgement


@contextmanager
def alarm(seconds: int = SECONDS) -> Iterator[None]:
    """Raise TimeoutError where something takes too long."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"no answer after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judged(case: Case) -> str:
    """Return what is wrong with the answer to a malformed input; "" for an error that names the problem in a line."""
    try:
        with alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = case.call()
    except TimeoutError as error:
        return f"{case.words}: {error}"
    except (ValueError, OSError) as error:
        text = str(error)
        clear = text and "\n" not in text and len(text) < 500 and any(word in text for word in case.named)
        return "" if clear else f"{case.words}: unclear: {text[:200]!r}"
    except BaseException as error:
        return f"{case.words}: {type(error).__name__}: {str(error)[:200]}"
    return f"{case.words}: answered {found!r:.80}"


def campaign(short: bool) -> Iterator[Tally]:
    """Yield the tally of every source of malformed input."""
    from . import words  # which needs this module

    for name, source in SOURCES.items():
        tally = Tally("malformed input", name)
        for case in source(short):
            tally.count(judged(case))
        yield tally
    yield from words.campaign(short)


def silent(call: Callable[[], object]) -> tuple[object, str, str]:
    """Return what a call returns, prints, and prints as errors."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        found = call()
    return found, out.getvalue(), err.getvalue()
