"""The site around the chapters: generated pages, launch buttons, workflows, the zip, the container to work in."""

import hashlib
import json
import re
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager

from biohash_mini import METHODS
from biohash_mini.cli import build_parser
from biohash_mini.reproduction import results
from biohash_mini.reproduction.declarations import EXPERIMENTS
from biohash_mini.reproduction.paper import TABLES
from biohash_mini.reproduction.steps import EXTRACTED, commands
from book import build, cover, one_page, pages, records, report_page
from tests.helpers import record

WORKFLOWS = sorted((build.ROOT / ".github" / "workflows").glob("*.yml"))
EVERY_WORKFLOW = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


# ---------------------------------------------------------------- contents


def test_the_table_of_contents_names_every_chapter_and_no_missing_file():
    toc = yaml.safe_load((build.ROOT / "_toc.yml").read_text())
    files = {toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])}
    missing = [f for f in files if not list(build.ROOT.glob(f"{f}.*"))]
    assert not missing
    assert {f"notebooks/{path.stem}" for path in build.notebooks()} <= files


def test_every_test_named_in_the_errata_exists_and_every_equation_has_one():
    page = (build.ROOT / "book" / "errata.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    missing = [n for n in named if f"\ndef {n[1]}(" not in (build.ROOT / n[0]).read_text("utf-8")]
    rows = {int(row[0]): row[1] for row in re.findall(r"^\| \((\d+)\) \|(.*)$", page, re.MULTILINE)}
    assert not missing
    assert sorted(rows) == list(range(1, 19)) and all("::test_" in row for row in rows.values())


def test_the_reference_names_modules_that_exist_and_every_method():
    page = (build.ROOT / "book" / "api.md").read_text("utf-8")
    modules = re.findall(r"\.\. automodule:: (\S+)", page)
    assert modules
    assert [name for name in modules if find_spec(name) is None] == []
    assert "_generated/methods.md" in page
    assert re.findall(r"autoclass:: (\w+)", pages.methods_page()) == [kind.__name__ for kind in METHODS.values()]


# ---------------------------------------------------------------- the report


def test_without_results_every_judged_cell_is_missing(tmp_path):
    cells = report_page.every_cell(tmp_path)
    assert set(cells) == {*TABLES, *EXPERIMENTS}
    assert {c["verdict"] for found in cells.values() for c in found} <= {"missing", "reported only"}
    assert "**0** are compared like with like" in report_page.summary_page(cells, tmp_path)
    text = report_page.tables_page(cells, where=tmp_path)
    assert text.count("Nothing is recorded yet") == len(cells)  # a line for each, and no empty table
    assert "Provenance" not in text and "<table" not in text
    assert "There was none." in one_page.page(cells, tmp_path)


def test_sentence_tiles_and_tables_add_up_to_what_the_paper_prints():
    printed = sum(value is not None for table in TABLES.values() for row in table.rows.values() for value in row)
    cells = report_page.every_cell()
    page = BeautifulSoup(report_page.summary_page(cells), "html.parser")
    tiles = [int(tile.get_text()) for tile in page.select(".tile b")]
    rows = [[int(td.get_text().replace("·", "0")) for td in tr.find_all("td")] for tr in page.table.find_all("tr")[1:]]
    assert sum(tiles) == printed and f"Of the **{printed}** values" in page.get_text()
    assert rows[-1] == [*tiles, printed] == [sum(column) for column in zip(*rows[:-1], strict=True)]
    assert all(sum(row[:-1]) == row[-1] for row in rows)
    said = re.findall(r"\*\*(\d+)\*\*", page.get_text().split("\n")[0])
    assert sum(map(int, said[1:])) == printed
    inside = sum(map(int, re.findall(r"(\d+) (?:hash|search|are divided)", page.get_text())))
    assert inside == report_page.totals(report_page.all_of(cells))["not like for like"]


def test_the_index_has_titles_and_every_table_its_commands():
    cells = report_page.every_cell()
    page = BeautifulSoup(report_page.summary_page(cells), "html.parser")
    assert [a.get_text() for a in page.select("table a")] == [report_page.title_of(name) for name in cells]
    text = report_page.tables_page(cells)
    for name in cells:
        for command in commands(name):
            assert f"`{command}`" in text
            build_parser().parse_args(command.split()[1:])  # exits if it cannot be typed so


def test_features_are_made_as_the_records_say():
    for data, (_, side) in EXTRACTED.items():
        network = data.removeprefix("cifar10-")
        assert {r["layer"] for r in results.read(data)} <= {f"{network} pool5, 512 components, {side} px"}
        assert {r["layer"] for r in results.read(f"{data}-pooled")} <= {f"{network} pooled, {side} px"}


def test_names_of_experiments_in_the_register_lead_to_their_tables():
    text = report_page.tables_page(report_page.every_cell())
    register = text[text.index("(report-register)=") :]
    assert "[`choices-mnist`](report-choices-mnist)" in register
    assert "**[Table 1: MNIST, class labels](report-mnist)**, FlyHash, k = 2. With two" in register


def test_a_recorded_cell_shows_its_value_bounds_and_provenance(tmp_path):
    results.append("mnist", record(), tmp_path)
    cells = report_page.every_cell(tmp_path)
    assert "**1** are compared like with like, each the mean over 1 seed" in report_page.summary_page(cells, tmp_path)
    text = report_page.tables_page(cells, ["05_mnist"], tmp_path)
    for part in (
        "12.00 ✓",
        "paper 12.45",
        "<td>40.00</td>",
        "abc&lt;def",
        "2026-01-02",
        "0" * 64,
        "1 thread",
        "2 minutes",
    ):
        assert part in text
    assert "notebooks/05_mnist.ipynb" in text
    assert "notebooks/06_cifar10.ipynb" not in text  # not among the chapters at hand


def test_a_deviation_without_a_reason_is_listed_as_such(tmp_path):
    results.append("mnist", record(value=1.0), tmp_path)
    text = report_page.tables_page(report_page.every_cell(tmp_path), where=tmp_path)
    assert "- Table 1: MNIST, class labels, LSH, k = 2: no reason yet." in text


def test_the_recorded_results_make_a_page_with_every_table_and_balanced_markup():
    cells = report_page.every_cell()
    text = report_page.summary_page(cells) + report_page.tables_page(cells, [path.stem for path in build.notebooks()])
    assert all(f"(report-{name})=" in text and f'href="#report-{name}"' in text for name in cells)
    for tag in ("table", "tr", "td", "th", "div", "details"):
        assert len(re.findall(f"<{tag}[ >]", text)) == text.count(f"</{tag}>")


def test_chapters_of_the_report_exist():
    assert {exp.chapter for exp in EXPERIMENTS.values()} <= {path.stem for path in build.notebooks()}


def test_rows_that_read_one_measurement_in_two_ways_cost_its_time_once(tmp_path):
    both = [("BioHash top", 0.0), ("BioHash bottom", 30.0)]  # the second row waits for less, it was hashed already
    for label, less in both:
        results.append("smoothness", record(label, seconds=90.0 - less), tmp_path)
    results.append("smoothness", record("LSH top", seconds=150.0), tmp_path)
    assert "4 minutes in all" in report_page.tables_page(report_page.every_cell(tmp_path), where=tmp_path)


# ---------------------------------------------------------------- the one page, and the records for programs


def test_a_claim_counts_where_the_paper_and_we_have_both_rows():
    values = {"LSH": (20.0, 21.0), "BioHash": (40.0, 20.0), "ITQ": (30.0, None), "FlyHash": (None, 90.0)}
    cells = {"mnist": [cell(method, *pair) for method, pair in values.items()]}
    first = one_page.Claim("first", ("mnist",), one_page.over_rivals("BioHash"))
    assert list(one_page.compared(first, cells)) == [(20.0, -1.0)]
    assert not list(one_page.compared(first._replace(lead=one_page.over("BioHash", "ITQ")), cells))


def test_every_claim_of_the_one_page_can_be_compared():
    cells = report_page.every_cell()
    assert all(list(one_page.compared(claim, cells)) for claim in one_page.CLAIMS)


def test_codecheck_lists_every_results_file_and_is_current():
    text = (build.ROOT / "codecheck.yml").read_text("utf-8")
    assert text == records.codecheck(build.ROOT / "results"), "python book/build.py codecheck"
    check = yaml.safe_load(text)
    assert text.startswith("---\n") and check["version"] == records.CODECHECK
    listed = {entry["file"] for entry in check["manifest"]}
    assert listed == {f"results/{path.name}" for path in (build.ROOT / "results").glob("*.jsonl")}
    assert check["paper"]["title"] in (build.ROOT / "book" / "references.bib").read_text("utf-8")


def test_the_crate_describes_every_file_it_holds_by_its_checksum(tmp_path):
    with zipfile.ZipFile(records.pack(tmp_path / "records.zip")) as bundle:
        contents = {name: bundle.read(name) for name in bundle.namelist()}
    graph = {e["@id"]: e for e in json.loads(contents.pop("ro-crate-metadata.json"))["@graph"]}
    about = graph["ro-crate-metadata.json"]
    assert about["conformsTo"]["@id"].startswith("https://w3id.org/ro/crate/") and about["about"] == {"@id": "./"}
    root = graph["./"]
    assert root["@type"] == "Dataset" and {"name", "description", "datePublished", "license"} <= set(root)
    assert {part["@id"] for part in root["hasPart"]} == set(contents)
    assert {Path(name).name for name in contents} == {p.name for p in results.folder().iterdir()}
    for name, content in contents.items():
        assert graph[name]["@type"] == "File" and graph[name]["sha256"] == hashlib.sha256(content).hexdigest()
    assert {"SoftwareSourceCode", "ScholarlyArticle", "CreateAction", "Person", "Organization"} <= {
        entity["@type"] for entity in graph.values()
    }


def test_every_reference_within_the_crate_leads_to_an_entity():
    graph = json.loads(records.metadata())["@graph"]
    known = {entity["@id"] for entity in graph}
    assert len(known) == len(graph)
    values = [v for entity in graph for v in entity.values()]
    named = [
        v["@id"] for value in values for v in (value if isinstance(value, list) else [value]) if isinstance(v, dict)
    ]
    assert set(named) - known == {records.CRATE}


# ---------------------------------------------------------------- the cover


def cell(method, paper, ours, verdict="reproduced"):
    return {"method": method, "hash_length": 16, "paper": paper, "ours": ours, "verdict": verdict}


def test_the_lead_is_over_the_best_other_method_of_the_table():
    cells = [cell("LSH", 20.0, 21.0), cell("ITQ", 30.0, 28.5), cell("BioHash", 40.0, 41.0), cell("BioConvHash", 60, 61)]
    assert cover.lead(cells, "mnist", 16, "paper") == 10.0
    assert cover.lead(cells, "mnist", 16, "ours") == 12.5
    assert cover.lead(cells[:2], "mnist", 16, "ours") is None


@pytest.mark.parametrize(
    ("verdicts", "kind"),
    [
        (["reproduced"] * 9 + ["close"], "matches"),
        (["reproduced"] * 9 + ["deviates"], "mostly"),
        (["reproduced"] * 5 + ["deviates"] * 5, "not"),
        (["not like for like"] * 5, "unlike"),
        (["missing"] * 5, "missing"),
    ],
)
def test_a_table_matches_as_far_as_its_cells_do(verdicts, kind):
    assert cover.matches([cell("LSH", 1.0, 1.0, verdict) for verdict in verdicts]) == kind


def test_the_cover_can_be_written_before_anything_is_recorded(tmp_path):
    text = cover.page(report_page.every_cell(tmp_path), tmp_path)
    assert "in 0 of 0 comparisons" in text
    assert (tmp_path / "_figures" / "leads.svg").exists()


def test_the_cover_links_only_tables_of_the_report():
    cells = report_page.every_cell()
    named = re.findall(r"\(report-([a-z0-9-]+)\)", cover.words(cells))
    assert named and set(named) <= set(cells)


# ---------------------------------------------------------------- the promises


def test_the_page_of_promises_shows_the_last_campaign(tmp_path):
    assert "make stress" in pages.promises_page(tmp_path)
    more = {"name": "kill -9: saving", "part": "faults", "tried": 3, "held": 3, "facts": {}}
    results.append("stress", {**record("faults"), **more, "tried": 99}, tmp_path)
    results.append("stress", {**record("faults"), **more, "seed": 1}, tmp_path)
    facts = {"median_us_wall": 70, "p99_wall": 2.5}
    load = {"name": "one query", "part": "load", "tried": 2, "held": 1, "facts": facts}
    results.append("stress", {**record("load"), **load, "seed": 1}, tmp_path)
    twice = {"name": "01_first", "part": "chapters", "tried": 9, "held": 8, "facts": {}}
    results.append("stress", {**record("chapters"), **twice, "commit": "abc"}, tmp_path)
    text = pages.promises_page(tmp_path)
    assert "**9 outputs** of 1 chapter: in 8 of them" in text and "by `abc`" in text
    assert "malformed" not in text and "01_first" not in text
    assert "**3 faults**: in 3 of them" in text and "99 " not in text
    assert "**2 limits**: in 1 of them" in text and "median 70 µs by the clock, 99% within 2.5 times the median" in text


# ---------------------------------------------------------------- what was tried


def test_the_page_of_what_was_tried_reads_its_numbers_from_the_records(tmp_path):
    entry = {"idea": "Wires", "chapter": "21_better_codes", "verdict": "Gains."}
    cells = '[{ experiment = "variants-mnist", method = "wiring", against = "as it is", hash_lengths = [2, 8] }]'
    lines = ["[[tried]]", *(f"{name} = {json.dumps(text)}" for name, text in entry.items()), f"records = {cells}"]
    (tmp_path / pages.TRIED).write_text("\n".join(lines))
    assert "| Wires | Gains. | – | – |" in pages.tried_page([], tmp_path)
    for method, value in (("as it is", 40.0), ("wiring", 63.0), ("wiring", 65.0)):
        key = {"method": method, "hash_length": 2, "profile": "full", "seed": int(value == 65)}
        results.append("variants-mnist", {**key, "value": value}, tmp_path)
    link = "[](../notebooks/21_better_codes.ipynb)"
    want = f"| Wires | Gains. | **MNIST**<br> *k*\u00a0=\u00a02:\u00a040.0\u00a0→\u00a064.0 | {link} |"
    assert want in pages.tried_page(["21_better_codes"], tmp_path)


def test_every_idea_that_was_tried_names_rows_that_exist_and_a_verdict():
    entries = tomllib.loads((build.ROOT / "results" / pages.TRIED).read_text("utf-8"))["tried"]
    assert all(entry["idea"] and entry["verdict"].endswith(".") and entry["chapter"] for entry in entries)
    for cells in (cells for entry in entries for cells in entry.get("records", [])):
        labels = {row.label for row in EXPERIMENTS[cells["experiment"]].all_rows()}
        assert {cells["method"], cells["against"]} <= labels


# ---------------------------------------------------------------- the status


def test_the_status_page_reads_what_papermill_wrote(tmp_path):
    run = {"duration": 61.4, "end_time": "2026-01-02T03:04:05+00:00"}
    host = {"machine": "x86_64", "threads": 2, "versions": {"torch": "2.13"}}
    about = {"papermill": run, "biohash": host, "language_info": {"version": "3.11"}}
    cell = {"cell_type": "code", "metadata": {"papermill": {"duration": 50.6}}}
    (tmp_path / "01_a.ipynb").write_text(json.dumps({"metadata": about, "cells": [cell, {"cell_type": "markdown"}]}))
    text = pages.status_page([tmp_path / "01_a.ipynb", tmp_path / "02_never.ipynb"])
    assert "| [](../notebooks/01_a.ipynb) | 61 | 51 | 1 | 2026-01-02 03:04 |" in text
    assert "| [](../notebooks/02_never.ipynb) | not executed |" in text
    assert "Executed on x86_64, 2 threads, Python 3.11, torch 2.13." in text


# ---------------------------------------------------------------- launch buttons, the zip


def test_the_repository_has_one_place_and_a_build_on_github_its_own(monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    ours = build.settings()
    assert ours["repository"]["url"].startswith("https://github.com/")
    assert {"colab_url", "binderhub_url"} <= set(ours["launch_buttons"])
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/fork")
    theirs = build.settings()
    assert theirs["repository"]["url"] == "https://github.com/someone/fork"
    assert theirs["html"]["baseurl"] == "https://someone.github.io/fork/"


def test_launched_chapters_fetch_the_package_on_colab_only(monkeypatch, tmp_path):
    if not (build.ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are tracked is not known")
    monkeypatch.setattr(build, "BUILD", tmp_path)
    tree, repository = build.launch(), build.settings()["repository"]
    assert not (tree / ".github").exists()
    for chapter in (tree / "notebooks").glob("*.ipynb"):
        first, *others = nbformat.read(chapter, as_version=4).cells
        assert repository["url"] in first.source
        assert f"--branch {repository['branch']}" in first.source
        assert others == nbformat.read(build.ROOT / "notebooks" / chapter.name, as_version=4).cells
    assert "google.colab" not in sys.modules
    exec(TransformerManager().transform_cell(first.source), {})  # would fail on get_ipython if it did anything


def test_the_zip_holds_the_site_in_one_folder(monkeypatch, tmp_path):
    (tmp_path / "html" / "book").mkdir(parents=True)
    (tmp_path / "html" / "index.html").write_text("first")
    (tmp_path / "html" / "book" / "intro.html").write_text("intro")
    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(build, "ARCHIVE", tmp_path / "site.zip")
    with zipfile.ZipFile(build.archive()) as bundle:
        assert bundle.namelist() == ["site/book/intro.html", "site/index.html"]


# ---------------------------------------------------------------- workflows and the environment


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"book", "build", "links", "nightly"}


@EVERY_WORKFLOW
def test_a_workflow_is_sound_and_asks_for_little(path):
    flow = yaml.safe_load(path.read_text())
    assert flow[True]  # "on", which YAML 1.1 reads as a truth value
    assert flow["permissions"] == {"contents": "read"}
    allowed = {"deploy": {"pages": "write", "id-token": "write"}, "launch": {"contents": "write"}}
    for name, job in flow["jobs"].items():
        assert job.get("permissions") in (None, allowed.get(name))
        assert ("uses" in job) != ("runs-on" in job)
        assert "uses" in job or job["timeout-minutes"] <= 120
        assert set(job.get("needs", "").split()) <= set(flow["jobs"])
        for step in job.get("steps", []):
            assert ("uses" in step) != ("run" in step)


@EVERY_WORKFLOW
def test_actions_are_pinned_and_called_workflows_exist(path):
    for used in re.findall(r"uses: (\S+)", path.read_text()):
        if used.startswith("./"):
            assert (build.ROOT / used).exists()
        else:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", used)  # a tag could be moved to other code


@EVERY_WORKFLOW
def test_make_targets_of_a_workflow_exist(path):
    makefile = (build.ROOT / "Makefile").read_text()
    for target in re.findall(r"run: make (\w+)", path.read_text()):
        assert f"\n{target}:" in makefile


def test_conda_and_binder_get_every_dependency_of_the_chapters():
    env = yaml.safe_load((build.ROOT / "environment.yml").read_text())
    (pip,) = (part["pip"] for part in env["dependencies"] if isinstance(part, dict))
    assert pip[-1] == "-e .[book]"  # the package, and what it depends on
    locked = re.findall(r"^\S+==\S+", (build.ROOT / "requirements.lock").read_text().lower(), re.MULTILINE)
    assert set(pip[:-1]) <= set(locked)
    assert {"anywidget", "ipywidgets", "sympy", "jupyterlab"} <= {line.split("==")[0] for line in pip}


def test_the_site_is_published_with_its_pdf_and_epub():
    steps = yaml.safe_load((build.ROOT / ".github" / "workflows" / "build.yml").read_text())["jobs"]["build"]["steps"]
    runs = [step.get("run", "") for step in steps]
    typeset = next(i for i, run in enumerate(runs) if "make pdf" in run)
    pages = runs.index("make check")  # which builds the pages: they link to what is there
    assert typeset < pages and runs.index("make epub") < pages
    assert build.PACKAGES in " ".join(runs[typeset].replace("\\\n", "").split())


def test_the_development_container_installs_what_the_checks_need_and_makes_the_environment():
    text = (build.ROOT / ".devcontainer" / "devcontainer.json").read_text()
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert container["image"].startswith("python:3.11")
    assert {"chromium", "nodejs", "npm"} <= set(container["onCreateCommand"].split())
    assert container["updateContentCommand"] == "make env"


def test_pictures_of_the_site_are_there_and_small():
    static = Path(build.ROOT, "book", "_static")
    sizes = {name: (static / name).stat().st_size for name in ("logo.png", "favicon.png", "card.png")}
    assert sum(sizes.values()) < 250_000
