"""A stored run to its scores and all its files, in one pass over its trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.registry import Registry
from ..scoring.gathered import GatheredTask, Scored
from ..scoring.judging.stored_votes import judge_folders
from ..scoring.readings import Reading, check_reading, file_of, own_reading
from ..scoring.run import score_run
from ..store.reader import RunReader
from .files import atomic_file, record, record_lines, write_records, write_results
from .pages.report_page import write_report
from .verdict_file import write_verdicts


def finish_run(
    folder: Path, registry: Registry, *, reading: Reading | None = None, report: bool = True, more: Sequence[str] = ()
) -> dict[str, Any]:
    """Score the stored replies and write the files of a reading; return the results.

    The run's own reading (also that of None) is results.json, records.jsonl and, if told, report.html; another one is
    kept beside it, under its name. A pure function of run.db, so it can be repeated at any time.
    """
    with RunReader(folder) as reader:
        own = own_reading(reader)
    reading = check_reading(own if reading is None else reading)
    if reading != own:
        return _finish_beside(folder, registry, reading, more)
    gathered: dict[str, GatheredTask] = {}
    if judge_folders(folder):  # verdicts are known after the last trial only
        results = score_run(folder, registry, reading=reading, more=more)
        write_records(folder)
        write_verdicts(folder)
    else:
        with atomic_file(folder / "records.jsonl") as file:

            def watch(task: GatheredTask, batch: Sequence[Scored]) -> None:
                file.write(record_lines([record(trial.sample, trial.prediction, scores) for trial, scores in batch]))
                if report:
                    gathered[task.task.name] = task

            results = score_run(folder, registry, reading=reading, more=more, watch=watch, for_pages=report)
    write_results(folder, results)
    if report:
        write_report(folder, results=results, gathered=gathered)
    return results


def _finish_beside(folder: Path, registry: Registry, reading: Reading, more: Sequence[str]) -> dict[str, Any]:
    """Write results and records of another reading; run.db and the run's own files stay as they are."""
    with atomic_file(file_of(folder, "records", "jsonl", reading.name)) as file:

        def watch(task: GatheredTask, batch: Sequence[Scored]) -> None:
            """Write the records of a batch."""
            file.write(record_lines([record(trial.sample, trial.prediction, scores) for trial, scores in batch]))

        results = score_run(folder, registry, reading=reading, more=more, watch=watch, keep=False)
    write_results(folder, results, reading.name)
    return results
