"""A stored run to its scores and all its files, in one pass over its trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.registry import Registry
from ..scoring.gathered import GatheredTask, Scored
from ..scoring.run import score_run
from ..scoring.scorers.judged import judge_folders
from .files import atomic_file, record, record_lines, write_records, write_results
from .pages.report_page import write_report


def finish_run(folder: Path, registry: Registry, *, report: bool = True, **options: Any) -> dict[str, Any]:
    """Score the stored replies, write results.json, records.jsonl and, if told, report.html; return the results.

    A pure function of run.db, so it can be repeated at any time. `options` go to `score_run`.
    """
    gathered: dict[str, GatheredTask] = {}
    if judge_folders(folder):  # verdicts are known after the last trial only
        results = score_run(folder, registry, **options)
        write_records(folder)
    else:
        with atomic_file(folder / "records.jsonl") as file:

            def watch(task: GatheredTask, batch: Sequence[Scored]) -> None:
                file.write(record_lines([record(trial.sample, trial.prediction, scores) for trial, scores in batch]))
                if report:
                    gathered[task.task.name] = task

            results = score_run(folder, registry, watch=watch, for_pages=report, **options)
    write_results(folder, results)
    if report:
        write_report(folder, results=results, gathered=gathered)
    return results
