"""From an executed notebook to a page: order, folds, figures, quiz, the entry to cite, the PDF."""

import sys
from types import SimpleNamespace

import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document
from matplotlib import pyplot as plt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from biohash_mini.reproduction import figures as ours
from biohash_mini.reproduction import plots
from book.build import ROOT
from book.chapter import minus, prepare

sys.path.append(str(ROOT / "book" / "_ext"))
import ebook
import figures
import quiz
import reader


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


def test_legends_and_names_of_axes_stay_inside_a_narrow_picture():
    plots.use_style()
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3))
    for i in range(6):
        axes[0].plot([0, 1], label=f"method number {i}")
    axes[1].set_xlabel("points of mAP that were gained (right) or lost (left), with two units on")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    assert ours.restack(figure)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == [f"method number {i}" for i in range(6)]
    for box in (legend.get_window_extent(), axes[1].xaxis.label.get_window_extent()):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    plt.close(figure)


def test_a_column_of_panels_becomes_narrow_and_no_taller():
    figure, _ = plt.subplots(2, 1, figsize=(7.4, 5))
    assert ours.restack(figure)
    assert figure.get_size_inches().tolist() == [ours.NARROW, 5]
    plt.close(figure)


def test_six_panels_stand_in_two_columns_and_long_names_of_rows_above_their_dots():
    figure, axes = plt.subplots(2, 3, figsize=(7.6, 5))
    axes[0, 0].plot([1, 2], [0, 1], "o")
    axes[0, 0].set_yticks([0, 1], ["a name of more than sixteen letters", "short"])
    assert ours.restack(figure)
    assert axes[1, 2].get_subplotspec().get_geometry()[:2] == (3, 2)
    assert [text.get_text() for text in axes[0, 0].texts] == ["a name of more than sixteen letters", "short"]
    assert not axes[0, 0].yaxis.get_tick_params()["labelleft"]
    plt.close(figure)


def test_powers_of_ten_stay_beside_their_axis():
    figure, axes = plt.subplots(1, 2)
    axes[1].plot([1, 2], [1e-3, 10])
    axes[1].set_yscale("log")
    assert ours.restack(figure)
    assert not axes[1].texts and axes[1].yaxis.get_tick_params()["labelleft"]
    plt.close(figure)


def test_rows_with_names_above_them_have_room_for_these():
    figure, ax = plt.subplots(figsize=(7.4, 3))
    ax.plot(range(20), range(20), "o")
    ax.set_yticks(range(20), ["a name of more than sixteen letters"] * 20)
    assert ours.restack(figure)
    assert figure.get_figheight() > 20 * ours.ROW
    plt.close(figure)


def test_numbers_below_zero_have_a_minus_and_code_and_formulas_keep_theirs():
    assert minus("from -0.8 to +2.5 (-7), k-means, 2020-11, 3-4") == "from −0.8 to +2.5 (−7), k-means, 2020-11, 3-4"
    kept = "`top -5`, $x^{-1}$, $-1$ and [a figure](a-1.svg)"
    assert minus(kept) == kept


def test_a_styled_table_looks_like_the_others_and_zero_has_no_sign(tmp_path):
    html = '<table id="T_1"><td id="a">-0.0</td><td>-0.25</td><td>a-1</td></table>'
    cell = new_code_cell("table.style", outputs=[new_output("display_data", data={"text/html": html})])
    page = prepare(new_notebook(cells=[new_markdown_cell("# Title"), cell]), "01_a", tmp_path)
    want = '<table class="dataframe" id="T_1"><td id="a">0.0</td><td>−0.25</td><td>a-1</td></table>'
    assert page.cells[1].outputs[0].data["text/html"] == want


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


@pytest.mark.parametrize("there", [[], reader.WHOLE[:1], reader.WHOLE])
def test_the_download_button_offers_the_whole_book_if_it_was_made(there, tmp_path):
    (tmp_path / "book" / "_beside").mkdir(parents=True)
    for name in there:
        (tmp_path / "book" / "_beside" / name).touch()
    theirs = {"label": "download-pdf-button", "text": ".pdf"}
    group = {"label": "download-buttons", "buttons": [theirs]}
    context = {"header_buttons": [group], "pathto": lambda name, kind: f"../{name}"}
    reader.offer_whole(SimpleNamespace(srcdir=tmp_path), "notebooks/01_a", "", context, None)
    assert [button.get("url") for button in group["buttons"]] == [*(f"../{name}" for name in there), None]
    assert theirs["text"] == "Print this page"


def test_a_drawing_of_the_epub_obeys_the_standard():
    svg = '<path id="blank" transform="scale(2)"/><path d="M0 0"/><image id="image1f" image-rendering="pixelated"/>'
    want = '<path d="" id="blank" transform="scale(2)"/><path d="M0 0"/><image style="image-rendering: pixelated"/>'
    assert ebook.sound(svg) == want


def test_a_formula_of_the_epub_keeps_its_number_and_loses_its_markup():
    assert ebook.formula(r'<span class="eqno">(3.1)<a href="#e">#</a></span>\[a &lt; b\]') == ("3.1", r"\[a < b\]")
    assert ebook.formula(r"\(k\)") == ("", r"\(k\)")


def test_a_printed_quiz_letters_its_answers_and_gives_the_right_one_below():
    def line(kind, *words):
        return nodes.paragraph("", "", *words, classes=kind.split())

    def answer(text, kind, why):
        words = [nodes.raw("", "<input>", format="html"), nodes.Text(text)]
        return [line("quiz-answer", *words), line(f"quiz-why {kind}", nodes.strong("", "?"), nodes.Text(why))]

    ask = line("quiz-ask", nodes.Text("How many?"))
    group = nodes.container("", ask, *answer("One", "wrong", "Too few."), *answer("Two", "right", "As many as ears."))
    page = new_document("page")
    page += nodes.container("", group, classes=["quiz"])
    quiz.PrintedQuiz(page).run()
    questions, answers = page.children
    assert [n.astext() for n in questions.findall(nodes.paragraph)] == ["How many?", "One", "Two"]
    assert answers.astext() == "Answers. 1 (b): As many as ears."
