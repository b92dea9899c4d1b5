"""The records as other people's programs read them: ``codecheck.yml``, and an RO-Crate with checksums.

``codecheck.yml`` lists what a check would make anew (CODECHECK, specification 1.0). It is committed, since it is looked
for at the root of a repository; ``python book/build.py codecheck`` writes it. The crate (RO-Crate 1.1) changes with
every record, so the build of the book makes it and the report links it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import yaml

from biohash_mini import __version__
from biohash_mini.reproduction import report, results
from biohash_mini.reproduction.paper import TABLES
from biohash_mini.reproduction.steps import OTHERS, commands

from .report_page import title_of

ROOT = Path(__file__).resolve().parent.parent
METADATA = "ro-crate-metadata.json"
ARCHIVE = "biohash-records.zip"
PAPER = "https://proceedings.mlr.press/v119/ryali20a.html"
CODECHECK = "https://codecheck.org.uk/spec/config/1.0/"
CRATE = "https://w3id.org/ro/crate/1.1"
BY_HAND = {
    report.REGISTER: "The register: why cells differ from the paper, by hand",
    "tried.toml": "What was tried beyond the paper: ideas and verdicts, by hand",
}
EPOCH = (2020, 1, 1, 0, 0, 0)  # the time of every file in the archive, so that equal records make equal archives


def citation() -> dict:
    """Return ``CITATION.cff``, which says who wrote this and which paper it reproduces."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def repository() -> str:
    """Return where the sources are published."""
    return yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["url"]


def files(where: Path | None = None) -> list[Path]:
    """Return the results files, in the order of their names."""
    return sorted((where or results.folder()).glob("*.jsonl"))


def stands_for(name: str) -> str:
    """Return what a results file holds, a table of the paper by its number."""
    if name in OTHERS:
        return OTHERS[name][0]
    return f"{title_of(name)}, {TABLES[name].metric}" if name in TABLES else title_of(name)


# ---------------------------------------------------------------- codecheck.yml


def codecheck(where: Path | None = None) -> str:
    """Return the text of ``codecheck.yml``: every results file, what it stands for, and the commands that make it."""
    (paper,) = citation()["references"]
    manifest = [
        {"file": f"results/{path.name}", "comment": f"{stands_for(path.stem)}. {'; '.join(commands(path.stem))}"}
        for path in files(where)
    ]
    content = {
        "version": CODECHECK,
        "paper": {
            "title": paper["title"],
            "authors": [{"name": _name(author)} for author in paper["authors"]],
            "reference": PAPER,
        },
        "repository": repository(),
        "manifest": manifest,
    }
    head = (
        "# Written by `python book/build.py codecheck`; a test fails when it is out of date.\n"
        "# Nobody has checked this independently yet: a codechecker adds their name and the report.\n"
    )
    return f"---\n{head}{yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)}"


def write_codecheck() -> Path:
    """Write ``codecheck.yml`` at the root of the repository and return its path."""
    path = ROOT / "codecheck.yml"
    path.write_text(codecheck(ROOT / "results"), "utf-8")
    return path


# ---------------------------------------------------------------- the crate


def metadata(where: Path | None = None) -> str:
    """Return the text of ``ro-crate-metadata.json`` for the records of a folder."""
    cff, found = citation(), files(where)
    (paper,) = cff["references"]
    held = [*found, *_by_hand(where)]
    times = {path: sorted(r["date"] for r in results.read(path.stem, where) if "date" in r) for path in found}
    licence = {"@id": f"https://spdx.org/licenses/{cff['license']}"}
    authors = [{"@id": f"#{_slug(_name(a))}", "@type": _kind(a), "name": _name(a)} for a in cff["authors"]]
    writers = [{"@id": f"#{_slug(_name(a))}", "@type": _kind(a), "name": _name(a)} for a in paper["authors"]]
    runs = [_run(path, times[path]) for path in found]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Recorded results of {cff['title']}",
        "description": f"One line per trial, with its seed, settings and versions: a reproduction of {paper['title']}.",
        "datePublished": max((t[-1][:10] for t in times.values() if t), default=str(paper["year"])),
        "license": licence,
        "author": _ids(authors),
        "citation": {"@id": PAPER},
        "hasPart": [{"@id": f"results/{path.name}"} for path in held],
        "mentions": _ids(runs),
    }
    software = {
        "@id": repository(),
        "@type": "SoftwareSourceCode",
        "name": cff["title"],
        "version": __version__,
        "license": licence,
        "author": _ids(authors),
        "codeRepository": repository(),
        "programmingLanguage": "Python",
    }
    article = {
        "@id": PAPER,
        "@type": "ScholarlyArticle",
        "name": paper["title"],
        "author": _ids(writers),
        "datePublished": str(paper["year"]),
        "isPartOf": {"@id": "#proceedings"},
    }
    graph = [
        {"@id": METADATA, "@type": "CreativeWork", "conformsTo": {"@id": CRATE}, "about": {"@id": "./"}},
        root,
        *(_file(path) for path in held),
        *runs,
        software,
        article,
        {"@id": "#proceedings", "@type": "Periodical", "name": paper["collection-title"]},
        *authors,
        *writers,
        {**licence, "@type": "CreativeWork", "name": f"{cff['license']} License", "description": "The file LICENSE."},
    ]
    context = [f"{CRATE}/context", {"sha256": "http://schema.org/sha256"}]  # the one term that 1.1 does not have
    return json.dumps({"@context": context, "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def pack(path: Path, where: Path | None = None) -> Path:
    """Write the crate, metadata beside the files they describe, as one zip, and return its path."""
    held = {f"results/{file.name}": file.read_bytes() for file in [*files(where), *_by_hand(where)]}
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in {METADATA: metadata(where).encode(), **held}.items():
            bundle.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return path


def _by_hand(where: Path | None) -> list[Path]:
    """Return the files of results that are written by hand."""
    return [path for name in BY_HAND if (path := (where or results.folder()) / name).exists()]


def _file(path: Path) -> dict:
    """Return the entity of a file: what it stands for, how large it is, its checksum."""
    lines = path.suffix == ".jsonl"
    return {
        "@id": f"results/{path.name}",
        "@type": "File",
        "name": stands_for(path.stem) if lines else BY_HAND[path.name],
        "encodingFormat": "application/jsonl" if lines else "application/toml",
        "contentSize": str(path.stat().st_size),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _run(path: Path, times: list[str]) -> dict:
    """Return the entity of what made a results file: the commands, by which software, from when to when."""
    when = {"startTime": times[0], "endTime": times[-1]} if times else {}
    made = {"instrument": {"@id": repository()}, "result": {"@id": f"results/{path.name}"}}
    return {"@id": f"#run-{path.stem}", "@type": "CreateAction", "name": "; ".join(commands(path.stem)), **made, **when}


def _ids(entities: list[dict]) -> list[dict]:
    return [{"@id": entity["@id"]} for entity in entities]


def _name(author: dict) -> str:
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


def _kind(author: dict) -> str:
    return "Person" if "family-names" in author else "Organization"


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower())
