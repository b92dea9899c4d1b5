"""Run the campaign, print its counts and record them; exit code 1 if anything did not hold."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from biohash_mini.reproduction.results import append, provenance, read

from . import Tally, disk, faults, load, malformed

PARTS = {"faults": (faults.campaign, disk.campaign), "malformed input": (malformed.campaign,), "load": (load.campaign,)}
WORDS = {"faults": ("faults injected", "survived"), "malformed input": ("inputs tried", "clear errors")}
WORDS |= {"load": ("limits", "held")}


def tallies(short: bool, parts: list[str]) -> Iterator[Tally]:
    """Yield every tally of these parts, printed as it comes, with what did not hold."""
    for part in parts:
        for campaign in PARTS[part]:
            start = time.perf_counter()
            for tally in campaign(short):
                now = time.perf_counter()
                print(f"{tally}  ({now - start:.0f} s)", *tally.problems[:20], sep="\n    ", flush=True)
                start = now
                yield tally


def main(words: list[str] | None = None) -> int:
    """Run what is asked for, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.stress", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few cases of everything, in a minute; not recorded")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    parser.add_argument("--results", type=Path, help="folder of the record (default: results)")
    given = parser.parse_args(words)
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"  # semaphores of the killed
    provenance("cpu")  # notes the code as it is now, whatever is edited meanwhile
    began = time.perf_counter()
    found = list(tallies(given.short, given.parts))
    for part in given.parts:
        mine = [tally for tally in found if tally.part == part]
        tried, held = (sum(getattr(tally, name) for tally in mine) for name in ("tried", "held"))
        print(f"{part}: {tried:,} {WORDS[part][0]}, {held:,} {WORDS[part][1]}")
    print(f"{time.perf_counter() - began:.0f} s in all")
    if not given.short:
        record(found, given.results)
    return int(any(tally.held != tally.tried or not tally.tried for tally in found))


def record(found: list[Tally], where: Path | None = None) -> None:
    """Append a line for each tally to ``stress.jsonl``, with its provenance; ``seed`` numbers the campaigns."""
    number = 1 + max((line["seed"] for line in read("stress", where)), default=-1)
    for tally in found:
        key = {"profile": "full", "method": f"{tally.part}: {tally.name}", "hash_length": 0, "seed": number}
        counts = {"value": round(100 * tally.held / tally.tried, 4), "tried": tally.tried, "held": tally.held}
        more = {"part": tally.part, "name": tally.name, "facts": tally.facts, "problems": tally.problems[:20]}
        append("stress", {**key, **counts, **more, **provenance("cpu")}, where)


if __name__ == "__main__":
    sys.exit(main())
