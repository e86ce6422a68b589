"""Turns stored trials into a judge's Requests: a second plan sent down the same line, stored, resumed and priced alike.

The answer under judgement stands between fences it cannot know, and a verdict counts only if it repeats the case number
it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from ...core.errors import DataError
from ...core.ids import content_hash
from ...core.text import tag_text
from ...core.types import Prediction, Request, Sample, TrialKey, Turn
from ...core.variants import format_variant, parse_variant
from ...extract.mark_patterns import derive_marks
from ...prompt.template import render
from ..scorers.replies import answer_text
from .judge_card import Judge

INFERENCE_AXIS = "inference"
_TASK_JOIN = "@"


def judge_key(key: TrialKey, judge: Judge, vote: int) -> TrialKey:
    """Name one vote on one trial; the trial's repeat becomes an axis of the variant, the vote the repeat."""
    axes = {**parse_variant(key.variant), INFERENCE_AXIS: str(key.repeat)}
    return TrialKey(f"{key.task}{_TASK_JOIN}{judge.name}", key.sample, format_variant(axes), vote)


def judged_key(key: TrialKey) -> TrialKey:
    """Return the trial that a vote is about."""
    axes = dict(parse_variant(key.variant))
    repeat = int(axes.pop(INFERENCE_AXIS))
    return TrialKey(key.task.rpartition(_TASK_JOIN)[0], key.sample, format_variant(axes), repeat)


def plan_votes(
    judge: Judge, trials: Iterable[tuple[Sample, Prediction]], asked: Request | None = None
) -> Iterator[Request]:
    """Yield the Requests that judge these trials: `votes` for each one that has an answer text.

    `asked` is what was sent for them: `{choices}` are the options with the marks that it showed.
    """
    for sample, prediction in trials:
        text = answer_text(prediction)
        if text:
            choices = "\n".join(f"({mark}) {option}" for mark, option in offered_options(sample, asked).items())
            for vote in range(judge.votes):
                yield _request(judge, sample, prediction.key, {"answer": text, "choices": choices}, vote)


def offered_options(sample: Sample, asked: Request | None) -> dict[str, str]:
    """Return the options of a trial by the marks that were shown; by plain letters where none were."""
    shown = (asked and asked.shown) or sample.options
    marks = (asked and asked.marks) or derive_marks(len(shown))
    return dict(zip(marks, shown, strict=True))


def _request(judge: Judge, sample: Sample, key: TrialKey, said: Mapping[str, str], vote: int) -> Request:
    answer = said["answer"]
    case = case_number(judge, key, answer)
    fence = f"=====[{content_hash([case, 'fence'], 20)}]====="
    fields = {
        "question": sample.question,
        "options": "\n".join(f"- {option}" for option in sample.options),
        "choices": said["choices"],
        "answers": "\n".join(f"- {reference}" for reference in sample.answers),
        "answer": answer.replace(fence, ""),
        "fence": fence,
        "case": case,
        **{tag: _shown_tag(judge, sample, tag) for tag in judge.shows},
    }
    if judge.rubric_tag:
        fields["rubric"] = _rubric(judge, sample)
    user = Turn("user", render(judge.prompt.strip("\n"), fields))
    messages = (Turn("system", judge.system), user) if judge.system else (user,)
    params = judge.params if judge.params.seed is None else structs.replace(judge.params, seed=judge.params.seed + vote)
    return Request(judge_key(key, judge, vote), messages, params)


def _shown_tag(judge: Judge, sample: Sample, tag: str) -> str:
    if tag not in sample.tags:
        what = f"sample {sample.id!r} has no {tag}, which judge {judge.name!r} must see"
        raise DataError(f"{what}: read the data in a shape that has it, or ask another judge")
    return tag_text(sample.tags[tag])


def _rubric(judge: Judge, sample: Sample) -> str:
    value = tag_text(sample.tags.get(judge.rubric_tag))
    if value not in judge.rubrics:
        known = f"it has rubrics for {', '.join(judge.rubrics)}"
        what = f"sample {sample.id!r} has {judge.rubric_tag} {value}"
        raise DataError(f"{what}, for which judge {judge.name!r} has no rubric; {known}")
    return judge.rubrics[value]


def case_number(judge: Judge, key: TrialKey, answer: str) -> str:
    """Return the number a verdict must repeat. It hangs on the answer itself, so no answer can hold its own."""
    return content_hash([judge.name, judge.prompt, key, answer], 12)
