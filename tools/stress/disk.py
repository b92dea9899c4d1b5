"""Disks that are full or may not be written, processes that share files, and files that were damaged."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from biohash_mini import HammingIndex, cli
from biohash_mini.codes import Codes
from biohash_mini.datasets import load, samples, sources, tasks
from biohash_mini.export import export
from biohash_mini.hashers import Hasher
from biohash_mini.reproduction import results
from biohash_mini.storage import digest, load_arrays

from . import Tally, database, jobs
from .faults import finish, problem, start

ROOM = 2000  # bytes that fit on a full disk
NOBODY = 65534

Trial = Callable[[Path], object]  #: work that writes below a folder


def _command(*words: str) -> Trial:
    def trial(folder: Path) -> None:
        error = folder.parent / "stderr"
        os.dup2(os.open(error, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        code = cli.main([word.format(folder, folder.parent) for word in words])
        lines = error.read_text().splitlines()
        if code != 2 or len([line for line in lines if line.startswith("biohash: ")]) != 1:
            raise AssertionError(f"it ended with {code} and said {lines}")
        raise OSError(lines[-1])

    return trial


def _run(folder: Path) -> None:
    _command("run", "mnist", "--methods", "LSH", "--hash-lengths", "2", "4", "8", "--seeds", "0", "--results", "{}")(
        folder
    )


#: What is tried where nothing can be written.
TRIALS: dict[str, Trial] = {
    "a model": lambda folder: next(iter(jobs.models().values()))[0].save(folder / "model.safetensors"),
    "codes": lambda folder: next(iter(jobs.models().values()))[1].save(folder / "codes.safetensors"),
    "an index": lambda folder: HammingIndex(next(iter(jobs.models().values()))[1]).save(folder / "index.safetensors"),
    "a result": lambda folder: [results.append("stress", jobs.record(seed), folder) for seed in range(20)],
    "features": lambda folder: jobs.extract(folder, lambda _: None),
    "a data set": lambda folder: jobs.fetch(folder, lambda _: None),
    "biohash hash": _command("hash", "{1}/x.npy", "--model", "{0}/m.safetensors", "--codes", "{0}/c.safetensors"),
    "biohash run": _run,
    "an export to Milvus": lambda folder: database.export(folder, lambda _: None),
    "an export to a file": lambda folder: export(database.codes(), "npz", folder / "codes.npz"),
}


def refused(name: str, folder: Path, answer: Path, full: bool, address: str) -> None:
    """Try to write where that is impossible, and note in ``answer`` what came of it."""
    os.environ["STRESS_SERVER"] = address
    jobs.silence()
    jobs.models()
    load("mnist")  # and so all that is imported late
    if full:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
    elif os.getuid() == 0:  # to whom every folder is open
        os.setresuid(NOBODY, NOBODY, NOBODY)
    try:
        TRIALS[name](folder)
        said = ["nothing", ""]
    except OSError as error:
        said = ["OSError", str(error)]
    except BaseException as error:
        said = [type(error).__name__, str(error)]
    answer.write_text(json.dumps(said))


def unwritable(short: bool) -> Iterator[Tally]:
    """Yield how often a full disk and a read-only folder gave one clear error, and left what was there."""
    for kind in ("full disk", "read-only folder"):
        tally = Tally("faults", kind)
        for name in [*TRIALS][:3] if short else TRIALS:
            with tempfile.TemporaryDirectory() as place:
                folder, answer = Path(place) / "folder", Path(place) / "answer"
                Path(place).chmod(0o777)
                folder.mkdir()
                np.save(Path(place) / "x.npy", jobs.rows())
                before = {p: p.write_bytes(b"as it was") for p in (folder / "kept",)}
                folder.chmod(0o777 if kind == "full disk" else 0o555)
                address = os.environ["STRESS_SERVER"]
                wrong = finish(start(refused, name, folder, answer, kind == "full disk", address))
                said = json.loads(answer.read_text()) if answer.exists() else ["no answer", ""]
                folder.chmod(0o777)
                if not wrong and (said[0] != "OSError" or not said[1]):
                    wrong = f"{said[0]}: {said[1]}"
                left = [p.name for p in folder.rglob("*.safetensors") if p not in before and problem(load_arrays, p)]
                tally.count(f"{kind}, {name}: {wrong}, left {left}" if wrong or left else "")
        yield tally


# ---------------------------------------------------------------- two processes at once


def append_half(folder: Path, first: int) -> None:
    """Append records, of which another process appends some too."""
    jobs.silence()
    jobs.append(folder, lambda _: None, first, 40)


def share(name: str, folder: Path, address: str) -> None:
    """Do the work of a stage in a folder that another process uses."""
    jobs.perform(name, folder, folder.parent / f"{os.getpid()}.told", address)


def shared(short: bool) -> Iterator[Tally]:
    """Yield how often two processes that wrote to one place both ended well, and readers beside them saw wholes."""
    stages = {stage.name: stage for stage in jobs.STAGES if stage.short or not short}
    for alone in ("training with checkpoints", "export to Milvus", "the book's build"):  # which have one writer
        stages.pop(alone, None)
    tally = Tally("faults", "two processes at once")
    for name, stage in stages.items():
        for _ in range(1 if short or name == "a run of a table" else 4):
            with tempfile.TemporaryDirectory() as place:
                (folder := Path(place) / "folder").mkdir()
                both = [start(share, name, folder, os.environ["STRESS_SERVER"]) for _ in range(2)]
                wrong = ""
                while any(process.is_alive() for process in both):
                    wrong = wrong or (problem(_seen, folder) if name.startswith("saving") else "")
                wrong = "; ".join(filter(None, [wrong, *map(finish, both)])) or problem(stage.check, folder, [])
                tally.count(f"{name}: {wrong}" if wrong else "")
    with tempfile.TemporaryDirectory() as place:
        both = [start(append_half, Path(place), first) for first in (0, 20)]
        wrong = "".join(map(finish, both)) or problem(jobs.recorded, Path(place), [str(i) for i in range(60)])
        tally.count(wrong)
    yield tally


def _seen(folder: Path) -> str:
    """Return what is wrong with a model that is being written by others."""
    path = folder / "model.safetensors"
    return "" if not path.exists() or Hasher.load(path).digest() in jobs.models() else "a model of nobody"


# ---------------------------------------------------------------- damage


def damages(whole: bytes, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield the content of a file after one damage of each kind."""
    at, bit = rng.randrange(len(whole)), 1 << rng.randrange(8)
    yield "truncated", whole[:at]
    yield "bit flipped", whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
    head = rng.randrange(min(len(whole), 400))
    yield "bit of the header flipped", whole[:head] + bytes([whole[head] ^ bit]) + whole[head + 1 :]
    end = min(len(whole), at + 512)
    yield "block of zeros", whole[:at] + bytes(end - at) + whole[end:]
    yield "longer", whole + whole[:at]


