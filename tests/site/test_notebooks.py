"""Every chapter executes on the embedded data, and is committed in the agreed form."""

import re

import nbformat
import pytest

from book.build import execute_all, notebooks

CHAPTERS = pytest.mark.parametrize("chapter", notebooks(), ids=lambda path: path.stem)


@pytest.fixture(scope="session")
def outcomes(request):
    """Execute the selected chapters together, so that two run at a time."""
    selected = [item.callspec.params["chapter"] for item in request.session.items if "outcomes" in item.fixturenames]
    return execute_all(selected)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@CHAPTERS
def test_chapter_executes_to_its_end(chapter, outcomes):
    if outcomes[chapter] is not None:
        raise outcomes[chapter]


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
