"""From an executed notebook to a page: order, folds, figures, quiz, the entry to cite."""

import sys

import nbformat
import pytest
from matplotlib import pyplot as plt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from biohash_mini.reproduction import figures as ours
from book.build import ROOT
from book.chapter import prepare

sys.path.append(str(ROOT / "book" / "_ext"))
import figures


@pytest.fixture
def executed(monkeypatch):
    """Return a chapter with one figure, as a kernel leaves it."""
    shown = []
    monkeypatch.setattr(ours, "display", lambda *data, metadata, **options: shown.append((data[0], metadata)))
    figure, axes = plt.subplots(1, 2, sharey=True)
    axes[0].set_ylabel("mAP")
    ours.show(figure, "LSH\n  leads.", alt="Two panels.", name="fig-lead")
    outputs = [
        new_output("display_data", data=d if isinstance(d, dict) else {"text/plain": "caption"}, metadata=m)
        for d, m in shown
    ]
    drawn = new_code_cell("show(…)", metadata={"tags": ["lead", "hide-input"]}, outputs=outputs)
    own = new_code_cell("seed: int = 0", metadata={"tags": ["parameters"]})
    injected = new_code_cell("seed = 0", metadata={"tags": ["injected-parameters"]})
    return new_notebook(cells=[new_markdown_cell("# Title"), own, injected, new_markdown_cell("Text."), drawn])


def test_the_lead_comes_first_and_what_was_injected_goes(executed, tmp_path):
    page = prepare(executed, "01_a", tmp_path)
    assert [cell.source for cell in page.cells] == ["# Title", "show(…)", "seed: int = 0", "Text."]


def test_parameters_are_folded_under_their_own_name(executed, tmp_path):
    own = prepare(executed, "01_a", tmp_path).cells[2]
    assert "hide-input" in own.metadata["tags"]
    assert own.metadata["mystnb"]["code_prompt_show"] == "Parameters of this chapter"


def test_a_figure_is_written_wide_and_narrow_and_captioned_once(executed, tmp_path):
    page = nbformat.from_dict(prepare(executed, "01_a", tmp_path))
    (output,) = page.cells[1].outputs
    text = output["data"]["text/markdown"]
    assert text.startswith("````{figure} _figures/01_a-1.svg\n:name: fig-lead\n:alt: Two panels.\n\nLSH leads.\n")
    wide, narrow = ((tmp_path / "_figures" / f"01_a-1{kind}.svg").read_text("utf-8")[:400] for kind in ("", ".narrow"))
    assert wide != narrow


def test_panels_of_a_row_stack_with_the_label_they_shared():
    figure, axes = plt.subplots(1, 2, sharey=True)
    axes[0].set_ylabel("mAP")
    assert ours.restack(figure)
    assert figure.get_figwidth() == ours.NARROW
    assert [ax.get_ylabel() for ax in axes] == ["mAP", "mAP"]
    plt.close(figure)


def test_a_column_of_panels_becomes_narrow_and_no_taller():
    figure, _ = plt.subplots(2, 1, figsize=(7.4, 5))
    assert ours.restack(figure)
    assert figure.get_size_inches().tolist() == [ours.NARROW, 5]
    plt.close(figure)


def test_a_grid_of_pictures_is_not_stacked():
    figure, _ = plt.subplots(2, 5)
    assert not ours.restack(figure)
    plt.close(figure)


@pytest.mark.parametrize("color", ["#0072b2", "#332288", "#882255", "#661100", "#000000", "#666666"])
def test_every_ink_can_be_read_on_a_dark_page(color):
    there = figures.on_dark(color)
    rgb = tuple(int(there[i : i + 2], 16) for i in (1, 3, 5))
    assert figures.contrast(rgb, figures.GROUND) >= 4.5


def test_a_dark_drawing_leaves_photographs_alone():
    svg = '<svg width="1pt"><image xlink:href="data:image/png;base64,a#000000"/><path style="fill: #000000"/></svg>'
    there = figures.dark(svg)
    assert "base64,a#000000" in there
    assert f"fill: {figures.INK}" in there and there.startswith(f'<svg fill="{figures.INK}"')


def test_black_on_white_has_the_largest_contrast():
    assert figures.contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