def _kinds(folder: Path) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """Return a file of each kind, and how it is read: what comes out must not be wrong."""
    (name, (hasher, codes)) = next(iter(jobs.models().items()))
    hasher.save(folder / "model.safetensors")
    codes.save(folder / "codes.safetensors", model=name)
    jobs.extract(folder, lambda _: None, "cifar10-alexnet-pooled", network="alexnet", layer="pooled")
    jobs.register(folder)
    finish(start(share, "download into the cache", folder, os.environ["STRESS_SERVER"]))
    shutil.copy(sources.cache_path("stress"), folder)
    shutil.copy(samples.FOLDER / "glove.npz", folder)
    return {
        "model": (folder / "model.safetensors", lambda p: Hasher.load(p).digest()),
        "codes": (folder / "codes.safetensors", lambda p: digest({"array": Codes.load(p, model=name).array})),
        "features": (folder / "cifar10-alexnet-pooled.safetensors", partial(_full, "cifar10-alexnet")),
        "data set": (folder / "stress.safetensors", partial(_full, "stress")),
        "sample": (folder / "glove.npz", _sample),
    }


def _full(name: str, path: Path) -> str:
    """Return the checksum of a whole data set that stands in a folder of its own."""
    os.environ["BIOHASH_CACHE"] = str(path.parent)
    return sources.verify(name) and digest({"X": tasks.load(name, "full").X})


def _sample(path: Path) -> str:
    """Return the checksum of an embedded sample that stands in another folder."""
    tasks.FOLDER, before = path.parent, tasks.FOLDER
    try:
        return digest({"X": tasks.load(path.stem).X})
    finally:
        tasks.FOLDER = before


def damaged(short: bool, seed: int = 0) -> Iterator[Tally]:
    """Yield how often a damaged file, or one in the place of another, was refused by name, and never used."""
    rng, tally = random.Random(seed), Tally("faults", "damaged and swapped files")
    with tempfile.TemporaryDirectory() as place:
        kinds = _kinds(Path(place))
        for kind, (path, read) in kinds.items():
            whole, want = path.read_bytes(), read(path)
            for _ in range(2 if short else 4 if kind == "sample" else 25):
                for damage, content in damages(whole, rng):
                    path.write_bytes(content)
                    tally.count(_refusal(f"{kind}, {damage}", path, read, want if content != whole else None))
            path.write_bytes(whole)
        for kind, (path, read) in kinds.items():
            for other, (source, _) in kinds.items():
                if other != kind:
                    (folder := Path(place) / "swapped").mkdir(exist_ok=True)
                    swapped = shutil.copy(source, folder / path.name)
                    tally.count(_refusal(f"{other} for {kind}", Path(swapped), read, None))
    yield tally


def _refusal(words: str, path: Path, read: Callable[[Path], object], want: object) -> str:
    """Return what is wrong, unless reading raises a ValueError that names the file, or gives what was written."""
    try:
        found = read(path)
    except ValueError as error:
        return "" if path.name in str(error) else f"{words}: {error}"
    except Exception as error:
        return f"{words}: {type(error).__name__}: {error}"
    return "" if found == want else f"{words}: used"


def campaign(short: bool) -> Iterator[Tally]:
    """Yield the tallies of all of them."""
    with jobs.server():
        for part in (unwritable, shared, damaged):
            yield from part(short)
