"""A run folder to what a page needs to know of it: header, results, columns and figures of every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.builtins import default_registry
from ...core.registry import Registry
from ...core.tasks import RunHeader, Task
from ...scoring.arms import counted
from ...scoring.gathered import GatheredTask
from ...scoring.readings import own_reading
from ...scoring.results import COUNTED, frame_results
from ...scoring.run import score_again
from ...scoring.table import ScoreTable, TrialColumns
from ...scoring.variance import advise, split_variance
from ...store.reader import RunReader
from .figures import LATENCY, Figure, figures_of

Results = dict[str, Any]


class TaskOverview(Struct, frozen=True):
    """One task, ready to be shown."""

    task: Task
    result: dict[str, Any]
    columns: TrialColumns
    figures: list[Figure]
    advice: str
    shares: tuple[tuple[str, float], ...]
    """Parts of the variance of single trials, adding up to 1; empty when they cannot be told."""

    @property
    def main_figure(self) -> Figure | None:
        """Return the figure that stands beside the headline: the most telling, never how long replies take."""
        return next((figure for figure in self.figures if figure.name != LATENCY), None)

    @property
    def other_figures(self) -> list[Figure]:
        """Return the figures below the headline."""
        return [figure for figure in self.figures if figure is not self.main_figure]


def read_results(
    reader: RunReader, header: RunHeader, *, most: int | None = None, registry: Registry | None = None
) -> Results:
    """Return results.json where it belongs to what is stored, else the same computed now (nothing is written).

    A run of more than `most` trials is not computed on the way: it is shown without metrics until it has been scored.
    """
    stored = next(reader.rows("SELECT COUNT(*) FROM predictions"))[0]
    written = written_results(Path(reader.folder), header, stored)
    if written is not None:
        return written
    if most is not None and stored > most:
        nothing: dict[str, Any] = {task.name: {"metrics": {}, "groups": {}} for task in header.tasks}
        return frame_results(reader, header, nothing, {}, own_reading(reader))
    return score_again(reader, registry or default_registry(), reading=own_reading(reader))


def written_results(folder: Path, header: RunHeader, stored: int) -> Results | None:
    """Return results.json if it belongs to a run of so many stored trials: the database need not be open for that.

    One of 0.2 does not: its figures leave out what was not read.
    """
    try:
        results: Results = msgspec.json.decode((folder / "results.json").read_bytes())
        planned, waiting = results["status"]["planned"], results["status"]["not_yet_asked"]
        is_of_run = results["run"]["id"] == header.id and results["run"].get("counted") == COUNTED
        if is_of_run and sum(planned.values()) - sum(waiting.values()) == stored:
            return results
    except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError):
        pass  # missing, foreign or half-written: the database is the truth
    return None


def overview_of(
    reader: RunReader, columns: TrialColumns, results: Results, gathered: GatheredTask | None = None
) -> TaskOverview:
    """Return one task with its figures; what was gathered while it was scored is not read again."""
    task = columns.task
    table = counted(columns.by_sample) if columns.metrics else None
    advice, shares = _spread(table)
    result = results["tasks"].get(task.name) or {"metrics": {}, "groups": {}}
    figures = figures_of(reader, columns, table, gathered)
    return TaskOverview(task, result, counted(columns), figures, advice, shares)


def _spread(table: ScoreTable | None) -> tuple[str, tuple[tuple[str, float], ...]]:
    if table is None or not len(table):
        return "", ()
    split = split_variance(table)
    parts = [("questions", split.question), ("variants", split.variant), ("sampling", split.sampling)]
    known = [(name, part) for name, part in parts if part is not None]
    total = sum(part for _, part in known)
    shares = tuple((name, part / total) for name, part in known) if total > 0 and len(known) > 1 else ()
    return advise(split), shares
