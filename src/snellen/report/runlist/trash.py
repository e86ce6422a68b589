"""Runs to the trash and back: a folder is moved within its own disk, nothing is ever deleted."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path

from ...core.errors import EnvironmentProblem, UsageError
from .brief import TRASH, run_folders


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
