"""The command ``biohash``: data, hashing and search of your own vectors, experiments, the report."""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.distributed import is_torchelastic_launched

from . import __version__, datasets
from .codes import Codes
from .datasets import networks
from .export import export
from .hashers import METHODS, Hasher
from .milvus import MilvusIndex, address
from .search import HammingIndex
from .storage import check_writable

_EXAMPLES = """
examples:
  biohash data fetch mnist
  biohash features alexnet --layer pooled
  biohash hash vectors.npy --hash-length 16 --activity 0.05 --model model.safetensors --codes codes.safetensors
  biohash search queries.npy --model model.safetensors --codes codes.safetensors --top 10 > neighbours.csv
  torchrun --nproc-per-node 2 -m biohash_mini.cli hash vectors.npy --model model.safetensors --codes codes.safetensors
  biohash export codes.safetensors --to milvus://codes.db
  biohash run mnist --profile full --methods BioHash LSH --hash-lengths 2 4
  biohash report mnist --markdown
  biohash rerun mnist --line 12
  biohash bench --quick
"""


def _vectors(path: Path) -> np.ndarray:
    """Return the array of an .npy file, mapped rather than read, never unpickled."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not an .npy file of numbers ({error})") from None


def _check_outputs(vectors: Path, **outputs: Path) -> None:
    """Raise ValueError or OSError, before any work is done, unless each output can be written to a file of its own."""
    taken = {vectors.resolve(): "the vectors"}
    for name, path in outputs.items():
        if (other := taken.setdefault(path.resolve(), f"--{name}")) != f"--{name}":
            raise ValueError(f"--{name} {path} is the file of {other}: choose another")
        check_writable(path)


def _data(args: argparse.Namespace) -> None:
    for name in args.names or [n for n in datasets.NAMES if n not in ("glove-100d", *datasets.FEATURES)]:
        if args.action == "fetch":
            print(datasets.fetch(name))
        elif args.action == "verify":
            print(f"{name}: intact, sha256 {datasets.verify(name)}")
        elif path := datasets.data_path(name):
            print(path)
        else:
            datasets.find(name)  # says how to get it


def _features(args: argparse.Namespace) -> None:
    options = {"side": args.side, "batch_size": args.batch_size, "device": args.device}
    print(networks.extract_cifar10(args.network, args.layer, args.output, profile=args.profile, **options))


def _hash(args: argparse.Namespace) -> None:
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


def _search(args: argparse.Namespace) -> None:
    hasher = Hasher.load(args.model, device=args.device)
    queries = hasher.encode(_vectors(args.queries))
    if "://" in args.codes:
        with MilvusIndex(*address(args.codes)) as database:
            distances, ids = database.search(queries, args.top)
    else:
        distances, ids = HammingIndex(Codes.load(args.codes, model=hasher.digest())).search(queries, args.top)
    print("query,rank,id,distance")
    for q, (row, near) in enumerate(zip(ids.tolist(), distances.tolist(), strict=True)):
        print("\n".join(f"{q},{rank},{i},{d}" for rank, (i, d) in enumerate(zip(row, near, strict=True), 1)))


def _export(args: argparse.Namespace) -> None:
    codes = Codes.load(args.codes)
    place = export(codes, args.to, args.out or args.codes.with_suffix(""), verbose=sys.stderr.isatty())
    print(f"{codes}: {place}")


def _run(args: argparse.Namespace) -> None:
    from .reproduction.runner import EXPERIMENTS, run

    names = _known(args.names, EXPERIMENTS)
    if not names and not args.all:
        raise ValueError(f"name experiments, or say --all: {', '.join(EXPERIMENTS)}")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages: twice as fast where torch moves big arrays
    chosen = {"methods": args.methods, "hash_lengths": args.hash_lengths, "seeds": args.seeds}
    run(names or EXPERIMENTS, args.profile, **chosen, where=args.results, workers=args.workers)


def _report(args: argparse.Namespace) -> None:
    from .reproduction import report

    names = _known(args.names, report.EXPERIMENTS)
    if args.json:
        found = report.cells(names, profile=args.profile, where=args.results)
        print(json.dumps(list(found), indent=1, ensure_ascii=False))
    elif args.cost:
        print(_costs(report.cost(names, profile=args.profile, where=args.results)))
    else:
        print(report.render(names, markdown=args.markdown, profile=args.profile, where=args.results))


def _rerun(args: argparse.Namespace) -> None:
    from .reproduction.rerun import EXPERIMENTS, choose, print_reruns

    if (args.name is None) != (args.line is None) or (args.name is None) == (args.random is None):
        raise ValueError("name an experiment and a --line of its results, or say --random and how many lines")
    _known([args.name] if args.name else [], EXPERIMENTS)
    asked = [(args.name, args.line)] if args.name else choose(args.random, args.most, args.seed, args.results)
    if different := print_reruns(asked, args.tolerance, args.results):
        raise ValueError(f"{different} of {len(asked)} lines are not what was recorded")


def _bench(args: argparse.Namespace) -> None:
    from .reproduction import bench

    sizes = [tuple(map(int, size.split(","))) for size in args.sizes]
    if any(len(size) != 3 for size in sizes):
        raise ValueError(f"a size is n,k,m, such as 50000,16,320, got {' '.join(args.sizes)}")
    bench.run(args.parts, quick=args.quick, sizes=sizes, threads=args.threads, where=args.results)


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


def _count(text: str) -> int:
    """Return the text as an integer of at least 1."""
    if not text.isdecimal() or int(text[:20]) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text[:20])


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="biohash", description="Bio-inspired hashing for similarity search.", epilog=_EXAMPLES, formatter_class=raw
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, action, about: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=about, description=about, epilog=f"example:\n  {example}", formatter_class=raw
        )
        sub.set_defaults(action_function=action)
        return sub

    def profile_and_results(sub: argparse.ArgumentParser, default: str) -> None:
        sub.add_argument("--profile", choices=datasets.PROFILES, default=default, help="embedded sample or whole data")
        sub.add_argument("--results", type=Path, help="folder of the results (default: results)")

    sub = command("data", _data, "fetch, verify or locate the data sets", "biohash data fetch mnist cifar10")
    sub.add_argument("action", choices=("fetch", "verify", "path"))
    sub.add_argument("names", nargs="*", choices=[*datasets.NAMES, []], metavar="NAME", help=", ".join(datasets.NAMES))

    about = "compute features of CIFAR-10's images with a network trained on ImageNet; goes on where it was stopped"
    sub = command("features", _features, about, "biohash features alexnet --layer pooled")
    sub.add_argument("network", choices=networks.NETWORKS)
    words = "fc7 (4,096 values; canonical weights), pool5 (the last map, flattened) or pooled (its mean; the default)"
    sub.add_argument("--layer", choices=networks.LAYERS, default="pooled", help=words)
    words = "pixels of the square that the network sees (default: 224)"
    sub.add_argument("--side", type=_count, default=224, help=words)
    sub.add_argument("--batch-size", type=_count, default=50)
    sub.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    sub.add_argument("--profile", choices=datasets.PROFILES, default="full", help="embedded sample or whole data")
    sub.add_argument("--output", type=Path, help="file to write (default: in the cache, where the experiments look)")

    example = "biohash hash x.npy --hash-length 16 --model m.safetensors --codes c.safetensors"
    sub = command("hash", _hash, "fit a method to the rows of an .npy file, write the model and their codes", example)
    sub.add_argument("vectors", type=Path, help=".npy file of shape (n, d)")
    sub.add_argument("--method", choices=METHODS, default="BioHash")
    sub.add_argument("--hash-length", type=int, default=16, help="units on, or bits (default: 16)")
    sub.add_argument("--activity", type=float, help="fraction of units on (BioHash; default: 0.05)")
    sub.add_argument("--max-epochs", type=int, help="passes of training (BioHash; default: 2 to 4)")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    sub.add_argument("--model", type=Path, required=True, help="file to write the model to")
    sub.add_argument("--codes", type=Path, required=True, help="file to write the codes to")
    words = "under torchrun: time between two writings of MODEL.checkpoint, from which training goes on (default: 60)"
    sub.add_argument("--checkpoint-seconds", type=float, default=60.0, metavar="SECONDS", help=words)

    example = "biohash search q.npy --model m.safetensors --codes c.safetensors --top 5"
    sub = command("search", _search, "print the nearest codes of query vectors as CSV", example)
    sub.add_argument("queries", type=Path, help=".npy file of shape (q, d)")
    sub.add_argument("--model", type=Path, required=True)
    sub.add_argument("--codes", required=True, help="their file, or where they were exported to: milvus://codes.db")
    sub.add_argument("--top", type=int, default=10)
    sub.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")

    about = "hand codes to another engine: Milvus, embedded or a cluster's, a faiss index, a sparse matrix"
    sub = command("export", _export, about, "biohash export codes.safetensors --to milvus://codes.db")
    sub.add_argument("codes", type=Path, help="file of codes")
    sub.add_argument("--to", required=True, help="milvus://FOLDER.db, milvus://HOST:PORT, with #NAME; faiss; npz")
    sub.add_argument("--out", type=Path, help="file to write (default: that of the codes, ending in .faiss or .npz)")

    words = "experiments, such as mnist; `biohash run` alone lists them"
    names: dict[str, Any] = {"nargs": "*", "metavar": "NAME", "help": words}
    sub = command("run", _run, "measure what is missing of an experiment", "biohash run mnist --profile full")
    sub.add_argument("names", **names)
    sub.add_argument("--all", action="store_true", help="every experiment")
    sub.add_argument("--methods", nargs="+", default=(), metavar="METHOD")
    sub.add_argument("--hash-lengths", nargs="+", type=int, default=(), metavar="K")
    sub.add_argument("--seeds", nargs="+", type=int, default=(), metavar="SEED")
    words = "processes side by side, where memory allows (default: 1)"
    sub.add_argument("--workers", type=_count, default=1, help=words)
    profile_and_results(sub, "mini")

    sub = command("report", _report, "compare the recorded results with the paper", "biohash report mnist --markdown")
    sub.add_argument("names", **names)
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a list of cells")
    form.add_argument("--markdown", action="store_true", help="tables for a page")
    form.add_argument("--cost", action="store_true", help="seconds and memory of every experiment")
    profile_and_results(sub, "full")

    about = "measure a recorded trial again, from the parameters, seed and data that its line names, and compare"
    sub = command("rerun", _rerun, about, "biohash rerun mnist --line 12")
    sub.add_argument("name", nargs="?", metavar="NAME", help="experiment, such as mnist")
    sub.add_argument("--line", type=_count, help="line of its results, counted from 1")
    sub.add_argument("--random", type=_count, metavar="COUNT", help="so many random lines of all experiments instead")
    sub.add_argument("--most", type=float, default=60.0, help="seconds that such a line took at most (default: 60)")
    sub.add_argument("--seed", type=int, default=0, help="of the choice")
    sub.add_argument("--tolerance", type=float, default=0.0, help="by which numbers may differ (default: 0)")
    sub.add_argument("--results", type=Path, help="folder of the results (default: results)")

    about = "time search, evaluation and training beside their peers: ratios, targets, whether they hold"
    sub = command("bench", _bench, about, "biohash bench sparse --sizes 50000,16,320 50000,16,3200")
    sub.add_argument("parts", nargs="*", metavar="PART", help="sparse, dense, evaluation, floors, race (default: all)")
    sub.add_argument("--quick", action="store_true", help="small sizes, once: seconds, to see that all peers run")
    sub.add_argument("--sizes", nargs="+", default=(), metavar="N,K,M", help="sparse codes to search (default: six)")
    sub.add_argument("--threads", type=int, default=0, help="of ours and of every peer (default: all cores)")
    sub.add_argument("--results", type=Path, help="folder of the results (default: results)")
    return parser


def _say(message: object, *_: object) -> None:
    """Print a message as one line on standard error."""
    print(f"biohash: {'; '.join(str(message).splitlines())}", file=sys.stderr)


def _flush() -> None:
    """Write out what is printed; where that fails, let it go nowhere, or the interpreter would try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))
    args = build_parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _say  # type: ignore[assignment]
        try:
            try:
                args.action_function(args)
            finally:
                _flush()
        except BrokenPipeError:  # the reader, such as head, has seen enough
            return 0
        except (ValueError, OSError, ImportError, MemoryError, RuntimeError) as error:
            _say(str(error) or type(error).__name__)
            return 2
        except KeyboardInterrupt:
            _say("interrupted; what was measured is kept")
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
