"""Every chapter executes on the embedded data, and is committed in the agreed form."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from book import build
from book.build import execute_all, notebooks
from tests.helpers import all_ended, wait_for

CHAPTERS = pytest.mark.parametrize("chapter", notebooks(), ids=lambda path: path.stem)


@pytest.fixture(scope="session")
def outcomes(request):
    """Execute the selected chapters together, so that two run at a time."""
    asking = [item for item in request.session.items if "outcomes" in item.fixturenames]
    return execute_all(list(dict.fromkeys(item.callspec.params["chapter"] for item in asking)))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@CHAPTERS
def test_chapter_executes_to_its_end(chapter, outcomes):
    if outcomes[chapter] is not None:
        raise outcomes[chapter]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@CHAPTERS
def test_chapter_shows_no_warning_and_no_series_as_it_prints_itself(chapter, outcomes):
    cells = nbformat.read(build.EXECUTED / chapter.name, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    plain = [output.data["text/plain"] for output in outputs if set(output.get("data", {})) == {"text/plain"}]
    assert not [text for text in plain if "dtype:" in text]


@CHAPTERS
def test_chapter_is_committed_without_outputs(chapter):
    cells = nbformat.read(chapter, as_version=4).cells
    assert not [cell.id for cell in cells if cell.get("outputs") or cell.get("execution_count")]


@CHAPTERS
def test_chapter_opens_with_a_title_and_has_one_parameters_cell(chapter):
    cells = nbformat.read(chapter, as_version=4).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in cells) == 1


@CHAPTERS
def test_the_claims_of_a_chapter_know_its_parameters(chapter):
    cells = [cell for cell in nbformat.read(chapter, as_version=4).cells if cell.cell_type == "code"]
    (own,) = (cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
    values: dict = {}
    exec(own, values)
    values = {name: values[name] for name in values.get("__annotations__", {})}
    for call in re.findall(r"^written_for\((.*)\)$", "\n".join(cell.source for cell in cells), re.MULTILINE):
        assert eval(f"dict({call})") == values


def test_a_kill_before_the_seal_leaves_no_copy_of_another_text_with_a_seal(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "EXECUTED", tmp_path / "executed")
    notebook, other = tmp_path / "chapter.ipynb", tmp_path / "other.ipynb"
    for path, text in ((notebook, "1 + 1"), (other, "2 + 2")):
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text, id="a")]), path)
    before = notebook.read_bytes()
    (tmp_path / "executed").mkdir()
    notebook.rename(tmp_path / "executed" / "chapter.ipynb")
    notebook.write_bytes(before)
    (tmp_path / "executed" / "chapter.sha256").write_text(build.fingerprint(notebook))
    assert build.is_fresh(notebook)
    notebook.write_bytes(other.read_bytes())
    monkeypatch.setattr("papermill.execute_notebook", lambda source, target, **_: shutil.copy(source, target))
    monkeypatch.setattr(build, "_sign", lambda path: None)
    monkeypatch.setattr(Path, "write_text", lambda *_: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception, match="killed"):
        build.execute(notebook)
    monkeypatch.undo()
    monkeypatch.setattr(build, "EXECUTED", tmp_path / "executed")
    notebook.write_bytes(before)  # an edit taken back
    assert not build.is_fresh(notebook)


BUILD = """
import signal
import sys
from pathlib import Path
from book import build

build.EXECUTED = Path(sys.argv[1]) / "executed"
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests themselves ignore it, behind nohup
    build.execute_all(sorted(Path(sys.argv[1]).glob("*.ipynb")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_no_kernel_and_begins_no_chapter(tmp_path, end):
    (tmp_path / "build.py").write_text(BUILD)
    for number in range(4):
        text = f"import fcntl, time\nmine = open('{number}.held', 'w')\nfcntl.flock(mine, 2)\ntime.sleep(200)"
        page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text, id="a")])
        nbformat.write(page, tmp_path / f"{number}.ipynb")
    command = [sys.executable, str(tmp_path / "build.py"), str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(build.ROOT)}, stderr=subprocess.DEVNULL)
    held = wait_for(lambda: len(found := [*tmp_path.glob("*.held")]) == 2 and found)
    process.send_signal(end)
    assert process.wait(30) != 0
    wait_for(lambda: all_ended(held))
    assert len([*tmp_path.glob("*.held")]) == 2
