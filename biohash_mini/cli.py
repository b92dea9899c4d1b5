"""The command ``biohash``: data, hashing and search of your own vectors, experiments, the report."""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import __version__, commands, datasets
from .datasets import networks
from .hashers import METHODS

_EXAMPLES = """
examples:
  biohash data fetch mnist
  biohash features alexnet --layer pool5
  biohash hash vectors.npy --hash-length 16 --activity 0.05 --model model.safetensors --codes codes.safetensors
  biohash search queries.npy --model model.safetensors --codes codes.safetensors --top 10 > neighbours.csv
  torchrun --nproc-per-node 2 -m biohash_mini.cli hash vectors.npy --model model.safetensors --codes codes.safetensors
  biohash export codes.safetensors --to milvus://codes.db
  biohash run mnist --profile full --methods BioHash LSH --hash-lengths 2 4
  biohash report mnist --markdown
  biohash rerun mnist --line 12
  biohash bench --quick
  biohash worth mnist glove
"""


def _count(text: str) -> int:
    """Return the text as an integer of at least 1."""
    if not text.isdecimal() or int(text[:20]) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text[:20])


def _amount(text: str) -> float:
    """Return the text as a finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a finite number of at least 0, got {text!r}")
    return value


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="biohash", description="Bio-inspired hashing for similarity search.", epilog=_EXAMPLES, formatter_class=raw
    )
    parser.add_argument("--version", action="version", version=__version__)
    each = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, action, about: str, example: str) -> argparse.ArgumentParser:
        sub = each.add_parser(name, help=about, description=about, epilog=f"example:\n  {example}", formatter_class=raw)
        sub.set_defaults(action_function=action)
        return sub

    def profile_and_results(sub: argparse.ArgumentParser, default: str) -> None:
        sub.add_argument("--profile", choices=datasets.PROFILES, default=default, help="embedded sample or whole data")
        sub.add_argument("--results", type=Path, help="folder of the results (default: results)")

    sub = command("data", commands.data, "fetch, verify or locate the data sets", "biohash data fetch mnist cifar10")
    sub.add_argument("action", choices=("fetch", "verify", "path"))
    sub.add_argument("names", nargs="*", choices=[*datasets.NAMES, []], metavar="NAME", help=", ".join(datasets.NAMES))

    about = "compute features of CIFAR-10's images with a network trained on ImageNet; goes on where it was stopped"
    sub = command("features", commands.features, about, "biohash features alexnet --layer pool5")
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
    sub = command(
        "hash",
        commands.hash_vectors,
        "fit a method to the rows of an .npy file, write the model and their codes",
        example,
    )
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
    sub.add_argument("--checkpoint-seconds", type=_amount, default=60.0, metavar="SECONDS", help=words)

    example = "biohash search q.npy --model m.safetensors --codes c.safetensors --top 5"
    sub = command("search", commands.search, "print the nearest codes of query vectors as CSV", example)
    sub.add_argument("queries", type=Path, help=".npy file of shape (q, d)")
    sub.add_argument("--model", type=Path, required=True)
    sub.add_argument("--codes", required=True, help="their file, or where they were exported to: milvus://codes.db")
    sub.add_argument("--top", type=int, default=10)
    sub.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")

    about = "hand codes to another engine: Milvus, embedded or a cluster's, a faiss index, a sparse matrix"
    sub = command("export", commands.export_codes, about, "biohash export codes.safetensors --to milvus://codes.db")
    sub.add_argument("codes", type=Path, help="file of codes")
    sub.add_argument("--to", required=True, help="milvus://FOLDER.db, milvus://HOST:PORT, with #NAME; faiss; npz")
    sub.add_argument("--out", type=Path, help="file to write (default: that of the codes, ending in .faiss or .npz)")

    words = "experiments, such as mnist; `biohash run` alone lists them"
    names: dict[str, Any] = {"nargs": "*", "metavar": "NAME", "help": words}
    sub = command("run", commands.run, "measure what is missing of an experiment", "biohash run mnist --profile full")
    sub.add_argument("names", **names)
    sub.add_argument("--all", action="store_true", help="every experiment")
    sub.add_argument("--methods", nargs="+", default=(), metavar="METHOD")
    sub.add_argument("--hash-lengths", nargs="+", type=int, default=(), metavar="K")
    sub.add_argument("--seeds", nargs="+", type=int, default=(), metavar="SEED")
    words = "processes side by side, where memory allows (default: 1)"
    sub.add_argument("--workers", type=_count, default=1, help=words)
    profile_and_results(sub, "mini")

    sub = command(
        "report", commands.report, "compare the recorded results with the paper", "biohash report mnist --markdown"
    )
    sub.add_argument("names", **names)
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a list of cells")
    form.add_argument("--markdown", action="store_true", help="tables for a page")
    form.add_argument("--cost", action="store_true", help="seconds and memory of every experiment")
    profile_and_results(sub, "full")

    about = "measure a recorded trial again, from the parameters, seed and data that its line names, and compare"
    sub = command("rerun", commands.rerun, about, "biohash rerun mnist --line 12")
    sub.add_argument("name", nargs="?", metavar="NAME", help="experiment, such as mnist")
    sub.add_argument("--line", type=_count, help="line of its results, counted from 1")
    sub.add_argument("--random", type=_count, metavar="COUNT", help="so many random lines of all experiments instead")
    sub.add_argument("--most", type=_amount, default=60.0, help="seconds that such a line took at most (default: 60)")
    sub.add_argument("--seed", type=int, default=0, help="of the choice")
    sub.add_argument("--tolerance", type=_amount, default=0.0, help="by which numbers may differ (default: 0)")
    sub.add_argument("--results", type=Path, help="folder of the results (default: results)")

    about = "time search, evaluation and training beside their peers: ratios, targets, whether they hold"
    sub = command("bench", commands.bench, about, "biohash bench sparse --sizes 50000,16,320 50000,16,3200")
    parts = "sparse, dense, evaluation, floors, threads, race (default: all)"
    sub.add_argument("parts", nargs="*", metavar="PART", help=parts)
    sub.add_argument("--quick", action="store_true", help="small sizes, once: seconds, to see that all peers run")
    sub.add_argument("--sizes", nargs="+", default=(), metavar="N,K,M", help="sparse codes to search (default: six)")
    sub.add_argument("--threads", type=int, default=0, help="of ours and of every peer (default: all cores)")
    sub.add_argument("--results", type=Path, help="folder of the results (default: results)")

    about = "measure quality against bits and time beside faiss, and the share of a database that lists of units touch"
    sub = command("worth", commands.worth, about, "biohash worth mnist lists-glove --profile full")
    words = "mnist, cifar10, cifar10-alexnet, glove, sentences, lists-glove, lists-patches (default: all)"
    sub.add_argument("parts", nargs="*", metavar="PART", help=words)
    profile_and_results(sub, "full")
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
