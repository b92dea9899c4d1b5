import csv
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock import LOCK, needed

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "biohash_mini" / "__init__.py").read_text(), re.M)[1]
EXTRAS = {"anywidget", "faiss", "ipywidgets", "matplotlib", "pandas", "PIL", "platformdirs", "pooch", "pymilvus"} | {
    "pytest"
}


def locked():
    """Return the versions and the number of hashes of the lock file, by name."""
    lines = re.findall(r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", LOCK.read_text(), re.M)
    return {name: (number, hashes.count("--hash")) for name, number, hashes in lines}


def test_the_version_to_cite_is_the_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    assert PROJECT["dynamic"] == ["version"]


def test_the_lock_gives_every_package_a_version_and_hashes():
    found = locked()
    assert len(found) == sum(line[0] not in "# " for line in LOCK.read_text().splitlines())
    assert found["torch"][1] > 1 and found["numpy"][1] > 1  # a file for every platform


@pytest.mark.parametrize(
    "extra", ["", *sorted({*PROJECT["optional-dependencies"]} - {"bench", "sentences"})]
)  # neither peers nor the model behind one data set are locked
def test_the_lock_satisfies_the_floors(extra):
    found = locked()
    wanted = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for requirement in map(Requirement, wanted):
        if requirement.name != "biohash-mini":
            assert requirement.specifier.contains(found[canonicalize_name(requirement.name)][0])


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel from a copy, and unpack it beside links to its requirements alone: no extra, no test tool."""
    source, place = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "biohash_mini", source / "biohash_mini", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "biohash_command.py"):
        shutil.copy(ROOT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", source / "dist"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, source], check=True)
    (wheel,) = (source / "dist").iterdir()
    zipfile.ZipFile(wheel).extractall(place)
    wanted = Distribution.at(next(place.glob("*.dist-info"))).requires
    for name in needed(*(r for r in wanted if "extra ==" not in r)):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            if not (place / top).exists():  # several may share a folder
                (place / top).symlink_to(Path(found.locate_file(top)).resolve())
    return place


def python(place, code, *args):
    """Run code where nothing but the standard library and ``place`` can be imported; return what it printed."""
    start = f"import sys; sys.path.insert(0, {str(place)!r})\n{code}"
    done = subprocess.run([sys.executable, "-ISBc", start, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_data_alone(installed):
    package = installed / "biohash_mini"
    held = {p.relative_to(package) for p in package.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    there = {p.relative_to(ROOT / "biohash_mini") for p in (ROOT / "biohash_mini").rglob("*") if p.is_file()}
    assert {p for p in there if p.suffix != ".pyc" and "__pycache__" not in p.parts} == held
    assert Path("py.typed") in held and {".js", ".css", ".npz"} <= {p.suffix for p in held}
    about = Distribution.at(next(installed.glob("biohash_mini-*.dist-info")))
    assert about.version == VERSION
    assert about.read_text("top_level.txt").split() == ["biohash_command", "biohash_mini"]


@pytest.mark.slow
def test_the_package_imports_without_any_extra(installed):
    code = f"""
import importlib.util
print([name for name in {sorted(EXTRAS)} if importlib.util.find_spec(name)])
import biohash_mini, biohash_mini.cli, biohash_mini.datasets
print(biohash_mini.__file__)
"""
    missing, file = python(installed, code).splitlines()
    assert missing == "[]" and Path(file).is_relative_to(installed)


@pytest.mark.slow
@pytest.mark.parametrize("blocked", [[], ["fcntl"]], ids=["core", "no fcntl"])
def test_the_command_hashes_and_searches_without_any_extra(blocked, installed, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    code = f"sys.modules |= dict.fromkeys({blocked})\n"
    code += "from biohash_command import main; sys.exit(main())"
    files = ["--model", tmp_path / "m.safetensors", "--codes", tmp_path / "c.safetensors"]
    python(installed, code, "hash", tmp_path / "x.npy", "--hash-length", 3, "--activity", 0.1, *files)
    rows = [*csv.DictReader(python(installed, code, "search", tmp_path / "x.npy", *files, "--top", 2).splitlines())]
    assert len(rows) == 120
    assert {row["distance"] for row in rows if row["rank"] == "1"} == {"0"}
