"""Turns the votes of judges stored beside a run into Scores: `RUN/judge-NAME/run.db` is a run of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from ...core.types import Score, TrialKey
from ...store.reader import RunReader, Trial
from ..protocols.readings import JUDGE_PREFIX, judge_folder, judge_folders
from .judge_card import Judge, read_judge
from .verdicts import extracted_answer, scores_of_trial, votes_on


def stored_judge(votes: RunReader) -> Judge:
    """Return the judge whose votes a folder keeps."""
    name = Path(votes.folder).name.removeprefix(JUDGE_PREFIX)
    return read_judge(votes.header().config["judge"], name)


def stored_verdicts(run: RunReader, task: str) -> Iterator[Score]:
    """Yield the score of every judged trial of a task, for each judge that was asked about this run."""
    for folder in judge_folders(run.folder):
        with RunReader(folder) as votes:
            judge = stored_judge(votes)
            replies = vote_replies(votes, judge, task)
            for trial in trials_to_judge(run, judge, task) if replies else ():
                said = votes_on(judge, trial.prediction.key, replies)
                yield from scores_of_trial(judge, trial.sample, trial.request, trial.prediction, said)


def vote_replies(votes: RunReader, judge: Judge, task: str) -> dict[TrialKey, str | None]:
    """Return what a judge replied about a task, by the key of the vote."""
    return {trial.prediction.key: trial.prediction.text for trial in votes.trials(f"{task}@{judge.name}")}


def trials_to_judge(run: RunReader, judge: Judge, task: str) -> Iterator[Trial]:
    """Yield the answered trials of a task as the judge sees them: whole, or what the judge before it extracted."""
    answered = (trial for trial in run.trials(task) if trial.prediction.failure is None)
    if not judge.after:
        yield from answered
        return
    with RunReader(judge_folder(Path(run.folder), judge.after)) as votes:
        before = stored_judge(votes)
        replies = vote_replies(votes, before, task)
    for trial in answered:
        found = extracted_answer(before, trial.prediction, votes_on(before, trial.prediction.key, replies))
        yield trial._replace(prediction=structs.replace(trial.prediction, text=found or ""))
