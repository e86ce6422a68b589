"""A judge's replies to Scores: a verdict is strict JSON on this very case, and is never guessed for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from msgspec import structs

from ...core.builtins import default_registry
from ...core.text import json_objects
from ...core.types import Prediction, Request, Sample, Score, TrialKey
from ...store.reader import RunReader, Trial
from ..protocols.readings import JUDGE_PREFIX, judge_folder, judge_folders
from ..scorers.replies import answer_text
from .judge_card import NUMBER, PAIR, TEXT, WORD, Judge, case_number, judge_key, read_judge

Verdict = str | float | tuple[float, float]
"""A word or an extracted answer, a grade, or the grades of the reference and of the answer."""
REFERENCE = "_reference"
"""What follows the metric of a judge that grades the reference too, for the reference's grade."""
NOTHING_SAID = "no answer text to judge"
_FIELDS = {
    NUMBER: frozenset({"case", "verdict", "reason"}),
    TEXT: frozenset({"case", "answer", "reason"}),
    PAIR: frozenset({"case", "reference", "answer", "reason"}),
}
_WORD_FIELDS = frozenset({"case", "verdict", "reason"})


def parse_verdict(reply: str | None, case: str, judge: Judge) -> Verdict | None:
    """Return the verdict of a judge's reply, or None if there is not exactly one valid verdict on this case.

    Valid is a JSON object with the case number, a verdict of the judge's kind and at most a reason; prose around it is
    ignored.
    """
    found = {
        verdict for value in json_objects(reply or "") if (verdict := _valid_verdict(value, case, judge)) is not None
    }
    return found.pop() if len(found) == 1 else None


def _valid_verdict(value: Any, case: str, judge: Judge) -> Verdict | None:
    """Return what one object says of this case, if it has the fields of the judge's kind and no other."""
    if not isinstance(value, dict) or value.get("case") != case:
        return None
    if not set(value) <= _FIELDS.get(judge.verdict, _WORD_FIELDS):
        return None
    return _READ[judge.verdict](value, judge)


def _read_word(value: dict[str, Any], judge: Judge) -> Verdict | None:
    word = value.get("verdict")
    return word if isinstance(word, str) and word in judge.choices else None


def _read_text(value: dict[str, Any], judge: Judge) -> Verdict | None:
    said = value.get("answer")
    return said.strip() if isinstance(said, str) else None


def _read_number(value: dict[str, Any], judge: Judge) -> Verdict | None:
    return _grade(value.get("verdict"), judge)


def _read_pair(value: dict[str, Any], judge: Judge) -> Verdict | None:
    reference, answer = _grade(value.get("reference"), judge), _grade(value.get("answer"), judge)
    return None if reference is None or answer is None else (reference, answer)


_READ = {WORD: _read_word, TEXT: _read_text, NUMBER: _read_number, PAIR: _read_pair}


def _grade(value: Any, judge: Judge) -> float | None:
    """Return a grade on the judge's scale, also where it was written as a text; None for anything else."""
    try:
        grade = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
    except ValueError:
        return None
    return grade if judge.scale[0] <= grade <= judge.scale[1] else None


def score_votes(judge: Judge, prediction: Prediction, replies: Sequence[str | None]) -> Score:
    """Return the score of one trial by words or grades: the majority's word, the mean grade of most votes.

    Invalid votes count for nothing; without a majority it is unscored. Of a pair it is the answer's grade.
    """
    answer = answer_text(prediction)
    if not answer:
        lowest = judge.bounds()[0]  # an empty reply is not right, and what that is worth only a scale from 0 says
        reason = NOTHING_SAID if not lowest else f"not judged: {NOTHING_SAID}, and the lowest grade is {lowest:g}"
        return Score(key=prediction.key, metric=judge.metric, value=None, reason=reason)
    verdicts = read_votes(judge, prediction, replies)
    said: dict[str, Any] = {"key": prediction.key, "metric": judge.metric, "answer": answer}
    said["detail"] = {"votes": verdicts}
    if judge.verdict in (NUMBER, PAIR):
        grades = [verdict[1] if isinstance(verdict, tuple) else verdict for verdict in verdicts if verdict is not None]
        return _mean_grade(judge, [float(grade) for grade in grades], said)
    winner, reason = _majority(judge, verdicts)
    if winner is None:
        return Score(**said, value=None, reason=reason)
    return Score(**said, value=judge.choices[winner], rule=winner)


