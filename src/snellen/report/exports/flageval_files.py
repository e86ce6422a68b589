"""Turns stored trials into FlagEvalMM's files: one record a question with all its inferences, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...core.counting import worth_of
from ...core.message_parts import write_markers
from ...core.types import BASE_VARIANT, Prediction, Request, Sample, Score
from ...extract.mark_patterns import derive_marks

StoredTrial = tuple[Sample, Request, Prediction, Score | None]
"""A trial as stored, with its score of the metric to export (None: failed or not scored)."""
_TOKEN_FIELDS = {"average_tokens": "total_tokens"}
_TOKEN_FIELDS |= {f"average_{kind}_tokens": f"{kind}_tokens" for kind in ("prompt", "completion")}


class Inference(Struct, frozen=True):
    """One inference: the raw reply, what was read from it, and its score; None where there is none."""

    raw: str | None = None
    answer: str | None = None
    score: float | None = None
    failed: bool = False


MISSING = Inference()


class _Question(Struct):
    """One question: its id as the file has it, its words, its inferences by index, and what is grouped by."""

    id: Any
    text: str
    inferences: dict[int, Inference] = {}
    tags: Mapping[str, Any] = {}
    details: list[Mapping[str, Any]] = []


def flageval_records(trials: Iterable[StoredTrial], *, dense: bool = False) -> Iterator[dict[str, Any]]:
    """Yield one record a question (and variant): answers, raw texts and scores of all its inferences.

    A failed or missing inference is null at its own index, so that none ever takes another's place, and one that could
    not be read is not right; `dense` leaves gaps out and counts on, and leaves out a question without any score, as
    FlagEvalMM does.
    """
    for question in _questions(trials):
        known = question.inferences
        if dense:
            kept = [known[index] for index in sorted(known) if not known[index].failed]
            if any(inference.score is not None for inference in kept):
                yield inference_record(question.id, question.text, kept)
            continue
        yield inference_record(
            question.id, question.text, [known.get(index, MISSING) for index in range(max(known) + 1)]
        )


def flageval_result(trials: Iterable[StoredTrial], group_by: Sequence[str] = ()) -> dict[str, Any]:
    """Return what FlagEvalMM writes to `<task>_result.json`: percentages with two digits, rejected inferences apart.

    `accuracy` is over all inferences, `overall_accuracy` over questions; each value of a tag in `group_by` has its own.
    """
    questions = _questions(trials)
    every = [inference for question in questions for inference in question.inferences.values()]
    rejected = sum(inference.failed for inference in every)
    result: dict[str, Any] = {"accuracy": _percent(_scores(every)), "overall_accuracy": _percent(_means(questions))}
    if rejected:
        rate = round(100 * rejected / len(every), 2)
        result["reject_info"] = {"reject_rate": rate, "reject_number": rejected, "total_question": len(every)}
    for key in group_by:
        values = dict.fromkeys(str(question.tags.get(key)) for question in questions)
        for value in values:
            part = [question for question in questions if str(question.tags.get(key)) == value]
            result[value] = _percent(_scores(one for question in part for one in question.inferences.values()))
    return result | _average_tokens(questions)


def _questions(trials: Iterable[StoredTrial]) -> list[_Question]:
    found: dict[str, _Question] = {}
    for trial in trials:
        sample, request, prediction, _ = trial
        key = prediction.key
        name = key.sample if key.variant == BASE_VARIANT else f"{key.sample}?{key.variant}"
        if name not in found:
            found[name] = _Question(sample.meta.get("question_id", name), _question(request), tags=sample.tags)
        found[name].inferences[key.repeat] = _inference(trial)
        found[name].details.append(prediction.detail)
    return list(found.values())


def _scores(inferences: Iterable[Inference]) -> list[float]:
    return [inference.score for inference in inferences if inference.score is not None]


def _means(questions: Iterable[_Question]) -> list[float]:
    scored = (_scores(question.inferences.values()) for question in questions)
    return [sum(scores) / len(scores) for scores in scored if scores]


def _percent(scores: Sequence[float]) -> float | None:
    return round(100 * sum(scores) / len(scores), 2) if scores else None


def _average_tokens(questions: Sequence[_Question]) -> dict[str, float]:
    """Return the averages over scored questions, with or without usage; none if one has several inferences."""
    scored = [question for question in questions if _scores(question.inferences.values())]
    if not scored or any(detail.get("several") for question in questions for detail in question.details):
        return {}
    known = [usage for question in scored for detail in question.details if (usage := detail.get("usage"))]
    sums = {name: sum(float(usage.get(field) or 0) for usage in known) for name, field in _TOKEN_FIELDS.items()}
    return {name: total / len(scored) for name, total in sums.items()}


def inference_record(question_id: Any, question: str, inferences: Sequence[Inference]) -> dict[str, Any]:
    """Return one question in the form of the multiple-inference document."""
    scores = [_whole(inference.score) for inference in inferences]
    known = [score for score in scores if score is not None]
    return {
        "question_id": question_id,
        "question": question,
        "answer": {f"inference_{index}": inference.answer for index, inference in enumerate(inferences)},
        "multiple_raw_answers": [inference.raw for inference in inferences],
        "correct": sum(known) / len(known) if known else None,
        "inference_scores": scores,
        "num_inferences": len(known),
    }


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _inference(trial: StoredTrial) -> Inference:
    sample, _, prediction, score = trial
    raw = None if prediction.detail.get("null") else prediction.text
    failed = prediction.failure is not None
    return Inference(raw, _letter(sample, score), worth_of(score), failed) if score else Inference(raw, failed=failed)


def _letter(sample: Sample, score: Score) -> str | None:
    """Return the answer as that system's rules read it: of a choice the letter of the option, in the data's order."""
    if score.answer is None or sample.options.count(score.answer) != 1 or score.rule == "annotated":
        return score.answer
    return derive_marks(len(sample.options))[sample.options.index(score.answer)]


def _question(request: Request) -> str:
    """The question as the model saw it: the last message a user sent."""
    return next((turn.text for turn in reversed(write_markers(request.messages)) if turn.role == "user"), "")
