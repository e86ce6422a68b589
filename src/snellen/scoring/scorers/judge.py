"""Turns stored trials into a judge's Requests, and its replies into Scores: a judge is data, and never guessed for.

A judge is a second plan sent down the same line: stored, resumed, cached and priced like any other. The answer under
judgement stands between fences it cannot know, and a verdict counts only if it repeats the case number it was given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from ...core.config import convert
from ...core.errors import ConfigError
from ...core.ids import content_hash
from ...core.text import json_objects
from ...core.types import Params, Prediction, Request, Sample, Score, TrialKey, Turn
from ...core.variants import format_variant, parse_variant
from ...prompt.template import render
from .replies import answer_text

INFERENCE_AXIS = "inference"
_TASK_JOIN = "@"
_SCHEMA = frozenset({"case", "verdict", "reason"})


class Judge(Struct, frozen=True, forbid_unknown_fields=True):
    """A judge as pure data: catalog/judges/*.toml."""

    prompt: str
    choices: dict[str, float]
    """Verdict word -> score."""
    name: str = ""
    title: str = ""
    role: str = "judge"
    """Which configured model is asked."""
    system: str = ""
    votes: int = 1
    params: Params = Params()
    metric: str = "judge"
    without_judge: str = "exact_no_judge"
    """What the metric is called when no judge was asked: another name, so that the two are never taken for one."""
    fallback: str = "any_exact"
    """The registered scorer that gives the value then."""

    def __post_init__(self) -> None:
        if self.votes < 1 or self.votes % 2 == 0:
            raise ConfigError(f"judge {self.name!r}: votes must be odd, not {self.votes}, so that a majority can exist")
        if len(self.choices) < 2:
            raise ConfigError(f"judge {self.name!r}: needs at least two choices")
        if self.metric == self.without_judge:
            raise ConfigError(f"judge {self.name!r}: 'without_judge' must differ from 'metric'")
        if "{answer}" not in self.prompt or "{fence}" not in self.prompt or "{case}" not in self.prompt:
            raise ConfigError(f"judge {self.name!r}: the prompt must hold {{answer}}, {{fence}} and {{case}}")


def read_judge(table: Mapping[str, Any], name: str) -> Judge:
    """Check one card of the catalog."""
    return convert({**table, "name": name}, Judge, f"judge {name!r}")


def judge_key(key: TrialKey, judge: Judge, vote: int) -> TrialKey:
    """Name one vote on one trial; the trial's repeat becomes an axis of the variant, the vote the repeat."""
    axes = {**parse_variant(key.variant), INFERENCE_AXIS: str(key.repeat)}
    return TrialKey(f"{key.task}{_TASK_JOIN}{judge.name}", key.sample, format_variant(axes), vote)


def judged_key(key: TrialKey) -> TrialKey:
    """Return the trial that a vote is about."""
    axes = dict(parse_variant(key.variant))
    repeat = int(axes.pop(INFERENCE_AXIS))
    return TrialKey(key.task.rpartition(_TASK_JOIN)[0], key.sample, format_variant(axes), repeat)


def plan_votes(judge: Judge, trials: Iterable[tuple[Sample, Prediction]]) -> Iterator[Request]:
    """Yield the Requests that judge these trials: `votes` for each one that has an answer text."""
    for sample, prediction in trials:
        text = answer_text(prediction)
        if text:
            yield from (_request(judge, sample, prediction.key, text, vote) for vote in range(judge.votes))


def _request(judge: Judge, sample: Sample, key: TrialKey, answer: str, vote: int) -> Request:
    case = case_number(judge, key, answer)
    fence = f"=====[{content_hash([case, 'fence'], 20)}]====="
    fields = {
        "question": sample.question,
        "answers": "\n".join(f"- {reference}" for reference in sample.answers),
        "answer": answer.replace(fence, ""),
        "fence": fence,
        "case": case,
    }
    user = Turn("user", render(judge.prompt.strip("\n"), fields))
    messages = (Turn("system", judge.system), user) if judge.system else (user,)
    params = judge.params if judge.params.seed is None else structs.replace(judge.params, seed=judge.params.seed + vote)
    return Request(judge_key(key, judge, vote), messages, params)


def case_number(judge: Judge, key: TrialKey, answer: str) -> str:
    """Return the number a verdict must repeat. It hangs on the answer itself, so no answer can hold its own."""
    return content_hash([judge.name, judge.prompt, key, answer], 12)


def parse_verdict(reply: str | None, case: str, judge: Judge) -> str | None:
    """Return the verdict word of a judge's reply, or None if there is not exactly one valid verdict on this case.

    Valid is a JSON object with the case number, a known verdict and at most a reason; prose around it is ignored.
    """
    found = {
        verdict for value in json_objects(reply or "") if (verdict := _valid_verdict(value, case, judge)) is not None
    }
    return found.pop() if len(found) == 1 else None


def _valid_verdict(value: Any, case: str, judge: Judge) -> str | None:
    if not isinstance(value, dict) or value.get("case") != case or not set(value) <= _SCHEMA:
        return None
    verdict = value.get("verdict")
    return verdict if isinstance(verdict, str) and verdict in judge.choices else None


def score_votes(judge: Judge, prediction: Prediction, replies: Sequence[str | None]) -> Score:
    """Return the majority's score of one trial. Invalid votes count for nothing; without a majority it is unscored."""
    answer = answer_text(prediction)
    if not answer:
        return Score(key=prediction.key, metric=judge.metric, value=None, reason="no answer text to judge")
    case = case_number(judge, prediction.key, answer)
    verdicts = [parse_verdict(reply, case, judge) for reply in replies]
    detail = {"votes": verdicts}
    tally = Counter(verdict for verdict in verdicts if verdict is not None)
    winner, count = tally.most_common(1)[0] if tally else ("", 0)
    if 2 * count <= judge.votes:
        reason = "no valid verdict" if not tally else f"no majority: {dict(tally)} of {judge.votes} votes"
        return Score(key=prediction.key, metric=judge.metric, value=None, answer=answer, reason=reason, detail=detail)
    return Score(
        key=prediction.key, metric=judge.metric, value=judge.choices[winner], answer=answer, rule=winner, detail=detail
    )


def score_judged(
    judge: Judge, predictions: Iterable[Prediction], replies: Mapping[TrialKey, str | None]
) -> Iterator[Score]:
    """Yield the score of every trial from the replies by key of the vote; one that failed or is missing is void."""
    for prediction in predictions:
        yield score_votes(
            judge, prediction, [replies.get(judge_key(prediction.key, judge, vote)) for vote in range(judge.votes)]
        )


def rename_without_judge(judge: Judge, scores: Sequence[Score]) -> Score:
    """Return the fallback scorer's first score under the name that says no judge was asked."""
    return structs.replace(scores[0], metric=judge.without_judge)
