"""Turns the votes of judges stored beside a run into Scores: `RUN/judge-NAME/run.db` is a run of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...core.types import Score
from ...store.reader import RunReader
from .judge import Judge, read_judge, score_judged

FOLDER_PREFIX = "judge-"


def judge_folder(run: Path, name: str) -> Path:
    """Return where the votes of a judge on a run are kept."""
    return run / f"{FOLDER_PREFIX}{name}"


def judge_folders(run: Path) -> list[Path]:
    """Return where the judges that were asked about a run keep their votes."""
    return sorted(run.glob(f"{FOLDER_PREFIX}*"))


def stored_verdicts(run: RunReader, task: str) -> Iterator[Score]:
    """Yield the score of every judged trial of a task, for each judge that was asked about this run."""
    for folder in judge_folders(run.folder):
        with RunReader(folder) as votes:
            judge = read_judge(votes.header().config["judge"], folder.name.removeprefix(FOLDER_PREFIX))
            yield from _scores(run, votes, judge, task)


def _scores(run: RunReader, votes: RunReader, judge: Judge, task: str) -> Iterator[Score]:
    replies = {trial.prediction.key: trial.prediction.text for trial in votes.trials(f"{task}@{judge.name}")}
    if replies:
        answered = (trial.prediction for trial in run.trials(task) if trial.prediction.failure is None)
        yield from score_judged(judge, answered, replies)
