"""A run folder to its results as they stand, and to its errors; little is imported, because most who look only look."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.homes import PARTS_FOLDER
from ..report.stored_results import read_results
from ..scoring.protocols.readings import file_of, kept_reading, own_reading
from ..store.reader import RunReader

if TYPE_CHECKING:
    from ..engine.limits import Limits
    from ..scoring.aggregates.error_groups import ErrorGroup
    from .plan import Plan
    from .run_result import RunResult
    from .settings import RunSettings


def results_of(folder: str | Path, reading: str | None = None) -> dict[str, Any]:
    """Return the results of a run as they stand, those of a run that goes on included; or of a kept reading."""
    if reading is not None:
        return kept_reading(Path(folder), reading)[1]
    with RunReader(folder) as reader:
        return read_results(reader, reader.header())


def results_file(folder: str | Path, results: Mapping[str, Any]) -> Path:
    """Return the file that holds results: that of the run's own reading, or of another."""
    with RunReader(folder) as reader:
        name = results["run"]["reading"]["name"]
        return file_of(Path(folder), "results", "json", None if name == own_reading(reader).name else name)


def errors(folder: str | Path, task: str | None = None, *, quick: bool = False) -> dict[str, list[ErrorGroup]]:
    """Return, for every task of a run, its answers that are not right in groups that say why, largest first.

    `quick` leaves out tasks of more than 50,000 trials: all of them are read for this.

    Example:
        >>> groups = snellen.run("my.jsonl", "blind/first").errors()["my"]
        >>> [(group.title, len(group.trials)) for group in groups]
        [('another answer', 1)]
    """
    from ..scoring.aggregates.error_groups import MOST_GROUPED, read_errors

    with RunReader(folder) as reader:
        names = [one.name for one in reader.header().tasks]
        if task is not None and task not in names:
            raise UsageError(f"{folder} has no task {task!r}; it has {', '.join(names)}")
        chosen = [name for name in names if task in (None, name)]
        if quick:
            chosen = [name for name in chosen if reader.count_trials(name) <= MOST_GROUPED]
        return {name: read_errors(reader, name) for name in chosen}


class InParts(Protocol):
    """What is registered as `asking` `parts`: a run that many processes ask, each a part of it."""

    def check_part(self, settings: RunSettings) -> None:
        """Refuse what a part of a run cannot do, before anything is planned."""

    def run_part(self, plan: Plan, settings: RunSettings, limits: Limits, **heard: Any) -> RunResult:
        """Ask one part of a plan, and join them all where it was the last; return the run's result."""

    def refuse_unmerged(self, folder: Path) -> None:
        """Refuse to ask a folder whole while its parts hold replies that run.db has not."""

    def join_parts(self, folder: Path) -> None:
        """Bring run.db up to what the parts hold."""

    def summarize_parts(self, folder: Path) -> Any:
        """Return who works at a run in parts, who is lost and how far it is."""


def asked_in_parts() -> InParts:
    """Return who asks runs in parts, and knows how far one is."""
    made: InParts = default_registry().get("asking", "parts")
    return made


def is_unfinished(folder: Path) -> bool:
    """Tell whether a folder holds parts of a run that was not merged whole yet."""
    if not (folder / PARTS_FOLDER).is_dir():
        return False
    from ..store.merge import is_in_parts  # what reads parts is imported where there are some

    if not is_in_parts(folder):
        return False
    if not (folder / "run.db").exists():
        return True
    with RunReader(folder) as reader:
        stored = next(reader.rows("SELECT COUNT(*) FROM predictions"))[0]
        return bool(stored < sum(reader.header().planned.values()))
