"""What a run leaves, to be looked at from Python: numbers, tables, wrong answers, one sample with its picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import UsageError
from ..core.homes import Part
from ..core.registry import Registry
from ..core.types import Estimate
from ..engine.state import RunState
from ..report.pages.notebook import ShownComparison, ShownErrors, ShownTrials, headline_words, results_html
from ..report.trial_files import frame, plain_rows, wrong_rows
from ..store.reader import RunReader
from .stored_results import errors, results_of


class PartEnd(msgspec.Struct, frozen=True):
    """How one part ended, and what became of the run."""

    part: Part
    trials: int
    again: bool = False
    """It stopped before its end, and started again it goes on: exit 75."""
    why: str = ""
    merged: bool = False
    """It was the last: the run is whole."""
    note: str = ""
    """Why the run was not merged, where it might have been."""
    taken: int = 0
    """Trials that it took from other parts."""
    given: int = 0
    """Trials of its own that other parts took."""


@dataclass(frozen=True, eq=False, repr=False)
class RunResult:
    """What a run leaves.

    Example:
        >>> result = snellen.run("my.jsonl", "blind/first")
        >>> sorted(path.name for path in result.folder.glob("re*"))
        ['records.jsonl', 'report.html', 'results.json']
    """

    folder: Path
    results: dict[str, Any]
    state: RunState
    interrupted: bool
    dimensions: Mapping[str, str]
    """Task -> the dimension it belongs to."""
    early_stop: Mapping[str, Any] | None = None
    """What `until_ci` saw when it stopped the run, or None where it did not: points, questions, interval."""
    not_logged: Mapping[str, str] = field(default_factory=dict)
    """Tracker -> why it could not be told of the run."""
    part: PartEnd | None = None
    """How one part of a run ended; its results are those of the whole run once it is merged, and empty before."""
    registry: Registry | None = None
    """What its plug-ins brought, for what they say of its tasks; None: they brought nothing, or nobody knows."""

    @classmethod
    def load(cls, folder: str | Path) -> RunResult:
        """Return the result of a stored run as it stands; nothing is asked or written."""
        results = results_of(folder)
        with RunReader(folder) as reader:
            dimensions = {task.name: task.dimension for task in reader.header().tasks}
        planned, waiting = (sum(results["status"][name].values()) for name in ("planned", "not_yet_asked"))
        state = RunState(planned=planned, resumed=planned - waiting)
        early = results["status"].get("until_ci")
        stopped = early if early and early["stopped"] else None
        return cls(Path(folder), results, state, bool(waiting) and stopped is None, dimensions, stopped)

    def __repr__(self) -> str:
        return f"<RunResult {self.folder}: {'; '.join(headline_words(self.results))}>"

    def _repr_html_(self) -> str:
        """Return the tables, for a notebook."""
        return results_html(self.results)

    @property
    def failed(self) -> int:
        """Return how many trials have no reply."""
        metrics = [next(iter(task["metrics"].values()), {"failed": 0}) for task in self.results["tasks"].values()]
        return sum(first["failed"] for first in metrics)

    @property
    def metrics(self) -> dict[str, dict[str, Estimate]]:
        """Return the estimates of every task by name, each with value, interval and counts."""
        return {
            task: msgspec.convert(result["metrics"], dict[str, Estimate])
            for task, result in self.results["tasks"].items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return all trials as plain records: one a trial, with each metric and tag."""
        return plain_rows(self.folder)

    def frame(self) -> Any:
        """Return all trials as a data frame of pandas, else of polars: a row a trial, a column for each metric and tag.

        Where neither is installed it says so; `rows()` gives the same as plain records.
        """
        return frame(self.folder)

    def wrong(self, task: str | None = None) -> Any:
        """Return the trials whose answer was wrong, in whole or in part, as `frame` does; lost ones are not in it.

        Where neither pandas nor polars is installed they are plain records.
        """
        tasks = list(self.results["tasks"])
        if task is not None and task not in tasks:
            raise UsageError(f"this run has no task {task!r}; it has {', '.join(tasks)}")
        return wrong_rows(self.folder, task)

    def errors(self, task: str | None = None) -> ShownErrors:
        """Return the answers that are not right in groups that say why, largest first; by task."""
        return ShownErrors(errors(self.folder, task))

    def compare(self, other: RunResult | str | Path, **which: Any) -> ShownComparison:
        """Return the comparison of this run with another, paired by sample; as `snellen.compare`, with a verdict."""
        from .outputs import compare

        return ShownComparison(compare(self.folder, other.folder if isinstance(other, RunResult) else other, **which))

    def show(self, sample: str, **which: Any) -> ShownTrials:
        """Return the trials of one sample with pictures, replies and scores; a notebook shows them inline."""
        from .outputs import read_sample

        return ShownTrials(read_sample(self.folder, sample, **which))


def load(folder: str | Path) -> RunResult:
    """Return a stored run as `snellen.run` returned it; nothing is asked or written.

    Example:
        >>> folder = snellen.run("my.jsonl", "blind/first").folder
        >>> snellen.load(folder).metrics["my"]["accuracy"].n
        2
    """
    return RunResult.load(folder)
