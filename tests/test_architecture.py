"""The rooms of the package and who may know whom, read from every import statement, those for types included."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import biohash_mini

PACKAGE = Path(biohash_mini.__file__).parent
LIBRARY = {"inputs", "storage", "plasticity", "circle", "datasets", "hashers", "codes", "counting", "search"} | {
    "metrics",
    "wiring",
    "uses",
    "distributed",
    "milvus",
    "export",
}
MAY_IMPORT = {  # a room, and the rooms it may know beside itself
    "inputs": set(),
    "storage": set(),
    "plasticity": {"inputs"},
    "circle": {"inputs"},
    # datasets -> hashers -> codes -> search -> metrics, the way of the data
    "datasets": {"inputs", "storage"},
    "hashers": {"inputs", "storage", "plasticity", "codes", "counting"},
    "codes": {"inputs", "storage", "counting"},
    "counting": set(),
    "search": {"inputs", "codes", "counting"},
    "metrics": {"inputs", "codes", "counting", "search"},
    "wiring": {"inputs", "hashers"},  # a stage before a hasher
    "uses": {"inputs", "codes"},
    # past one machine
    "distributed": {"inputs", "storage", "plasticity", "hashers", "codes"},
    "milvus": {"codes", "inputs", "storage"},
    "export": {"codes", "milvus", "storage"},
    "__init__": LIBRARY,
    # what is built on the library
    "reproduction": LIBRARY,
    "widgets": LIBRARY | {"reproduction"},
    "commands": LIBRARY | {"reproduction", "__init__"},
    "cli": LIBRARY | {"commands", "reproduction", "__init__"},
}
LONGEST = 300  # lines of a module


def name_of(path):
    """Return the dotted name of a module, that of its folder for a package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name, source, is_package, modules=MODULES):
    """Return the modules that a module imports from, anywhere in its source; of a package, its submodule if named."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: len(name.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names}
    return found & set(modules)


GRAPH = {name: imports(name, path.read_text("utf-8"), path.stem == "__init__") for name, path in MODULES.items()}


def room(name):
    """Return the part of the package that a module belongs to."""
    return [*name.split("."), "__init__"][1]


def known(name):
    """Return the other rooms that a module imports from."""
    return {room(other) for other in GRAPH[name]} - {room(name)}


def test_imports_are_found_wherever_they_stand():
    source = """
import a.b.c
from . import other, thing
if TYPE_CHECKING:
    from ..b import d
def f():
    from a.b.c import g
"""
    modules = {"a", "a.b", "a.b.c", "a.b.d", "a.x", "a.x.y", "a.x.other"}
    assert imports("a.x.y", source, False, modules) == {"a.b.c", "a.x.other", "a.x", "a.b.d"}
    assert imports("a.x", "from . import other, thing", True, modules) == {"a.x.other", "a.x"}
    assert sum(map(len, GRAPH.values())) > 100  # the graph of the package is not empty


def test_the_library_does_not_know_what_is_built_on_it():
    outside = {"reproduction", "widgets", "commands", "cli"}
    assert {name: known(name) & outside for name in GRAPH if room(name) in LIBRARY and known(name) & outside} == {}


@pytest.mark.parametrize("name", GRAPH)
def test_a_module_knows_only_the_rooms_its_own_may_know(name):
    assert known(name) <= MAY_IMPORT[room(name)]


def test_no_modules_import_each_other_in_a_circle():
    try:
        list(TopologicalSorter(GRAPH).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_an_experiment_is_described_without_the_package():
    assert GRAPH["biohash_mini.reproduction.experiment"] == set()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_can_be_read_in_one_sitting(name):
    assert len(MODULES[name].read_text("utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("name", MODULES)
def test_texts_are_read_and_written_as_utf_8_whatever_the_locale(name):
    least = {"read_text": 1, "write_text": 2}  # arguments, of which the last is the encoding
    for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in least:
            assert len(node.args) + len(node.keywords) >= least[node.func.attr], ast.unparse(node)
