"""Write requirements.lock: what this environment holds of the project's requirements, with the hashes of their files.

To refresh it, install ``.[book,test]`` into a new environment, run the tests and the book in it, then there
``python -m pip install uv`` and ``python tools/lock.py``. uv asks the package index for the hashes of every file of a
version, for all platforms. A CPU build of torch from elsewhere has a hash of its own, which is added.
"""

import hashlib
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import requires, version
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parents[1] / "requirements.lock"
HEADER = """\
# Exact versions of everything that `make env` installs into .venv on Linux, with the hashes of their files.
# Written by tools/lock.py, which says how to refresh it. What only a CUDA build of torch needs is left to pip.
"""
CUDA = ("cuda-", "nvidia-", "triton")


def needed(*requirements: str, without: Iterable[str] = ()) -> set[str]:
    """Return the names of the distributions that the requirements lead to here, themselves included.

    Extras and markers count; names that start with one of ``without`` are left out, with all that only they need.
    """
    todo, seen = [Requirement(r) for r in requirements], set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            found = map(Requirement, requires(name) or ())
            found = [r for r in found if r.marker is None or r.marker.evaluate({"extra": extra})]
            todo += [r for r in found if not canonicalize_name(r.name).startswith(tuple(without))]
    return {name for name, _ in seen}


def registry_hashes(versions: dict[str, str]) -> str:
    """Return the lines ``name==version --hash=...`` of all files that the package index has."""
    wanted = "\n".join(f"{name}=={number.partition('+')[0]}" for name, number in sorted(versions.items()))
    options = ["--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--python", sys.executable]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", *options, "-"]
    return subprocess.run(command, input=wanted, capture_output=True, text=True, check=True).stdout


def own_hash(requirement: str) -> str:
    """Return the hash of the file that pip as configured here would install."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, requirement]
        subprocess.run(command, check=True)
        (file,) = Path(folder).iterdir()
        with file.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()


def main() -> None:
    """Write the lock file."""
    names = needed("biohash-mini[book,test]", "setuptools", without=CUDA) - {"biohash-mini"}
    versions = {name: version(name) for name in names}
    text = registry_hashes(versions)
    if "+" in versions["torch"]:  # not the index's build
        line = f"torch=={versions['torch'].partition('+')[0]} \\\n"
        text = text.replace(line, f"{line}    --hash=sha256:{own_hash('torch==' + versions['torch'])} \\\n")
    LOCK.write_text(HEADER + text)


if __name__ == "__main__":
    main()
