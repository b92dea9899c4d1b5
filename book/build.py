"""Execute the notebooks once and build the HTML book from the executed copies.

python book/build.py execute [NOTEBOOK ...]    run what is stale, into _build/executed
python book/build.py html                      the same, then the book, into _build/html

An executed copy is fresh while the fingerprint beside it holds: the notebook, the package with its embedded data,
the recorded results and the lock file. The tests use the same copies, so one run serves both.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
EXECUTED = BUILD / "executed"
PROFILE = "mini"
CELL_TIMEOUT = 300  # seconds; a chapter takes about a minute in all
START_TIMEOUT = 120


def notebooks() -> list[Path]:
    """Return the chapters in reading order."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


@cache
def _shared_digest() -> bytes:
    """Return the hash of everything a chapter may depend on, apart from itself."""
    files = [p for folder in ("biohash_mini", "results") for p in sorted((ROOT / folder).rglob("*")) if p.is_file()]
    digest = hashlib.sha256()
    for path in [*(p for p in files if "__pycache__" not in p.parts), ROOT / "requirements.lock"]:
        digest.update(f"{path.relative_to(ROOT)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.digest()


def fingerprint(notebook: Path) -> str:
    """Return the SHA-256 that decides whether an executed copy is still valid."""
    return hashlib.sha256(_shared_digest() + PROFILE.encode() + notebook.read_bytes()).hexdigest()


def is_fresh(notebook: Path) -> bool:
    """Return whether a successful execution of exactly this state is at hand."""
    seal = EXECUTED / f"{notebook.stem}.sha256"
    return (EXECUTED / notebook.name).exists() and seal.exists() and seal.read_text() == fingerprint(notebook)


def execute(notebook: Path) -> Path:
    """Return the executed copy of a notebook, running it only when the copy is stale.

    A notebook that fails raises, and leaves its output in ``<stem>.failed.ipynb`` for reading.
    """
    target = EXECUTED / notebook.name
    if is_fresh(notebook):
        return target
    import papermill  # slow to import, and not needed when nothing is stale

    mark = fingerprint(notebook)  # before the run: an edit meanwhile makes the copy stale, as it should
    parameters = {"profile": PROFILE} if "profile" in papermill.inspect_notebook(str(notebook)) else {}
    attempt = EXECUTED / f"{notebook.stem}.failed.ipynb"  # its name until the last cell has passed
    EXECUTED.mkdir(parents=True, exist_ok=True)
    papermill.execute_notebook(
        str(notebook),
        str(attempt),
        parameters=parameters,
        kernel_name="python3",
        cwd=str(notebook.parent),
        progress_bar=False,
        execution_timeout=CELL_TIMEOUT,
        start_timeout=START_TIMEOUT,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # a kernel on this machine need not warn about encryption
    )
    attempt.replace(target)
    (EXECUTED / f"{notebook.stem}.sha256").write_text(mark)
    return target


def _one_thread_each(several: bool) -> None:
    """Keep two kernels from fighting over two cores; a chapter that runs alone may have both."""
    if several:
        os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}  # numba resets what the first one says


def execute_all(chapters: Sequence[Path]) -> dict[Path, BaseException | None]:
    """Execute the stale ones, two at a time, and return what each raised, None for success."""
    stale = [chapter for chapter in chapters if not is_fresh(chapter)]
    print(f"notebooks: {len(stale)} to execute, {len(chapters) - len(stale)} fresh", flush=True)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, initializer=_one_thread_each, initargs=(len(stale) > 1,)) as pool:
        futures = {chapter: pool.submit(execute, chapter) for chapter in stale}
        return dict.fromkeys(chapters) | {chapter: future.exception() for chapter, future in futures.items()}


def assemble() -> Path:
    """Return a source folder shaped like the repository, with executed notebooks in place of the bare ones."""
    import nbformat

    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "book", source / "book", ignore=shutil.ignore_patterns("__pycache__", "build.py"))
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy2(ROOT / name, source / name)
    (source / "notebooks").mkdir()
    for chapter in notebooks():
        page = nbformat.read(EXECUTED / chapter.name, as_version=4)
        page.cells = [c for c in page.cells if "injected-parameters" not in c.metadata.get("tags", [])]
        nbformat.write(page, source / "notebooks" / chapter.name)
    return source


def html() -> Path:
    """Build the book with every warning an error, and return its first page."""
    command = ["build", str(assemble()), "--path-output", str(ROOT), "--all", "-W", "--keep-going", "-n", "--quiet"]
    subprocess.run([Path(sys.executable).with_name("jupyter-book"), *command], cwd=ROOT, check=True)
    return BUILD / "html" / "index.html"


def main(arguments: Sequence[str]) -> int:
    """Run one of the two commands and return the exit code."""
    command, *names = arguments or ["html"]
    if command not in ("execute", "html") or (command == "html" and names):
        print(__doc__)
        return 2
    failures = {c: e for c, e in execute_all([Path(n).resolve() for n in names] or notebooks()).items() if e}
    for chapter, error in failures.items():
        print(f"{chapter.name} failed; see {EXECUTED / chapter.stem}.failed.ipynb\n{error}", file=sys.stderr)
    if failures:
        return 1
    if command == "html":
        try:
            print(f"The book is at {html()}")
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
