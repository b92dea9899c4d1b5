"""Work that is killed: each stage is begun again after every kill, and must end with what an undisturbed run has."""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import torch

from biohash_mini import BioHash, cli
from biohash_mini.codes import Codes
from biohash_mini.datasets import load, networks, sources
from biohash_mini.hashers import Hasher
from biohash_mini.reproduction import results, runner  # noqa: F401  # imported before a process loses its rights
from biohash_mini.storage import digest, load_arrays

from . import chapters, database

Tell = Callable[[object], None]  #: says that something is done, and by that promised to be kept


@dataclass(frozen=True)
class Stage:
    """One kind of work: ``work(folder, tell)`` does it, ``state(folder)`` is its result, of equal runs equal.

    ``check(folder, told)`` returns what is wrong with a folder at any moment, "" if nothing is; ``told`` has the lines
    that finished parts of the work have written.
    """

    name: str
    work: Callable[[Path, Tell], None]
    check: Callable[[Path, list[str]], str]
    state: Callable[[Path], object]
    kills: int = 15
    short: int = 3


def rows(n: int = 600, d: int = 30) -> np.ndarray:
    """Return data, shape (n, d)."""
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


# ---------------------------------------------------------------- a data set from a server, into the cache


def _idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


@cache
def archives() -> dict[str, bytes]:
    """Return the four archives of a small MNIST, by name, from the embedded sample."""
    data = load("mnist")
    X, labels = data.X.reshape(-1, 28, 28), data.labels
    files = _idx(X[:1500]), _idx(labels[:1500]), _idx(X[1500:2000]), _idx(labels[1500:2000])
    return {f"{n}.gz": gzip.compress(f, mtime=0) for n, f in zip(sources.SPECS["mnist"].members, files, strict=True)}


class _Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = archives()[self.path.strip("/")]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for start in range(0, len(body), 1 << 14):
            self.wfile.write(body[start : start + (1 << 14)])
            time.sleep(0.004)

    def log_message(self, *_: object) -> None: ...


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None: ...  # a client that was killed


@contextmanager
def server() -> Iterator[None]:
    """Serve the archives to this machine, slowly; the address stands in the environment."""
    with _Quiet(("127.0.0.1", 0), _Slow) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        os.environ["STRESS_SERVER"] = f"http://127.0.0.1:{http.server_port}"
        yield
        http.shutdown()


def register(folder: Path) -> str:
    """Make the small MNIST a data set of this process, with an empty cache in ``folder``; return its name."""
    os.environ.pop("BIOHASH_DATA", None)
    os.environ["BIOHASH_CACHE"] = str(folder / "cache")
    os.environ["TMPDIR"] = str(folder)
    raw = [gzip.decompress(body) for body in archives().values()]
    members = tuple(name.removesuffix(".gz") for name in archives())
    md5 = {name: hashlib.md5(body).hexdigest() for name, body in archives().items()}
    urls = {f"{os.environ['STRESS_SERVER']}/{name}": f"md5:{sum}" for name, sum in md5.items()}
    decode = sources.decode_mnist
    about = {"sha256": digest(decode(*raw)), "members": members, "decoders": (decode,), "urls": urls}
    sources.SPECS["stress"] = sources.Spec(sample="mnist.npz", sample_sha256="", **about)
    return "stress"


def fetch(folder: Path, tell: Tell) -> None:
    """Download the data set into the cache."""
    tell(sources.fetch(register(folder)).name)


def _cached(folder: Path, told: list[str]) -> str:
    name = register(folder)
    path = sources.cache_path(name)
    if told and not path.exists():
        return "a data set that was fetched is gone"
    if path.exists() and digest(load_arrays(path)[0]) != sources.SPECS[name].sha256:
        return "the cache holds other arrays"
    return ""


def _files(folder: Path, *names: str) -> list[str]:
    """Return the names below a folder, hidden ones too, but for those given."""
    return sorted(p.name for p in folder.rglob("*") if p.name not in names)


# ---------------------------------------------------------------- features of images


@cache
def pictures() -> np.ndarray:
    """Return images, uint8 of shape (96, 3, 32, 32)."""
    return np.random.default_rng(0).integers(0, 256, (96, 3, 32, 32), np.uint8)


