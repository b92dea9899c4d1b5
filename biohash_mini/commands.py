"""What each command of ``biohash`` does, given its arguments; ValueError or OSError says in one line what is wrong."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch.distributed import is_torchelastic_launched

from . import datasets
from .codes import Codes
from .datasets import networks
from .export import export
from .hashers import METHODS, Hasher
from .milvus import MilvusIndex, address
from .search import HammingIndex
from .storage import check_writable, load_arrays


def _vectors(path: Path) -> np.ndarray:
    """Return the array of an .npy file, mapped rather than read, never unpickled."""
    try:
        with np.errstate(over="ignore"):
            return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OverflowError, TypeError) as error:  # the last two of absurd shapes
        raise ValueError(f"{path} is not an .npy file of numbers ({error})") from None


def _check_outputs(vectors: Path, **outputs: Path) -> None:
    """Raise ValueError or OSError, before any work is done, unless each output can be written to a file of its own."""
    taken = {vectors.resolve(): "the vectors"}
    for name, path in outputs.items():
        if (other := taken.setdefault(path.resolve(), f"--{name}")) != f"--{name}":
            raise ValueError(f"--{name} {path} is the file of {other}: choose another")
        check_writable(path)


def data(args: Namespace) -> None:
    """Fetch, verify or locate data sets."""
    for name in args.names or [n for n in datasets.NAMES if n not in ("glove-100d", "sentences", *datasets.FEATURES)]:
        if args.action == "fetch":
            print(datasets.fetch(name))
        elif args.action == "verify":
            print(f"{name}: intact, sha256 {datasets.verify(name)}")
        elif path := datasets.data_path(name):
            print(path)
        else:
            datasets.find(name)  # says how to get it


def features(args: Namespace) -> None:
    """Extract the features of a network."""
    options = {"side": args.side, "batch_size": args.batch_size, "device": args.device}
    print(networks.extract_cifar10(args.network, args.layer, args.output, profile=args.profile, **options))


def hash_vectors(args: Namespace) -> None:
    """Train on vectors and hash them, in one process or in those of torchrun."""
    X = _vectors(args.vectors)
    _check_outputs(args.vectors, model=args.model, codes=args.codes)
    cls = METHODS[args.method]
    given = {"activity": args.activity, "max_epochs": args.max_epochs, "verbose": sys.stderr.isatty()}
    options = {name: value for name, value in given.items() if value is not None and name in cls().get_params()}
    for name in ("activity", "max_epochs"):
        if given[name] is not None and name not in options:
            raise ValueError(f"{args.method} has no {name} to set")
    hasher = cls(args.hash_length, seed=args.seed, device=args.device, **options)
    if is_torchelastic_launched():
        from .distributed import fit_and_encode

        codes = fit_and_encode(hasher, X, Path(f"{args.model}.checkpoint"), args.checkpoint_seconds)
    else:
        codes = hasher.fit(X).encode(X)
    if codes is not None:
        hasher.save(args.model)
        codes.save(args.codes, model=hasher.digest())
        print(f"{codes}, {codes.bits_per_item} bits each: {args.codes}; model: {args.model}")


def search(args: Namespace) -> None:
    """Print the nearest codes of queries as CSV."""
    hasher = Hasher.load(args.model, device=args.device)
    queries = hasher.encode(_vectors(args.queries))
    if "://" in args.codes:
        where, collection = address(args.codes)
        if where.endswith(".db") and not Path(where).exists():  # else Milvus Lite would make it
            raise FileNotFoundError(f"no such database: {where}")
        with MilvusIndex(where, collection) as database:
            distances, ids = database.search(queries, args.top, model=hasher.digest())
    else:
        distances, ids = HammingIndex(Codes.load(args.codes, model=hasher.digest())).search(queries, args.top)
    print("query,rank,id,distance")
    for q, (row, near) in enumerate(zip(ids.tolist(), distances.tolist(), strict=True)):
        print("\n".join(f"{q},{rank},{i},{d}" for rank, (i, d) in enumerate(zip(row, near, strict=True), 1)))


def export_codes(args: Namespace) -> None:
    """Hand codes to another engine."""
    codes, out = Codes.load(args.codes), args.out or Path(f"{args.codes.with_suffix('')}.{args.to}")
    if out.resolve() == args.codes.resolve():
        raise ValueError(f"--out {out} is the file of the codes: choose another")
    model = str(load_arrays(args.codes)[1].get("model") or "")
    place = export(codes, args.to, out, model=model, verbose=sys.stderr.isatty())
    print(f"{codes}: {place}")


def run(args: Namespace) -> None:
    """Measure what is missing of experiments."""
    from .reproduction import runner

    names = _known(args.names, runner.EXPERIMENTS)
    if not names and not args.all:
        raise ValueError(f"name experiments, or say --all: {', '.join(runner.EXPERIMENTS)}")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages: twice as fast where torch moves big arrays
    chosen = {"methods": args.methods, "hash_lengths": args.hash_lengths, "seeds": args.seeds}
    runner.run(names or runner.EXPERIMENTS, args.profile, **chosen, where=args.results, workers=args.workers)


def report(args: Namespace) -> None:
    """Print results beside the paper's."""
    from .reproduction import report as tables

    names = _known(args.names, tables.EXPERIMENTS)
    if args.results and not args.results.is_dir():
        raise FileNotFoundError(f"no folder of results: {args.results}")
    if args.json:
        found = tables.cells(names, profile=args.profile, where=args.results)
        print(json.dumps(list(found), indent=1, ensure_ascii=False))
    elif args.cost:
        print(_costs(tables.cost(names, profile=args.profile, where=args.results)))
    else:
        print(tables.render(names, markdown=args.markdown, profile=args.profile, where=args.results))


