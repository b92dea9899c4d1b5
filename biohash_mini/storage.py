"""Named arrays on disk: safetensors files that are written whole or not at all, and checked when read."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes, in the order of the names."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        a = np.ascontiguousarray(arrays[name])
        sha.update(f"{name}:{a.dtype.str}:{a.shape};".encode())
        sha.update(a.view(np.uint8).data if a.size else b"")
    return sha.hexdigest()


def write_atomically(path: str | os.PathLike, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary neighbour of ``path``, then rename it, so that no half file is ever seen."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode  # as the umask has it; a library may write with another
        write(temporary)
        temporary.chmod(mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _seal(arrays: Mapping[str, np.ndarray], about: str) -> str:
    return hashlib.sha256((digest(arrays) + about).encode()).hexdigest()


def save_arrays(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], **about: object) -> None:
    """Write arrays and a JSON-able description to one safetensors file with its own checksum."""
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    text = json.dumps(about)
    metadata = {"about": text, "sha256": _seal(arrays, text)}
    write_atomically(path, lambda part: save_file(arrays, part, metadata))


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
    if metadata.get("sha256") != _seal(arrays, metadata.get("about", "")):
        raise ValueError(f"{path} does not match its checksum: it was changed or not written by biohash_mini")
    return arrays, json.loads(metadata["about"])
