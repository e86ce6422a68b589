"""A stored run to its scores and all its files, in one pass over its trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.builtins import parts_in
from ...core.registry import Registry
from ...scoring.protocols.readings import Reading, check_reading, file_of, judge_folders, own_reading
from ...scoring.ranges import Executor, ScoredRange
from ...scoring.run import score_run
from ...scoring.tables.gathered import GatheredTask
from ...store.reader import RunReader
from ..files import atomic_file, recorded_batch, write_records, write_results
from .report_page import write_report

RECORDER = f"{recorded_batch.__module__}:{recorded_batch.__qualname__}"
"""Makes the lines of records.jsonl, wherever trials are scored."""


REPORTED_TRIALS = 50_000
"""Up to so many trials report.html is written by itself; a larger run is for `snellen view` or `snellen report`."""


def _wants_page(run: RunReader) -> bool:
    """Tell whether report.html is written: of a run that is not large, and where one is that would be out of date."""
    planned = sum(run.header().planned.values())
    return planned <= REPORTED_TRIALS or (run.folder / "report.html").exists()


def finish_run(
    folder: Path,
    registry: Registry,
    *,
    reading: Reading | None = None,
    report: bool | None = None,
    more: Sequence[str] = (),
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Score the stored replies and write the files of a reading; return the results.

    The run's own reading (also that of None) is results.json and records.jsonl, and report.html if `report` says so, or
    where nothing is said and the run is not large or has one. Another reading is kept beside it, under its name.
    `executor` scores, or this process. A pure function of run.db, so it can be repeated at any time.
    """
    with RunReader(folder) as run:
        own = own_reading(run)
        reading = check_reading(own if reading is None else reading)
        if reading != own:
            return _finish_beside(run, registry, reading, more, executor)
        report = _wants_page(run) if report is None else report
        gathered: dict[str, GatheredTask] = {}
        if judge_folders(folder):  # verdicts are known after the last trial only
            results = score_run(run, registry, reading=reading, more=more, executor=executor)
            from ..verdict_files import write_verdicts

            write_records(run)
            write_verdicts(run)
        else:
            with atomic_file(folder / "records.jsonl") as file:

                def watch(task: GatheredTask, part: ScoredRange) -> None:
                    file.write(part.records)
                    if report:
                        gathered[task.task.name] = task

                how: dict[str, Any] = {"watch": watch, "for_pages": report, "recorder": RECORDER, "executor": executor}
                results = score_run(run, registry, reading=reading, more=more, **how)
        write_results(folder, results)
        tasks = results["tasks"].values()
        for write in dict.fromkeys(write for task in tasks for write, _ in parts_in(task, "files", registry)):
            write(folder)
        if report:
            write_report(run, results=results, gathered=gathered, registry=registry)
    return results


def _finish_beside(
    run: RunReader, registry: Registry, reading: Reading, more: Sequence[str], executor: Executor | None
) -> dict[str, Any]:
    """Write results and records of another reading; run.db and the run's own files stay as they are."""
    with atomic_file(file_of(run.folder, "records", "jsonl", reading.name)) as file:

        def watch(_: GatheredTask, part: ScoredRange) -> None:
            """Write the records of a part."""
            file.write(part.records)

        how: dict[str, Any] = {"watch": watch, "keep": False, "recorder": RECORDER, "executor": executor}
        results = score_run(run, registry, reading=reading, more=more, **how)
    write_results(run.folder, results, reading.name)
    return results
