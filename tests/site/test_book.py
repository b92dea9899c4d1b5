"""The built book in a real browser, from files and with the network closed. `make book` builds it first."""

import posixpath
import re
import zipfile
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from book import build
from book._ext import policy, printed
from book.build import BUILD, settings
from tests.widgets.browser import until

HTML = BUILD / "html"
PAGES = sorted(p for folder in ("book", "notebooks") for p in (HTML / folder).glob("*.html"))

pytestmark = pytest.mark.book
EVERY_PAGE = pytest.mark.parametrize("file", PAGES, ids=lambda path: path.stem)


def test_there_is_a_book():
    assert PAGES, "run make book first"


@cache
def parsed(file):
    return Page(file)


class Page(HTMLParser):
    """What a page points to and what it shows."""

    def __init__(self, file):
        super().__init__()
        self.links, self.ids, self.images = set(), set(), []
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids.add(attributes.get("id"))
        self.links |= {attributes[name] for name in ("href", "src") if attributes.get(name)}
        if tag == "img":
            self.images.append(attributes)


@EVERY_PAGE
def test_links_inside_the_book_lead_somewhere(file):
    broken = []
    for link in parsed(file).links:
        url = urlsplit(link)
        if url.scheme or url.netloc:
            continue
        target = (file.parent / unquote(url.path)).resolve() if url.path else file
        anchor = unquote(url.fragment) if target.suffix == ".html" else ""
        if not target.exists() or (anchor and anchor not in parsed(target).ids):
            broken.append(link)
    assert not broken


@EVERY_PAGE
def test_every_figure_says_what_it_shows(file):
    words = {image["src"]: image.get("alt") or "../_images" for image in parsed(file).images}
    assert not [src for src, alt in words.items() if alt.startswith("../_images")]


@EVERY_PAGE
def test_the_page_opens_without_a_complaint_and_without_the_network(file, open_file):
    page = open_file(file, width=1280)
    page.wait_for_function("!window.MathJax || (MathJax.startup && MathJax.startup.promise)")
    page.evaluate("window.MathJax?.startup?.promise")
    assert page.locator("mjx-container > svg").count() == page.locator("mjx-container").count()
    assert not page.locator("[data-mml-node=merror]").count()
    assert page.locator("article h1").inner_text()
    (BUILD / "screenshots").mkdir(exist_ok=True)
    page.screenshot(path=BUILD / "screenshots" / f"{file.stem}.png", full_page=True, timeout=60_000)