def extract(folder: Path, tell: Tell, name: str = "x", **about: str) -> None:
    """Compute features of images, 24 batches."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 5, stride=3), torch.nn.ReLU(), torch.nn.Flatten())
    options = {"side": 64, "batch_size": 4, "also": {"labels": np.arange(96, dtype=np.uint8) % 10}, "verbose": False}
    networks.extract(pictures(), network, folder / f"{name}.safetensors", about=about, **options)
    tell("done")


def _features(folder: Path, told: list[str]) -> str:
    if told and not (folder / "x.safetensors").exists():
        return "features that were extracted are gone"
    for path in folder.rglob("*.safetensors"):
        if not path.parent.name.endswith(".part"):  # a temporary folder
            load_arrays(path)
    return ""


# ---------------------------------------------------------------- training, with a checkpoint after every batch


def train(folder: Path, tell: Tell) -> None:
    """Learn from a stream of 30 batches; go on from the last checkpoint, if there is one."""
    path, X = folder / "model.safetensors", rows()
    hasher = BioHash.load(path) if path.exists() else BioHash(4, activity=0.1)
    for start in range(getattr(hasher, "n_samples_seen_", 0), len(X), 20):
        hasher.partial_fit(X[start : start + 20]).save(path)
        tell(start + 20)


def _checkpoint(folder: Path, told: list[str]) -> str:
    if not told:
        return ""
    seen = BioHash.load(folder / "model.safetensors").n_samples_seen_
    return "" if seen >= int(told[-1]) else f"the checkpoint of {told[-1]} rows is gone: {seen}"


# ---------------------------------------------------------------- a model and its codes, written over and over


@cache
def models() -> dict[str, tuple[Hasher, Codes]]:
    """Return two fitted hashers with their codes, by digest."""
    fitted = [BioHash(16, activity=0.05, seed=seed, max_epochs=1).fit(rows()) for seed in (0, 1)]
    return {hasher.digest(): (hasher, hasher.encode(rows())) for hasher in fitted}


def save(folder: Path, tell: Tell) -> None:
    """Write one model with its codes over another, twelve times."""
    for _ in range(6):
        for name, (hasher, codes) in models().items():
            hasher.save(folder / "model.safetensors")
            codes.save(folder / "codes.safetensors", model=name)
            tell(name)


def pair(folder: Path, told: list[str]) -> str:
    """Return what is wrong with a model and codes side by side; codes that are refused as another's are not."""
    if not told:
        return ""
    name = Hasher.load(folder / "model.safetensors").digest()
    if name not in models():
        return "the model is neither of the two"
    try:
        codes = Codes.load(folder / "codes.safetensors", model=name)
    except ValueError as error:
        return "" if "another model" in str(error) else str(error)
    return "" if codes == models()[name][1] else "the codes are not those of the model"


# ---------------------------------------------------------------- lines of results


def record(seed: int) -> dict:
    """Return a record of a trial."""
    key = {"profile": "mini", "method": "LSH", "hash_length": 2, "seed": seed, "value": seed / 7}
    return {**key, "params": {"note": "x" * 400}}


def append(folder: Path, tell: Tell, first: int = 0, count: int = 60) -> None:
    """Append records, each once."""
    for seed in range(first, first + count):
        results.append("stress", record(seed), folder)
        tell(seed)


def recorded(folder: Path, told: list[str]) -> str:
    """Return what is wrong with the records: any that was told of must be there, and all must be as they were."""
    found = {r["seed"]: r for r in results.read("stress", folder)}
    lost = sorted({int(line) for line in told} - set(found))
    other = [seed for seed in found if found[seed] != record(seed)]
    return f"lost {lost}, changed {other}" if lost or other else ""


# ---------------------------------------------------------------- the runner and the command line


def run(folder: Path, tell: Tell) -> None:
    """Measure three trials of a table on the embedded sample."""
    words = ["run", "mnist", "--methods", "LSH", "--hash-lengths", "2", "4", "8", "--seeds", "0"]
    if cli.main([*words, "--results", str(folder)]) == 0:
        tell("done")


def _values(folder: Path) -> dict:
    return {results.key_of(r): r["value"] for r in results.read("mnist", folder)}


def _measured(folder: Path, told: list[str]) -> str:
    return "" if not told or len(_values(folder)) == 3 else "a finished run lacks records"


def command(folder: Path, tell: Tell) -> None:
    """Hash the rows of a file from the command line."""
    np.save(own := folder / f"{os.getpid()}.npy", rows())
    own.replace(folder / "x.npy")  # whole at once: another process may have the last one mapped
    files = ["--model", str(folder / "model.safetensors"), "--codes", str(folder / "codes.safetensors")]
    if cli.main(["hash", str(folder / "x.npy"), "--hash-length", "8", *files]) == 0:
        tell("done")


def _answers(folder: Path, told: list[str]) -> str:
    if not told:
        return ""
    hasher = Hasher.load(folder / "model.safetensors")
    codes = Codes.load(folder / "codes.safetensors", model=hasher.digest())
    return "" if codes == hasher.encode(rows()) else "the codes are not those of the model"


def _digest_of(name: str, folder: Path) -> str:
    return digest(load_arrays(folder / name)[0])


#: What is killed.
STAGES = [
    Stage("download into the cache", fetch, _cached, lambda f: _files(f / "cache")),
    Stage("feature extraction", extract, _features, partial(_digest_of, "x.safetensors")),
    Stage("training with checkpoints", train, _checkpoint, partial(_digest_of, "model.safetensors"), kills=20),
    Stage("saving a model and its codes", save, pair, lambda f: _files(f), kills=20),
    Stage("writing results", append, recorded, lambda f: (f / "stress.jsonl").read_bytes(), kills=20),
    Stage("a run of a table", run, _measured, _values, kills=8, short=0),
    Stage("the command hash", command, _answers, partial(_digest_of, "codes.safetensors")),
    Stage("export to Milvus", database.export, database.wrong, database.content, short=2),
    Stage("the book's build", chapters.execute, chapters.wrong, chapters.outputs, kills=12, short=0),
]


def perform(name: str, folder: Path, told: Path, address: str) -> None:
    """Do the work of a stage in this process, in silence, and note in ``told`` what is done."""
    os.environ["STRESS_SERVER"] = address  # processes are copies of one that may be older than the server
    handle = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    silence()
    stage = next(stage for stage in STAGES if stage.name == name)
    os.write(handle, b"begun\n")
    stage.work(folder, lambda word: os.write(handle, f"{word}\n".encode()))


def silence() -> None:
    """Let what this process prints go nowhere, and take one thread."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
