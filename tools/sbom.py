"""The packages that ``make env`` installs, as a CycloneDX list, and what is known against them; no network is needed.

python tools/sbom.py write FILE            the software bill of materials of requirements.lock, CycloneDX 1.6 as JSON
python tools/sbom.py audit [ADVISORIES]    check the lock and the environment, and look every package up in advisories

ADVISORIES is a zip of OSV's records for PyPI, one JSON file each (``PyPI/all.zip`` of OSV's public bucket), downloaded
when there was a network. The list depends on the lock file alone, not on the clock.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
Versions = dict[str, tuple[str, list[str]]]  #: version and hashes of a package, by name


def locked(text: str) -> Versions:
    """Return version and SHA-256 hashes of every package of a lock file."""
    lines = re.findall(r"^([\w.-]+)==(\S+)((?: \\\n\s+--hash=sha256:[0-9a-f]{64})*)$", text, re.MULTILINE)
    return {name.lower(): (number, re.findall(r"sha256:(\w+)", hashes)) for name, number, hashes in lines}


def bill(packages: Versions) -> dict:
    """Return the software bill of materials of packages, CycloneDX 1.6."""
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{number}",
            "name": name,
            "version": number,
            "purl": f"pkg:pypi/{name}@{number}",
            "properties": [{"name": "lock:sha256", "value": sha} for sha in hashes],  # one for each platform's file
        }
        for name, (number, hashes) in sorted(packages.items())
    ]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))
    project = {"type": "application", "bom-ref": "biohash-mini", "name": "biohash-mini"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": project},
        "components": components,
        "dependencies": [{"ref": "biohash-mini", "dependsOn": [c["bom-ref"] for c in components]}],
    }


def doubts(packages: Versions) -> Iterator[str]:
    """Yield what is wrong with the lock, or with what is installed here of it."""
    for name, (number, hashes) in packages.items():
        if not hashes:
            yield f"{name} {number} is locked without a hash"
        try:
            here = version(name).partition("+")[0]  # a build of torch for the CPU alone is marked so
        except PackageNotFoundError:
            continue
        if here != number:
            yield f"{name} {here} is installed, {number} is locked"


def advisories(path: Path) -> Iterator[dict]:
    """Yield the records of a zip of OSV files."""
    with zipfile.ZipFile(path) as pack:
        for name in pack.namelist():
            if name.endswith(".json"):
                yield json.loads(pack.read(name))


def matches(record: dict, packages: Versions) -> Iterator[str]:
    """Yield the packages that an advisory names in the locked version, as one line each."""
    if record.get("withdrawn"):
        return
    for affected in record.get("affected", []):
        about = affected.get("package", {})
        name = re.sub(r"[-_.]+", "-", about.get("name", "")).lower()
        if about.get("ecosystem") == "PyPI" and name in packages and _is_affected(affected, packages[name][0]):
            yield f"{name} {packages[name][0]}: {record['id']} {record.get('summary', '')}".rstrip()


def _is_affected(affected: dict, number: str) -> bool:
    """Return whether a version is listed, or lies between an introduction and the fix that follows it."""
    from packaging.version import Version

    if number in affected.get("versions", []):
        return True
    here, inside = Version(number), False
    for span in affected.get("ranges", []):
        if span.get("type") != "ECOSYSTEM":
            continue
        for event in span["events"]:
            (kind, at), *_ = event.items()
            reached = at == "0" or here >= Version(at)
            if kind == "introduced" and reached:
                inside = True
            elif (kind == "fixed" and reached) or (kind == "last_affected" and here > Version(at)):
                inside = False
        if inside:
            return True
    return False


def main(words: list[str]) -> int:
    """Write the list or audit the packages, and return the exit code: 1 if something was found."""
    packages = locked(LOCK.read_text("utf-8"))
    if words[:1] == ["write"] and len(words) == 2:
        Path(words[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(words[1]).write_text(json.dumps(bill(packages), indent=1) + "\n", "utf-8")
        print(f"{len(packages)} packages: {words[1]}")
        return 0
    if words[:1] != ["audit"] or len(words) > 2:
        print(__doc__)
        return 2
    found = list(doubts(packages))
    looked = 0
    for record in advisories(Path(words[1])) if len(words) == 2 else ():
        looked += 1
        found += matches(record, packages)
    print(*found, f"{len(packages)} packages, {looked} advisories, {len(found)} findings", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
