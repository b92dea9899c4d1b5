"""Execute the notebooks once and build the HTML book from the executed copies.

python book/build.py execute [NOTEBOOK ...]    run what is stale, into _build/executed
python book/build.py html                      the same, then the book, into _build/html
python book/build.py zip                       the built book as one file, into _build
python book/build.py pdf                       the same notebooks as a PDF, by LaTeX, into _build
python book/build.py epub                      the same notebooks as an EPUB, into _build
python book/build.py launch                    the tree that Colab and Binder open, into _build/launch
python book/build.py links                     ask every outside link of the book whether it is alive
python book/build.py codecheck                 write codecheck.yml anew: every results file and what makes it

An executed copy is fresh while the fingerprint beside it holds: the notebook, the package with its embedded data,
the recorded results and the lock file. The tests use the same copies, so one run serves both.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import as_completed
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
EXECUTED = BUILD / "executed"
PROFILE = "mini"
ARCHIVE = BUILD / "bio-inspired-hashing.zip"
PAPER = BUILD / "bio-inspired-hashing.pdf"
EBOOK = BUILD / "bio-inspired-hashing.epub"
TYPESETTING = ("xelatex", "latexmk", "rsvg-convert")  # the programs of these packages of Debian
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = (
    "texlive-xetex texlive-latex-extra texlive-fonts-recommended latexmk librsvg2-bin "
    "fonts-freefont-otf fonts-dejavu-core fonts-lmodern"
)
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
    _sign(attempt)
    seal = EXECUTED / f"{notebook.stem}.sha256"
    seal.unlink(missing_ok=True)  # a kill between the next two lines must not leave another copy's seal beside this one
    attempt.replace(target)
    seal.write_text(mark)
    return target


def _sign(notebook: Path) -> None:
    """Note in an executed notebook on what it ran, for the status page."""
    import nbformat

    from biohash_mini.reproduction.results import provenance

    page, host = nbformat.read(notebook, as_version=4), provenance("auto")
    page.metadata["biohash"] = {name: host[name] for name in ("machine", "threads", "versions")}
    nbformat.write(page, notebook)


def _one_thread_each(several: bool) -> None:
    """Keep two kernels from fighting over two cores; a chapter that runs alone may have both."""
    if several:
        os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}  # numba resets what the first one says


def execute_all(chapters: Sequence[Path]) -> dict[Path, BaseException | None]:
    """Execute the stale ones, two at a time, and return what each raised, None for success.

    A line for each that has ended says which ones run and, by the code that is left, how long it will take.
    """
    stale = [chapter for chapter in chapters if not is_fresh(chapter)]
    print(f"chapters: {len(stale)} to execute, {len(chapters) - len(stale)} fresh", flush=True)
    if not stale:
        return dict.fromkeys(chapters)
    from biohash_mini.reproduction.workers import pool  # slow to import, and not needed when nothing is stale

    start, left = time.monotonic(), {c: c.stat().st_size for c in stale}
    total = sum(left.values())
    with pool(2, _one_thread_each, len(stale) > 1) as executor:
        futures = {executor.submit(execute, chapter): chapter for chapter in stale}
        for future in as_completed(futures):
            del left[futures[future]]
            gone, rest = time.monotonic() - start, sum(left.values())
            word = "failed" if future.exception() else "done"
            running = f", running {' and '.join(c.stem for c in [*left][:2])}" if left else ""
            time_left = f", {gone * rest / (total - rest):.0f} s left" if left else ""
            print(f"{futures[future].stem} {word} at {gone:.0f} s{running}{time_left}", flush=True)
    return dict.fromkeys(chapters) | {chapter: future.exception() for future, chapter in futures.items()}


def settings() -> dict:
    """Return ``_config.yml``; on GitHub the repository is the one that builds. The site's address follows from it."""
    import yaml

    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    if name := os.environ.get("GITHUB_REPOSITORY"):
        config["repository"]["url"] = f"https://github.com/{name}"
    owner, repository = config["repository"]["url"].rstrip("/").split("/")[-2:]
    config["html"].setdefault("baseurl", f"https://{owner}.github.io/{repository}/")
    return config


def assemble(bare: bool = False) -> Path:
    """Return a source folder shaped like the repository: executed notebooks (or the bare ones), generated parts.

    What is in ``book/_beside`` is published beside the pages: the PDF and the EPUB, if they have been made.
    """
    import nbformat
    import yaml

    sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]
    from book import pages
    from book.chapter import prepare

    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    ours = shutil.ignore_patterns("__pycache__", *(path.name for path in (ROOT / "book").glob("*.py")))
    shutil.copytree(ROOT / "book", source / "book", ignore=ours)
    shutil.copy2(ROOT / "_toc.yml", source)
    (source / "book" / "_beside").mkdir()
    for whole in filter(Path.exists, (PAPER, EBOOK)):
        shutil.copy2(whole, source / "book" / "_beside")
    (source / "_config.yml").write_text(yaml.safe_dump(settings(), sort_keys=False, allow_unicode=True), "utf-8")
    pages.write(source / "book" / "_generated", [EXECUTED / c.name for c in notebooks()], ROOT / "results")
    (source / "notebooks").mkdir()
    for chapter in notebooks():
        page = nbformat.read(chapter if bare else EXECUTED / chapter.name, as_version=4)
        page = prepare(page, chapter.stem, source / "notebooks")
        nbformat.write(page, source / "notebooks" / chapter.name)
    return source


