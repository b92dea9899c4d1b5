import json
import zipfile

import pytest

from tools import sbom

PACKAGES = {"torch": ("2.3", ["a" * 64]), "tiny-name": ("1.0", [])}


def advisory(name="torch", **given):
    affected = {"package": {"ecosystem": "PyPI", "name": name}, **given}
    return {"id": "PYSEC-1", "summary": "it leaks", "affected": [affected]}


def between(*events):
    return {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}


def test_the_bill_lists_every_locked_package_once_and_does_not_depend_on_the_clock(tmp_path):
    assert sbom.main(["write", str(tmp_path / "a.json")]) == sbom.main(["write", str(tmp_path / "b.json")]) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    lines = [line.split("==")[0] for line in sbom.LOCK.read_text().splitlines() if "==" in line]
    assert [c["name"] for c in found["components"]] == sorted(lines) and len(lines) > 100
    assert found["bomFormat"] == "CycloneDX" and all(c["properties"] for c in found["components"])


def test_the_lock_gives_no_doubt_about_itself():
    assert [doubt for doubt in sbom.doubts(sbom.locked(sbom.LOCK.read_text())) if "without a hash" in doubt] == []


def test_a_missing_hash_and_another_version_are_doubts():
    assert list(sbom.doubts(PACKAGES))[1:] == ["tiny-name 1.0 is locked without a hash"]
    assert "is installed, 2.3 is locked" in next(sbom.doubts(PACKAGES))


@pytest.mark.parametrize(
    ("given", "hit"),
    [
        ({"versions": ["2.3"]}, True),
        ({"versions": ["2.4"]}, False),
        (between({"introduced": "0"}, {"fixed": "2.4"}), True),
        (between({"introduced": "0"}, {"fixed": "2.3"}), False),
        (between({"introduced": "2.3"}, {"last_affected": "2.3"}), True),
        (between({"introduced": "1.0"}, {"last_affected": "2.2"}), False),
        (between({"introduced": "1.0"}, {"fixed": "1.5"}, {"introduced": "2.0"}), True),
        (between({"introduced": "10.0"}), False),
    ],
)
def test_an_advisory_is_looked_up_by_version(given, hit):
    assert list(sbom.matches(advisory(**given), PACKAGES)) == ["torch 2.3: PYSEC-1 it leaks"] * hit


def test_names_are_compared_as_the_index_does_and_withdrawn_advisories_are_left_out():
    record = advisory("Tiny_Name", versions=["1.0"])
    assert len(list(sbom.matches(record, PACKAGES))) == 1
    assert list(sbom.matches({**record, "withdrawn": "2026-01-01"}, PACKAGES)) == []


def test_an_audit_reads_advisories_from_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sbom, "LOCK", tmp_path / "lock")
    (tmp_path / "lock").write_text(f"tiny==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    for name, expected in (("other", 0), ("tiny", 1)):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as pack:
            pack.writestr("PYSEC-1.json", json.dumps(advisory(name, versions=["1.0"])))
        assert sbom.main(["audit", str(tmp_path / "all.zip")]) == expected
    assert "1 packages, 1 advisories, 1 findings" in capsys.readouterr().out
