"""The entry point of the command ``biohash``.

It stands beside the package, because whatever is imported from a package imports all that its ``__init__`` does: that
takes seconds, in which somebody may press Ctrl-C. The library itself leaves interrupts to its caller.
"""

import sys


def main() -> int:
    """Return the exit code of the command; an interrupt while modules are imported is one line and 130."""
    try:
        from biohash_mini import cli
    except KeyboardInterrupt:
        print("biohash: interrupted", file=sys.stderr)
        return 130
    return cli.main()
