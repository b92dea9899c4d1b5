"""Nothing in the repository reads or writes a format that can run code when it is read."""

import ast
from pathlib import Path

import pytest

import biohash_mini

ROOT = Path(biohash_mini.__file__).parent.parent
FILES = [path for room in ("biohash_mini", "tools", "book") for path in sorted((ROOT / room).rglob("*.py"))]
FORBIDDEN = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def executable_reads(source):
    """Return what a module imports or calls that unpickles, or evaluates text."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module.split(".")[0]} & FORBIDDEN
        elif isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}
            if name == "torch.load" and given.get("weights_only") != "True":
                found.add("torch.load")
            if given.get("allow_pickle", "False") != "False" or name in (
                "torch.save",
                "eval",
                "exec",
                "pd.read_pickle",
            ):
                found.add(name)
    return found


def test_the_search_finds_what_it_looks_for():
    assert executable_reads("import pickle\nfrom joblib import load") == {"pickle", "joblib"}
    assert executable_reads("np.load(p, allow_pickle=True)\ntorch.load(p)\neval(x)") == {
        "np.load",
        "torch.load",
        "eval",
    }
    assert executable_reads("np.load(p, allow_pickle=False)\ntorch.load(p, weights_only=True)\nmodel.eval()") == set()
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_can_run_code_that_a_file_brings(path):
    assert executable_reads(path.read_text("utf-8")) == set()