@EVERY_PAGE
def test_a_phone_need_not_scroll_sideways(file, open_file):
    page = open_file(file, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("file", [p for p in PAGES if p.parent.name == "notebooks"], ids=lambda path: path.stem)
def test_a_chapter_can_be_opened_in_colab_and_binder(file):
    repository = settings()["repository"]
    where = repository["url"].removeprefix("https://github.com/"), repository["branch"]
    links = {unquote(link) for link in parsed(file).links}
    chapter = f"notebooks/{file.stem}.ipynb"
    assert "https://colab.research.google.com/github/{}/blob/{}/{}".format(*where, chapter) in links
    assert "https://mybinder.org/v2/gh/{}/{}?urlpath=lab/tree/{}".format(*where, chapter) in links


@EVERY_PAGE
def test_a_shared_link_shows_a_card(file):
    tags = dict(re.findall(r'<meta property="(og:\w+)" content="([^"]+)"', file.read_text("utf-8")))
    assert {"og:title", "og:description", "og:url", "og:image"} <= set(tags)
    assert (HTML / "_static" / tags["og:image"].rsplit("/", 1)[1]).exists()


def test_the_cover_names_the_paper_and_answers_on_its_first_screen(open_file):
    page = open_file(HTML / "book" / "intro.html", width=1400)
    text = page.locator("article").inner_text()
    assert "Bio-Inspired Hashing for Unsupervised Similarity Search" in text
    for start in ("Where is BioHash first?", "Which tables match?", "Which do not?", "What surprised us?"):
        assert page.get_by_text(start).bounding_box()["y"] < 900
    assert page.locator("figure").first.bounding_box()["y"] < 700


@EVERY_PAGE
def test_a_page_tells_the_browser_to_ask_no_other_server(file):
    head = file.read_text("utf-8").split("</head>")[0]
    assert policy.META in head and head.index(policy.META) < head.index("<script")


def test_the_cover_moves(open_file):
    widget = open_file(HTML / "book" / "intro.html", width=1280).locator(".bh-circle")
    widget.get_by_label("units, m").fill("7")
    assert widget.locator(".bh-units text").count() == 7


AXE = BUILD / "axe" / "package" / "axe.min.js"
CHAPTERS = [p for p in PAGES if p.parent.name == "notebooks"]
SECOND = [p for p in CHAPTERS if "In short." in p.read_text("utf-8")]  # chapters in the form of the second edition
EVERY_CHAPTER = pytest.mark.parametrize("file", CHAPTERS, ids=lambda path: path.stem)
EVERY_SECOND = pytest.mark.parametrize("file", SECOND, ids=lambda path: path.stem)


@EVERY_PAGE
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_barriers_that_a_program_can_find(file, scheme, open_file):
    if not AXE.exists():
        pytest.skip("axe-core is not there: make check fetches it, given npm and the network")
    page = open_file(file, width=1280, color_scheme=scheme)
    page.wait_for_load_state("load")
    page.evaluate("window.MathJax?.startup?.promise")
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run({preload: false, runOnly: ['wcag2a', 'wcag2aa']})")["violations"]
    assert not [(v["id"], len(v["nodes"]), v["nodes"][0]["html"][:160]) for v in found]


@EVERY_CHAPTER
def test_ids_of_a_page_are_unique(file):
    ids = [tag["id"] for tag in BeautifulSoup(file.read_text("utf-8"), "html.parser").find_all(id=True)]
    assert sorted(ids) == sorted(set(ids))


@EVERY_CHAPTER
def test_a_chapter_has_a_number_and_says_how_to_cite_it(file):
    page = BeautifulSoup(file.read_text("utf-8"), "html.parser")
    number = int(file.stem[:2])
    assert page.select_one("article h1").get_text().startswith(f"{number}. ")
    assert f"chapter   = {{{number}}}" in page.select_one("details.cite-this pre").get_text()
    labels = [link.get_text(strip=True) for link in page.select(".article-header-buttons a")]
    assert {"Suggest an edit", "Report a problem", "Repository"} <= set(labels)


@EVERY_SECOND
def test_every_figure_has_a_number_and_a_caption(file):
    page = BeautifulSoup(file.read_text("utf-8"), "html.parser")
    assert not [img["src"] for img in page.select(".cell_output img") if not img.find_parent("figure")]
    for figure in page.select(".cell_output figure"):
        assert re.match(r"Figure \d+\.\d+ \w", figure.figcaption.get_text().strip())


@EVERY_SECOND
def test_the_first_screen_answers(file, open_file):
    page = open_file(file, width=1400)
    assert page.get_by_text("In short.").bounding_box()["y"] < 500
    shown = page.locator("article :is(figure, .bh)").first
    assert shown.bounding_box()["y"] < 760
    if "bh" in shown.get_attribute("class").split():  # a widget is on the first screen from top to bottom
        assert shown.bounding_box()["y"] + shown.bounding_box()["height"] <= 900
    assert page.evaluate("document.documentElement.scrollHeight") < 15_000


@EVERY_SECOND
def test_the_quiz_explains_the_answer_that_is_chosen(file, open_file):
    page = open_file(file, width=1280)
    questions = page.locator(".quiz [role=radiogroup]")
    assert questions.count() == 3
    for question in questions.all():
        assert not question.locator(".quiz-why:visible").count()
        question.get_by_role("radio").first.check()
        said = question.locator(".quiz-why:visible")
        assert said.count() == 1
        assert question.get_by_role("status").text_content() == said.text_content()


@EVERY_SECOND
def test_figures_have_one_picture_for_the_page_at_hand(file, open_file):
    for scheme in ("light", "dark"):
        page = open_file(file, width=1280, color_scheme=scheme)
        figure = page.locator(".cell_output figure").first
        assert figure.locator("img:visible").count() == 1
        assert figure.locator(f".on-{scheme} img").is_visible()


def test_ties_move_in_their_chapter(open_file):
    widget = open_file(HTML / "notebooks" / "04_ties.html", width=1280).locator(".bh-ties")
    widget.get_by_role("button", name="Relevant last").click()
    worst = widget.locator(".bh-verdict").inner_text()
    widget.get_by_role("button", name="Relevant first").click()
    assert widget.locator(".bh-verdict").inner_text() != worst


def test_a_wide_table_keeps_its_first_column_and_fades_where_it_goes_on(open_file):
    page = open_file(HTML / "book" / "report.html", width=390)
    frame = page.get_by_role("region", name="Table 1: MNIST, class labels", exact=True)
    assert frame.evaluate("e => e.scrollWidth > e.clientWidth && e.clientWidth < 390")
    faded = "e => e.classList.contains('more-right') && getComputedStyle(e).maskImage != 'none'"
    until(lambda: frame.evaluate(faded))
    before = frame.locator("th[scope=row]").first.bounding_box()
    frame.evaluate("e => e.scrollTo(e.scrollWidth, 0)")
    until(lambda: not frame.evaluate(faded))
    assert frame.locator("th[scope=row]").first.bounding_box()["x"] == before["x"]


def test_a_wide_formula_fades_where_it_goes_on(open_file):
    page = open_file(HTML / "notebooks" / "02_learning_rule.html", width=390)
    page.wait_for_selector("mjx-container.more-right")


def test_tables_of_chapters_and_of_text_keep_their_first_column(open_file):
    places = {"notebooks/05_mnist.html": "table.dataframe tbody th", "book/data.html": "table tbody td"}
    for file, first in places.items():
        cell = open_file(HTML / file, width=390).locator(f"article {first}").first
        before = cell.bounding_box()["x"]
        cell.evaluate("e => e.closest('.text_html, .pst-scrollable-table-container').scrollTo(60, 0)")
        assert abs(cell.bounding_box()["x"] - before) <= 1  # the border of the table


@pytest.mark.parametrize("width", [390, 1400])
def test_the_errata_show_what_is_corrected_and_fold_their_tests(width, open_file):
    page = open_file(HTML / "book" / "errata.html", width=width)
    row = page.locator("article tbody tr").nth(1)
    corrected = row.locator("td").nth(2).bounding_box()
    assert corrected["x"] >= 0 and corrected["x"] + corrected["width"] <= width
    assert not row.locator("code").first.is_visible()
    row.get_by_text("2 tests").click()
    assert row.locator("code").first.is_visible()


@pytest.mark.parametrize("words", ["BioHash", "hash length", "average precision", "ties", "HammingIndex"])
def test_search_finds_chapters_before_the_reference(words, open_file):
    page = open_file(HTML / "search.html", width=1280)
    page.wait_for_function("Search.hasIndex()")
    found = page.evaluate(f"Search._performSearch(...Search._parseQuery('{words}')).map((r) => r[0]).reverse()")
    assert found[0].startswith("notebooks/") and "book/api" in found
    assert found.index("book/api") > max(i for i, name in enumerate(found) if name.startswith("notebooks/"))


def test_the_records_can_be_had_as_one_crate():
    (link,) = (link for link in parsed(HTML / "book" / "report.html").links if link.endswith(".zip"))
    with zipfile.ZipFile(HTML / "book" / link) as bundle:
        assert "ro-crate-metadata.json" in bundle.namelist() and "results/mnist.jsonl" in bundle.namelist()


def test_the_circle_explorer_moves_in_its_chapter(open_file):
    page = open_file(HTML / "notebooks" / "03_circle.html", width=1280)
    widget = page.locator(".bh-circle")
    widget.scroll_into_view_if_needed()
    before = widget.locator(".bh-units").inner_html()
    widget.get_by_label("units, m").fill("7")
    assert widget.locator(".bh-units text").count() == 7
    assert widget.locator(".bh-units").inner_html() != before


def test_the_playground_steps_in_its_chapter(open_file):
    page = open_file(HTML / "notebooks" / "02_learning_rule.html", width=1280)
    widget = page.locator(".bh-playground")
    widget.scroll_into_view_if_needed()
    widget.get_by_role("button", name="Step").click()
    assert re.search(r"step 1\b", widget.locator(".bh-verdict").inner_text())


@EVERY_PAGE
@pytest.mark.parametrize("whole", [build.PAPER.name, build.EBOOK.name])
def test_a_page_offers_the_whole_book_if_it_is_beside_the_pages(file, whole):
    assert (f"../{whole}" in parsed(file).links) == (HTML / whole).exists()


@pytest.mark.filterwarnings("ignore::bs4.XMLParsedAsHTMLWarning")  # lxml is not there
def test_the_epub_has_its_formulas_and_figures_without_scripts():
    if not build.EBOOK.exists():
        pytest.skip("make epub has not been run")
    assert build.EBOOK.stat().st_size < 12e6
    with zipfile.ZipFile(build.EBOOK) as book:
        contents = {name: book.read(name).decode() for name in book.namelist() if name.endswith((".xhtml", ".opf"))}
        package = BeautifulSoup(contents.pop("content.opf"), "html.parser")
        for name, text in contents.items():
            page = BeautifulSoup(text, "html.parser")
            assert not page.find_all(["script", "input", "button"])
            assert not re.search(r"\\[(\[]", "".join(node.get_text() for node in page.select(".math")))
            for image in page.find_all("img"):
                assert (
                    image["alt"] and posixpath.normpath(f"{posixpath.dirname(name)}/{image['src']}") in book.namelist()
                )
            (item,) = package.select(f'item[href="{name}"]')
            assert (item.get("properties") == "mathml") == bool(page.math)
    chapters = [name for name in contents if name.startswith("notebooks/")]
    assert len(chapters) == len(build.notebooks()) and all("<img" in contents[name] for name in chapters)


def test_a_table_on_paper_keeps_every_cell_and_breaks_only_the_widest_columns():
    cells = "<tr><th rowspan=2>LSH</th><td>2</td><td>{0}</td></tr><tr><td>4</td><td>{0}</td></tr>".format("word " * 40)
    html = f"<table><tr><th></th><th>k</th><th></th></tr><tr><th>method</th><th></th><th></th></tr>{cells}</table>"
    table = printed.table_of(BeautifulSoup(html, "html.parser").table)
    rows = [[entry.astext() for entry in row] for row in table.findall(printed.nodes.row)]
    assert rows == [["method", "k", ""], ["LSH", "2", ("word " * 40).strip()], ["", "4", ("word " * 40).strip()]]
    size, columns, lines = printed.layout(rows, head=1)
    assert (size, lines) == ("footnotesize", 5)
    assert re.fullmatch(r"\{lr>\{\\raggedright\\arraybackslash\}p\{47.6em\}\}", columns)


def test_without_its_programs_a_whole_book_names_the_packages(monkeypatch, capsys):
    monkeypatch.setattr(build.shutil, "which", lambda program: None)
    assert build.main(["pdf"]) == 1
    assert "apt-get install texlive-xetex" in capsys.readouterr().err
    assert build.main(["epub"]) == 1
    assert "apt-get install chromium" in capsys.readouterr().err
