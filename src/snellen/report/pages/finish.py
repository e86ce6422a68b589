"""A stored run to its scores and all its files, in one pass over its trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.registry import Registry
from ...core.types import Turn
from ...scoring.asking import case_number, judged_key
from ...scoring.gathered import GatheredTask
from ...scoring.judge_card import Judge
from ...scoring.range_chore import Executor
from ...scoring.ranges import ScoredRange
from ...scoring.readings import Reading, check_reading, file_of, own_reading
from ...scoring.replies import answer_text
from ...scoring.run import score_run
from ...scoring.stored_votes import judge_folders, stored_judge, trials_to_judge
from ...scoring.verdicts import parse_verdict
from ...store.reader import RunReader
from ..files import atomic_file, recorded_batch, write_records, write_results
from .arms_part import write_arms
from .report_page import write_report


def verdicts_path(run: Path, judge: str) -> Path:
    """Return the file of a judge's verdicts on a run."""
    return run / f"verdicts-{judge}.jsonl"


def write_verdicts(folder: Path) -> list[Path]:
    """Write the verdicts of every judge that was asked about a run; return the files."""
    with RunReader(folder) as run:
        return [_write(run, votes) for votes in judge_folders(folder)]


def _write(run: RunReader, folder: Path) -> Path:
    with RunReader(folder) as votes:
        judge = stored_judge(votes)
        path = verdicts_path(Path(run.folder), judge.name)
        with atomic_file(path) as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in _lines(run, votes, judge))
    return path


def _lines(run: RunReader, votes: RunReader, judge: Judge) -> Iterator[dict[str, Any]]:
    header = votes.header()
    for task in run.header().tasks:
        answers = {
            trial.prediction.key: answer_text(trial.prediction) for trial in trials_to_judge(run, judge, task.name)
        }
        for trial in votes.trials(f"{task.name}@{judge.name}"):
            key, failure = judged_key(trial.prediction.key), trial.prediction.failure
            verdict = parse_verdict(trial.prediction.text, case_number(judge, key, answers.get(key) or ""), judge)
            yield {
                **msgspec.structs.asdict(key),
                "vote": trial.prediction.key.repeat,
                "judge": judge.name,
                "model": header.model,
                "prompt": _said(trial.request.messages),
                "reply": trial.prediction.text,
                "verdict": verdict,
                "failure": None if failure is None else f"{failure.kind.value}: {failure.message}",
            }


def _said(messages: tuple[Turn, ...]) -> list[dict[str, str]]:
    return [{"role": turn.role, "text": turn.text} for turn in messages]


RECORDER = f"{recorded_batch.__module__}:{recorded_batch.__qualname__}"
"""Makes the lines of records.jsonl, wherever trials are scored."""


def finish_run(
    folder: Path,
    registry: Registry,
    *,
    reading: Reading | None = None,
    report: bool = True,
    more: Sequence[str] = (),
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Score the stored replies and write the files of a reading; return the results.

    The run's own reading (also that of None) is results.json, records.jsonl and, if told, report.html; another one is
    kept beside it, under its name. `executor` scores, or this process. A pure function of run.db, so it can be repeated
    at any time.
    """
    with RunReader(folder) as reader:
        own = own_reading(reader)
    reading = check_reading(own if reading is None else reading)
    if reading != own:
        return _finish_beside(folder, registry, reading, more, executor)
    gathered: dict[str, GatheredTask] = {}
    if judge_folders(folder):  # verdicts are known after the last trial only
        results = score_run(folder, registry, reading=reading, more=more, executor=executor)
        write_records(folder)
        write_verdicts(folder)
    else:
        with atomic_file(folder / "records.jsonl") as file:

            def watch(task: GatheredTask, part: ScoredRange) -> None:
                file.write(part.records)
                if report:
                    gathered[task.task.name] = task

            how: dict[str, Any] = {"watch": watch, "for_pages": report, "recorder": RECORDER, "executor": executor}
            results = score_run(folder, registry, reading=reading, more=more, **how)
    write_results(folder, results)
    write_arms(folder, results)
    if report:
        write_report(folder, results=results, gathered=gathered)
    return results


def _finish_beside(
    folder: Path, registry: Registry, reading: Reading, more: Sequence[str], executor: Executor | None
) -> dict[str, Any]:
    """Write results and records of another reading; run.db and the run's own files stay as they are."""
    with atomic_file(file_of(folder, "records", "jsonl", reading.name)) as file:

        def watch(_: GatheredTask, part: ScoredRange) -> None:
            """Write the records of a part."""
            file.write(part.records)

        how: dict[str, Any] = {"watch": watch, "keep": False, "recorder": RECORDER, "executor": executor}
        results = score_run(folder, registry, reading=reading, more=more, **how)
    write_results(folder, results, reading.name)
    return results