def rerun(args: Namespace) -> None:
    """Measure recorded trials again; ValueError if they differ."""
    from .reproduction.rerun import EXPERIMENTS, choose, print_reruns

    if (args.name is None) != (args.line is None) or (args.name is None) == (args.random is None):
        raise ValueError("name an experiment and a --line of its results, or say --random and how many lines")
    _known([args.name] if args.name else [], EXPERIMENTS)
    asked = [(args.name, args.line)] if args.name else choose(args.random, args.most, args.seed, args.results)
    if different := print_reruns(asked, args.tolerance, args.results):
        raise ValueError(f"{different} of {len(asked)} lines are not what was recorded")


def bench(args: Namespace) -> None:
    """Time ours beside its peers."""
    from .reproduction import bench as benchmark

    sizes = [tuple(map(int, size.split(","))) for size in args.sizes]
    if not all(len(size) == 3 and size[0] >= 1 <= size[1] <= size[2] for size in sizes):
        raise ValueError(f"a size is n,k,m, such as 50000,16,320, got {' '.join(args.sizes)}")
    benchmark.run(args.parts, quick=args.quick, sizes=sizes, threads=args.threads, where=args.results)


def worth(args: Namespace) -> None:
    """Measure what a hash is worth beside today's engines."""
    from .reproduction import worth as comparison

    comparison.run(args.parts, args.profile, args.results)


def _costs(frame: Any) -> str:
    """Return the table of costs as text, the dearest first, with their sum."""
    frame = frame.sort_values("seconds", ascending=False)
    total = frame["seconds"].sum()
    return f"{frame.to_string()}\n\n{total:,} s, {total / 3600:.1f} hours of one process, if none ran beside another"


def _known(names: list[str], experiments: Mapping[str, object]) -> list[str]:
    """Return the names if each is an experiment's."""
    if unknown := [name for name in names if name not in experiments]:
        raise ValueError(f"no experiment {', '.join(unknown)}; choose among {', '.join(experiments)}")
    return names
