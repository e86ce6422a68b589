"""The bill of materials of a release (CycloneDX 1.5), and what can be said of its parts: as locked, known problems.

python tools/bill.py dist            write dist/snellen-VERSION.cdx.json and check it
python tools/bill.py dist --strict   fail also when the database of known problems cannot be asked
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "test.lock"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
OSV = "https://api.osv.dev/v1/querybatch"
NOT_ASKED = "osv.dev cannot be asked: known problems are NOT checked"


class Part(NamedTuple):
    """One package: as it is installed, and what the lock says of it."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]
    locked: str | None
    hashes: tuple[str, ...]


def read_lock(path: Path = LOCK) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return name -> (version, sha256 of every file it may be installed from)."""
    found: dict[str, tuple[str, list[str]]] = {}
    name = ""
    for line in path.read_text().splitlines():
        if match := PINNED.match(line):
            one = Requirement(line.removesuffix("\\").strip())
            name = canonicalize_name(match[1]) if one.marker is None or one.marker.evaluate() else ""
            if name:  # other machines and Pythons may have a version of their own
                found[name] = (match[2], [])
        elif "--hash=sha256:" in line and name:
            found[name][1].append(line.partition("sha256:")[2].split()[0])
    return {name: (version, tuple(hashes)) for name, (version, hashes) in found.items()}


def needs_of(package: Distribution) -> list[str]:
    """Return what a package needs here without extras, by name."""
    wanted = map(Requirement, package.requires or ())
    return sorted(
        {canonicalize_name(one.name) for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})}
    )


def gather(root: str, lock: dict[str, tuple[str, tuple[str, ...]]]) -> list[Part]:
    """Return the package and everything it needs, by name."""
    parts: dict[str, Part] = {}
    waiting = [canonicalize_name(root)]
    while waiting:
        name = waiting.pop()
        if name in parts:
            continue
        package = distribution(name)
        needs = needs_of(package)
        licence = package.metadata.get("License-Expression") or package.metadata.get("License") or ""
        locked, hashes = lock.get(name, (None, ()))
        parts[name] = Part(
            name, package.version, licence.splitlines()[0] if licence else "", tuple(needs), locked, hashes
        )
        waiting += needs
    return [parts[name] for name in sorted(parts)]


def address(part: Part) -> str:
    """Return the package's URL, as databases name it."""
    return f"pkg:pypi/{part.name}@{part.version}"


def to_cyclonedx(parts: list[Part], root: str) -> dict[str, Any]:
    """Return the bill; the same parts give the same bytes, so no time stands in it."""
    whole = next(part for part in parts if part.name == canonicalize_name(root))
    others = [part for part in parts if part is not whole]
    known = {part.name: address(part) for part in parts}
    content = json.dumps([part[:2] for part in parts])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.UUID(hashlib.sha256(content.encode()).hexdigest()[:32])}",
        "version": 1,
        "metadata": {"component": _component(whole, "application")},
        "components": [_component(part, "library") for part in others],
        "dependencies": [{"ref": address(part), "dependsOn": [known[name] for name in part.needs]} for part in parts],
    }


def _component(part: Part, kind: str) -> dict[str, Any]:
    row: dict[str, Any] = {"type": kind, "bom-ref": address(part), "name": part.name, "version": part.version}
    row["purl"] = address(part)
    if part.licence:
        row["licenses"] = [{"license": {"name": part.licence}}]
    if part.hashes:
        row["properties"] = [{"name": "snellen:locked-sha256", "value": one} for one in part.hashes]
    return row


def check_lock(parts: Iterable[Part], root: str) -> list[str]:
    """Return what is not as it should be without asking anybody: not locked, no hash, another version installed."""
    problems = []
    for part in parts:
        if part.name == canonicalize_name(root):
            continue
        if part.locked is None:
            problems.append(f"{part.name} {part.version} is not in requirements/test.lock: run make lock")
        elif not part.hashes:
            problems.append(f"{part.name} {part.locked} is locked without a hash")
        elif part.locked != part.version:
            problems.append(f"{part.name}: {part.version} is installed, {part.locked} is locked")
    return problems


def ask_osv(parts: list[Part]) -> list[list[str]]:
    """Return the known problems of each part, as osv.dev knows them."""
    queries = [{"package": {"purl": address(part)}} for part in parts]
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(OSV, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - https, a constant
        results = json.loads(response.read())["results"]
    return [[problem["id"] for problem in result.get("vulns", ())] for result in results]


def audit(
    parts: list[Part], root: str, ask: Callable[[list[Part]], list[list[str]]] = ask_osv
) -> tuple[list[str], bool]:
    """Return every problem, and whether the database of known ones could be asked."""
    problems = check_lock(parts, root)
    others = [part for part in parts if part.name != canonicalize_name(root)]
    try:
        found = ask(others)
    except (OSError, ValueError, KeyError):
        return problems, False
    for part, ids in zip(others, found, strict=True):
        problems += [f"{part.name} {part.version}: {name}, see https://osv.dev/{name}" for name in ids]
    return problems, True


def write_bill(folder: Path, root: str = "snellen") -> tuple[Path, list[str], bool]:
    """Write the bill beside the release; return it, the problems, and whether known ones could be asked for."""
    try:
        parts = gather(root, read_lock())
    except PackageNotFoundError as error:
        raise SystemExit(f"cannot write the bill: {error} is not installed; run make test first") from None
    version = next(part.version for part in parts if part.name == canonicalize_name(root))
    path = folder / f"{root}-{version}.cdx.json"
    path.write_text(json.dumps(to_cyclonedx(parts, root), indent=1) + "\n")
    problems, asked = audit(parts, root)
    return path, problems, asked


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    target.mkdir(parents=True, exist_ok=True)
    written, wrong, was_asked = write_bill(target)
    print("\n".join([*wrong, str(written), *([] if was_asked else [NOT_ASKED])]))
    raise SystemExit(1 if wrong or ("--strict" in sys.argv and not was_asked) else 0)
