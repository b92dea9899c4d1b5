"""Named arrays on disk: safetensors files that are written whole or not at all, and checked when read."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

try:
    import fcntl
except ImportError:  # a system without it, where what a killed process leaves behind stays
    fcntl = None


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes, in the order of the names."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        a = np.ascontiguousarray(arrays[name])
        sha.update(f"{name}:{a.dtype.str}:{a.shape};".encode())
        sha.update(a.view(np.uint8).data if a.size else b"")
    return sha.hexdigest()


def as_json(value: object) -> object:
    """Return a numpy scalar or array as the numbers that JSON has; TypeError for anything else."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored")


def write_atomically(path: str | os.PathLike, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file, then rename it to ``path``, so that no half file is ever seen.

    The file is on disk before the rename. A link stays, and what it leads to is written. The temporary file stands in a
    folder beside it that is this call's alone, and is locked as long as the call lives: folders without a lock are what
    killed processes have left, and are removed.
    """
    path = _place(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(path)
    folder, handle = _locked_folder(path)
    temporary = folder / path.name
    try:
        temporary.touch()
        mode = temporary.stat().st_mode  # as the umask has it; a library may write with another
        write(temporary)
        temporary.chmod(mode)
        _to_disk(temporary)
        os.replace(temporary, path)
        with contextlib.suppress(OSError):  # not every system opens folders
            _to_disk(path.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _place(path: str | os.PathLike) -> Path:
    """Return where a file is to stand, links followed; a folder or a device that is there would be lost."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file to write to")
    if place.exists() and not place.is_file():
        raise OSError(f"{path} is a device or a pipe, not a file to write to")
    return place


def check_writable(path: str | os.PathLike) -> None:
    """Raise OSError unless a file can be written at ``path``; what stands there stays as it is."""
    path = _place(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def _locked_folder(path: Path) -> tuple[Path, int | None]:
    """Return a new temporary folder beside ``path`` and the handle of its lock, where the system has locks."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        if not fcntl:
            return folder, None
        with contextlib.suppress(FileNotFoundError):  # another call took it for stale before it was locked
            handle = os.open(folder, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if folder.exists():
                return folder, handle
            os.close(handle)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale(path: Path) -> None:
    """Remove temporary folders of ``path`` that no living process has locked."""
    for folder in path.parent.glob(f".{_literal(path.name)}.*.part") if fcntl else ():
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _literal(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _seal(arrays: Mapping[str, np.ndarray], about: str) -> str:
    return hashlib.sha256((digest(arrays) + about).encode()).hexdigest()


def save_arrays(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], **about: object) -> None:
    """Write arrays and a JSON-able description to one safetensors file with its own checksum."""
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    text = json.dumps(about, default=as_json)
    metadata = {"about": text, "sha256": _seal(arrays, text)}

    def write(part: Path) -> None:
        try:
            save_file(arrays, part, metadata)
        except SafetensorError as error:  # a full disk, for one
            raise OSError(f"{path} cannot be written ({error})") from None

    write_atomically(path, write)


def load_arrays(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict]:
    """Return the arrays and the description of a file of :func:`save_arrays`; ValueError if it is not intact."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        with safe_open(path, "numpy") as f:
            arrays = {name: f.get_tensor(name) for name in f.keys()}
            metadata = f.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is truncated or not a safetensors file ({error})") from None
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{path} holds a type of numbers that numpy has not ({error})") from None
    if metadata.get("sha256") != _seal(arrays, metadata.get("about", "")):
        raise ValueError(f"{path} does not match its checksum: it was changed or not written by biohash_mini")
    about = json.loads(metadata["about"])
    if not isinstance(about, dict):
        raise ValueError(f"{path} has a description that is none: {about!r}")
    return arrays, about