def read_votes(judge: Judge, prediction: Prediction, replies: Sequence[str | None]) -> list[Verdict | None]:
    """Return the verdict of each vote on a trial, None for a void one."""
    case = case_number(judge, prediction.key, answer_text(prediction) or "")
    return [parse_verdict(reply, case, judge) for reply in replies]


def _mean_grade(judge: Judge, grades: Sequence[float], said: Mapping[str, Any]) -> Score:
    if 2 * len(grades) <= judge.votes:
        reason = "no valid verdict" if not grades else f"not judged: {len(grades)} valid grades of {judge.votes} votes"
        return Score(**said, value=None, reason=reason)
    return Score(**said, value=fmean(grades), rule="grade")


def _majority(judge: Judge, verdicts: Sequence[Verdict | None]) -> tuple[str | None, str]:
    tally = Counter(str(verdict) for verdict in verdicts if verdict is not None)
    winner, count = tally.most_common(1)[0] if tally else ("", 0)
    if 2 * count > judge.votes:
        return winner, ""
    return None, "no valid verdict" if not tally else f"no majority: {dict(tally)} of {judge.votes} votes"


def extracted_answer(judge: Judge, prediction: Prediction, replies: Sequence[str | None]) -> str | None:
    """Return the answer that most votes of an extracting judge found in a reply; None without a majority."""
    return _majority(judge, read_votes(judge, prediction, replies))[0]


@cache
def _compared_by(name: str) -> Any:
    return default_registry().get("scorer", name)


def scores_of_trial(
    judge: Judge, sample: Sample, request: Request, prediction: Prediction, replies: Sequence[str | None]
) -> Iterator[Score]:
    """Yield what a judge says of one trial: one score, of an extraction that of its rule, of a pair two."""
    if judge.verdict != TEXT:
        score = score_votes(judge, prediction, replies)
        yield score
        if judge.verdict == PAIR:
            yield _reference_score(judge, prediction, replies, score)
        return
    answer = extracted_answer(judge, prediction, replies) if answer_text(prediction) else ""
    if not answer:
        found_none = NOTHING_SAID if not answer_text(prediction) else "the judge found no answer in the reply"
        reason = "no valid verdict" if answer is None else found_none
        yield Score(key=prediction.key, metric=judge.metric, value=None, reason=reason)
        return
    stated = structs.replace(prediction, text=answer, finish=None)
    score = _compared_by(judge.compare)(sample, request, stated, judge.compare_options)[0]
    yield structs.replace(score, metric=judge.metric, detail={"extracted": answer})


def _reference_score(judge: Judge, prediction: Prediction, replies: Sequence[str | None], of: Score) -> Score:
    metric = f"{judge.metric}{REFERENCE}"
    if of.value is None:
        return structs.replace(of, metric=metric, detail={})
    grades = [verdict[0] for verdict in read_votes(judge, prediction, replies) if isinstance(verdict, tuple)]
    return structs.replace(of, metric=metric, value=fmean(grades), detail={})


def votes_on(judge: Judge, key: TrialKey, replies: Mapping[TrialKey, str | None]) -> list[str | None]:
    """Return the replies of a judge's votes on one trial, in order."""
    return [replies.get(judge_key(key, judge, vote)) for vote in range(judge.votes)]


def rename_without_judge(judge: Judge, scores: Sequence[Score]) -> Score:
    """Return the fallback scorer's first score under the name that says no judge was asked."""
    return structs.replace(scores[0], metric=judge.without_judge)


def stored_judge(votes: RunReader) -> Judge:
    """Return the judge whose votes a folder keeps."""
    name = votes.folder.name.removeprefix(JUDGE_PREFIX)
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
    with RunReader(judge_folder(run.folder, judge.after)) as votes:
        before = stored_judge(votes)
        replies = vote_replies(votes, before, task)
    for trial in answered:
        found = extracted_answer(before, trial.prediction, votes_on(before, trial.prediction.key, replies))
        yield trial._replace(prediction=structs.replace(trial.prediction, text=found or ""))
