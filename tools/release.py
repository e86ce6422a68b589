"""Builds wheel and sdist, checks both, tries the wheel in an empty environment; writes a bill of materials, checksums.

python tools/release.py dist
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

from packaging.metadata import Metadata

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bill import NOT_ASKED, write_bill

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "snellen"
COMPILED = {".pyc", ".pyo"}


def build(folder: Path) -> tuple[Path, Path]:
    """Build both files from the tree as it is, with the build system that is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("snellen-*"), *folder.glob("SHA256SUMS")):
        old.unlink()
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def check_wheel(wheel: Path) -> None:
    """Every file of the package is inside (code, catalog, pages, schema), nothing else, and the metadata is valid."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA")))
    wanted = package_files("snellen")
    inside = {name for name in names if ".dist-info/" not in name}
    require(wanted <= inside, f"the wheel lacks {sorted(wanted - inside)[:5]}")
    require(inside <= wanted, f"the wheel also holds {sorted(inside - wanted)[:5]}")
    require(any(name.endswith("licenses/LICENSE") for name in names), "the wheel lacks the licence")
    check_metadata(metadata)


def package_files(prefix: str) -> set[str]:
    """Return every file of the package as it is called below `prefix`."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in COMPILED)
    return {f"{prefix}/{path.relative_to(PACKAGE).as_posix()}" for path in files}


def check_metadata(raw: bytes) -> None:
    """What the index would refuse, and a page without a description."""
    metadata = Metadata.from_email(raw, validate=True)
    require(bool(metadata.summary and metadata.requires_python), "summary or requires-python is missing")
    require("# Snellen" in str(message_from_bytes(raw).get_payload()), "the README is not the description")


def check_sdist(sdist: Path) -> None:
    """The sdist has what a build and a reader need; no tests, and nothing that was made here."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", *package_files("src/snellen")):
        require(name in names, f"the sdist lacks {name}")
    strange = [name for name in names if name.startswith(("tests", ".git/", ".venv", "build/", "dist/", "runs/"))]
    require(not strange, f"the sdist holds {strange[:5]}")


def try_wheel(wheel: Path) -> None:
    """Install the wheel alone in a new environment; ask its version and let a model without extras see the chart."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / "bin"
        pip = [str(binaries / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, str(wheel)], check=True, cwd=folder)
        version = wheel.name.split("-")[1]
        shown = subprocess.run(
            [binaries / "snellen", "--version"], check=True, cwd=folder, capture_output=True, text=True
        )
        require(version in shown.stdout, f"--version says {shown.stdout!r}, the wheel {version}")
        run = [
            binaries / "snellen",
            "run",
            "eyechart",
            "--model",
            "blind/first",
            "--limit",
            "3",
            "--quiet",
            "-o",
            "run",
        ]
        subprocess.run(run, check=True, cwd=folder)
        for file in ("run.db", "results.json", "records.jsonl", "report.html"):
            require((folder / "run" / file).is_file(), f"the eye chart left no {file}")


def write_checksums(files: tuple[Path, ...]) -> Path:
    """Write SHA256SUMS beside the files, as `sha256sum --check` reads it."""
    target = files[0].parent / "SHA256SUMS"
    target.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    return target


def require(holds: bool, problem: str) -> None:
    """End with the problem unless it holds."""
    if not holds:
        raise SystemExit(f"not fit for release: {problem}")


def release(folder: Path) -> None:
    """Do all of it."""
    wheel, sdist = build(folder)
    check_wheel(wheel)
    check_sdist(sdist)
    try_wheel(wheel)
    parts, problems, asked = write_bill(folder)
    require(not problems, "; ".join(problems))
    if not asked:
        print(NOT_ASKED)
    print(f"{wheel.name} and {sdist.name} are fit for release; {write_checksums((wheel, sdist, parts))}")


if __name__ == "__main__":
    release(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve())