def _jupyter_book(source: Path, *options: str) -> None:
    print("pages: about a minute", flush=True)
    command = [Path(sys.executable).with_name("jupyter-book"), "build", str(source), "--all", "--keep-going", *options]
    subprocess.run(command, cwd=ROOT, check=True)


def html() -> Path:
    """Build the book with every warning an error, and return its first page."""
    _jupyter_book(assemble(), "--path-output", str(ROOT), "-W", "-n", "--quiet")
    return BUILD / "html" / "index.html"


def pdf() -> Path:
    """Typeset the book, every sign in its place, and return the file."""
    folder = BUILD / "latex"
    shutil.rmtree(folder, ignore_errors=True)
    _jupyter_book(assemble(), "--path-output", str(ROOT), "--builder", "latex", "-W", "-n", "--quiet")
    # Jupyter Book's class asks for bbm, which no page uses; Debian has it in its largest collection of fonts
    (folder / "bbm.sty").write_text("\\ProvidesPackage{bbm}\n\\providecommand{\\mathbbm}{\\mathbb}\n")
    command = ["latexmk", "-xelatex", "-silent", "-interaction=nonstopmode", "-halt-on-error", f"{PAPER.stem}.tex"]
    subprocess.run(command, cwd=folder, check=True)
    log = (folder / f"{PAPER.stem}.log").read_text("utf-8", "replace")
    if lost := sorted(set(re.findall(r"Missing character: There is no (\S+)", log))):
        raise RuntimeError(f"no font of the PDF has {' '.join(lost)}; choose others in _config.yml")
    return (folder / PAPER.name).replace(PAPER)


def epub() -> Path:
    """Write the book for readers of EPUB, and return the file."""
    shutil.rmtree(BUILD / "epub", ignore_errors=True)  # what is there would be packed again
    builder = ["--builder", "custom", "--custom-builder", "epub"]
    _jupyter_book(assemble(), "--path-output", str(ROOT), *builder, "-W", "-n", "--quiet")
    return (BUILD / "epub" / EBOOK.name).replace(EBOOK)


def links() -> Path:
    """Ask the network about every outside link, notebooks unexecuted, and return the list of answers."""
    _jupyter_book(assemble(bare=True), "--path-output", str(BUILD / "links"), "--builder", "linkcheck", "--quiet")
    return BUILD / "links" / "_build" / "html" / "output.txt"


def codecheck() -> Path:
    """Write ``codecheck.yml`` and return its path."""
    sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]
    from book import records

    return records.write_codecheck()


def archive() -> Path:
    """Return the built book as one zip: unpack it anywhere and open index.html, no server and no network needed."""
    site = BUILD / "html"
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
        for path in sorted(p for p in site.rglob("*") if p.is_file() and p.name not in (".buildinfo", "objects.inv")):
            bundle.write(path, Path(ARCHIVE.stem) / path.relative_to(site))
    return ARCHIVE


_FETCH = """\
# Colab starts empty: this fetches the package and the recorded results. Elsewhere it does nothing.
import sys

if "google.colab" in sys.modules:
    !git clone --quiet --depth 1 --branch {branch} {url} book
    %pip install --quiet "./book[notebooks]"
    %cd book/notebooks"""


def launch() -> Path:
    """Return a copy of the tracked files whose chapters fetch the package when they are opened in Colab.

    It is published as a branch of its own, the one the launch buttons name, so the chapters themselves stay free of it.
    """
    import nbformat

    target, repository = BUILD / "launch", settings()["repository"]
    shutil.rmtree(target, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in tracked.rstrip("\0").split("\0"):
        if name.startswith(".github/"):  # a branch for readers runs no workflows
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    for chapter in (target / "notebooks").glob("*.ipynb"):
        page = nbformat.read(chapter, as_version=4)
        cell = nbformat.v4.new_code_cell(_FETCH.format(**repository), id="fetch", metadata={"tags": ["remove-cell"]})
        page.cells.insert(0, cell)
        nbformat.write(page, chapter)
    return target


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands and return the exit code."""
    command, *names = arguments or ["html"]
    made = {"zip": archive, "pdf": pdf, "epub": epub, "launch": launch, "links": links, "codecheck": codecheck}
    steps = {"execute": None, "html": html, **made}
    if command not in steps or (names and command != "execute"):
        print(__doc__)
        return 2
    if command == "pdf" and (lacking := [program for program in TYPESETTING if not shutil.which(program)]):
        print(f"The PDF needs {', '.join(lacking)}: apt-get install {PACKAGES}", file=sys.stderr)
        return 1
    if command == "epub" and not any(map(shutil.which, BROWSERS)):
        print("The EPUB needs Chromium, which typesets its formulas: apt-get install chromium", file=sys.stderr)
        return 1
    if command in ("execute", "html", "pdf", "epub"):
        failures = {c: e for c, e in execute_all([Path(n).resolve() for n in names] or notebooks()).items() if e}
        for chapter, error in failures.items():
            print(f"{chapter.name} failed; see {EXECUTED / chapter.stem}.failed.ipynb\n{error}", file=sys.stderr)
        if failures:
            return 1
    if step := steps[command]:
        try:
            print(f"The result of {command} is at {step()}")
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, by which the book's builder ends too
    sys.exit(main(sys.argv[1:]))
