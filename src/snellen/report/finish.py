"""A stored run to its scores and all its files, in one pass over its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..core.registry import Registry
from ..core.tasks import Task
from ..scoring.gathered import Scored
from ..scoring.run import score_run
from ..scoring.scorers.judged import judge_folders
from ..scoring.table import ScoreTable
from .files import atomic_file, record, record_lines, write_records, write_results
from .gathered import GatheredTrials
from .pages.report_page import write_report


class _Scribe:
    """Looks on while a run is scored: writes its records, and keeps what the report shows."""

    def __init__(self, file: BinaryIO, *, report: bool) -> None:
        self.gathered: dict[str, GatheredTrials] = {}
        self._file, self._report = file, report

    def see_trials(self, task: Task, batch: Sequence[Scored]) -> None:
        """Write the records of some trials."""
        self._file.write(record_lines([record(trial.sample, trial.prediction, scores) for trial, scores in batch]))
        if self._report:
            self.gathered.setdefault(task.name, GatheredTrials(task)).add(batch)

    def see_tables(self, task: Task, tables: Mapping[str, ScoreTable]) -> None:
        """Keep the tables of a task."""
        if task.name in self.gathered:
            self.gathered[task.name].tables = tables


def finish_run(folder: Path, registry: Registry, *, report: bool = True, **options: Any) -> dict[str, Any]:
    """Score the stored replies, write results.json, records.jsonl and, if told, report.html; return the results.

    A pure function of run.db, so it can be repeated at any time. `options` go to `score_run`.
    """
    gathered: Mapping[str, GatheredTrials] = {}
    if judge_folders(folder):  # verdicts are known after the last trial only
        results = score_run(folder, registry, **options)
        write_records(folder)
    else:
        with atomic_file(folder / "records.jsonl") as file:
            scribe = _Scribe(file, report=report)
            results = score_run(folder, registry, onlooker=scribe, **options)
        gathered = scribe.gathered
    write_results(folder, results)
    if report:
        write_report(folder, results=results, gathered=gathered)
    return results
