"""Codes for the engines that other people run: a database, a faiss index, a sparse matrix."""

import os
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from .codes import Codes
from .milvus import MilvusIndex, address
from .storage import check_writable, write_atomically

FILES = ("faiss", "npz")


def export(codes: Codes, to: str, path: str | os.PathLike = "codes", *, model: str = "", verbose: bool = False) -> str:
    """Return in words where codes were written: an address of Milvus, or a file of one of the kinds in ``FILES``.

    ``path`` is that file, which without an ending gets one: a binary index of faiss, or a CSR matrix of zeros and ones
    that ``scipy.sparse.load_npz`` reads. An insert into Milvus that was interrupted goes on; there the digest of the
    ``model`` that made the codes is kept with them.
    """
    if "://" in to:
        where, collection = address(to)
        with MilvusIndex(where, collection) as index:
            index.insert(codes, model=model, verbose=verbose)
            return f"collection {collection} of {where}"
    if to not in FILES:
        raise ValueError(f"codes go to an address such as milvus://codes.db, or to one of {FILES}, got {to!r}")
    path = Path(path)
    path = path if path.suffix else path.with_suffix(f".{to}")
    check_writable(path)
    write_atomically(path, lambda part: _write(codes, to, part))
    return str(path)


def _write(codes: Codes, to: str, part: Path) -> None:
    if to == "faiss":
        index: Any = codes.to_faiss()
        import faiss

        faiss.write_index_binary(index, str(part))
    else:
        with part.open("wb") as file:  # by name, numpy would add an ending
            sp.save_npz(file, sp.csr_array(codes.to_matrix()))
