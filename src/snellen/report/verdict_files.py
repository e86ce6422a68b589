"""The votes of judges on a run to files: what each was asked, what it replied and which verdict that is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..core.types import Turn
from ..scoring.judges.judge_card import Judge, case_number, judged_key
from ..scoring.judges.verdicts import parse_verdict, stored_judge, trials_to_judge
from ..scoring.protocols.readings import judge_folders
from ..scoring.scorers.replies import answer_text
from ..store.reader import RunReader
from .files import atomic_file


def verdicts_path(run: Path, judge: str) -> Path:
    """Return the file of a judge's verdicts on a run."""
    return run / f"verdicts-{judge}.jsonl"


def write_verdicts(run: RunReader) -> list[Path]:
    """Write the verdicts of every judge that was asked about a run; return the files."""
    return [_write(run, votes) for votes in judge_folders(run.folder)]


def _write(run: RunReader, folder: Path) -> Path:
    with RunReader(folder) as votes:
        judge = stored_judge(votes)
        path = verdicts_path(run.folder, judge.name)
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
