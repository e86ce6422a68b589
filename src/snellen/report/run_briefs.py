"""A run's folder to what its place in a list hangs on, from results.json where that is not older than the database."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ..core.errors import EnvironmentProblem, UsageError
from ..core.ids import content_hash
from ..core.tasks import RunHeader

TRASH = ".trash"
"""Folders of this name hold runs that were thrown away; nothing looks into them by itself."""
LOADED = frozenset({"timeline.json", "timeline.partial.jsonl"})
"""What `snellen perf` leaves beside a run: its replies came under a load, and how fast is not how well."""


def run_key(folder: Path) -> str:
    """Return what a run is called in addresses: a hash of its place, so that no address ever holds a path."""
    return content_hash(str(folder), 12)


class RunBrief(Struct, frozen=True):
    """By what a run is found and ordered in a list. It orders rows; the numbers in them come from the run itself."""

    model: str
    created: str
    tasks: tuple[str, ...]


class _Run(Struct):
    created: str


class _Written(Struct):
    """The part of results.json that a list is ordered by; all the rest is skipped, not decoded."""

    run: _Run
    model: str
    tasks: dict[str, msgspec.Raw]


_decode = msgspec.json.Decoder(_Written).decode


def written_brief(folder: Path) -> RunBrief | None:
    """Return the brief of a run that nobody has written since its results; None where the database must be asked."""
    written = _written_at(folder / "results.json")
    if not written or max(_written_at(folder / name) for name in ("run.db", "run.db-wal")) > written:
        return None
    try:
        found = _decode((folder / "results.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return RunBrief(found.model, found.run.created, tuple(found.tasks))


def _written_at(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - asked for thousands of files a page
    except OSError:
        return 0


def header_brief(header: RunHeader) -> RunBrief:
    """Return the brief of a run by its header."""
    return RunBrief(header.model, header.created, tuple(task.name for task in header.tasks))


def run_folders(root: Path, depth: int) -> Iterator[Path]:
    """Yield the folders with a run.db in a folder and so many levels below it, the trash left out."""
    return (folder for folder, names in named_folders(root, depth) if "run.db" in names)


def named_folders(root: Path, depth: int) -> Iterator[tuple[Path, frozenset[str]]]:
    """Yield a folder and those so many levels below it, each with the names in it, the trash left out."""
    entries = _entries(root)
    yield root, frozenset(entry.name for entry in entries)
    below = [entry.name for entry in entries if depth and entry.name != TRASH and entry.is_dir()]
    for name in below:
        yield from named_folders(root / name, depth - 1)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # a folder that may not be read holds no run for us
        return []


def throw_away(folder: Path, root: Path) -> Path:
    """Move a run's folder into the trash below `root` (beside it, if it is the run itself); return where it is now."""
    within = root if folder != root else root.parent
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = within / TRASH / stamp / folder.relative_to(within)
    _move(folder, target)
    return target


def take_back(thrown: Path) -> Path:
    """Move a run out of the trash to where it was; refuse if something else is there now."""
    trash = next(parent for parent in thrown.parents if parent.name == TRASH)
    stamp, *place = thrown.relative_to(trash).parts
    target = trash.parent.joinpath(*place)
    if target.exists():
        raise UsageError(f"{target} is there again: move {thrown} elsewhere by hand")
    _move(thrown, target)
    with contextlib.suppress(OSError):  # not empty: another run was thrown away in the same moment
        (trash / stamp).rmdir()
    return target


def thrown_runs(root: Path, depth: int) -> list[Path]:
    """Return the runs in the trash below a folder, the last one first."""
    return sorted(run_folders(root / TRASH, depth + 1), reverse=True)


def _move(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        raise EnvironmentProblem(f"cannot move {source} to {target}: {error.strerror}") from None
