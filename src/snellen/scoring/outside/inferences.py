"""Turns annotations and predictions with several inferences a question into trials and into seed-form records.

Inferences are keyed by (question, index): a missing or failed one leaves a gap of its own and never moves another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...core.types import BASE_VARIANT
from ...data.files.records import Record
from ...extract.extraction import UNPARSED
from ..reading import SampleRow, ScoreRow, TrialRow, read_tables
from ..table import ScoreTable
from .flageval import is_rejected
from .inference_rules import Verdict, judge_inference
from .trials import METRIC

MOST_INFERENCES = 100_000
_INDEX = re.compile(r"(?:.*_)?(\d+)")
_REJECTED = "rejected"


class Question(Struct, frozen=True):
    """One question with its inferences in order of index; a verdict is None where the inference failed."""

    annotation: Record
    record: Record
    replies: dict[int, Any]
    verdicts: dict[int, Verdict | None]

    @property
    def is_scored(self) -> bool:
        """Return whether any inference was scored."""
        return any(verdict and verdict.correct is not None for verdict in self.verdicts.values())


def judge_questions(
    annotations: Mapping[str, Record], predictions: Iterable[Record], profile: str
) -> Iterator[tuple[str, Question]]:
    """Yield every predicted question by its id, all inferences judged; one without annotation is an error."""
    for name, record in by_id(predictions):
        if name not in annotations:
            record.fail(f"question_id {name!r} is not in the annotations")
        annotation, replies = annotations[name], dict(sorted(_replies(record).items()))
        verdicts = {index: _verdict(annotation, record, reply, profile) for index, reply in replies.items()}
        yield name, Question(annotation, record, replies, verdicts)


def by_id(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """Yield records with their `question_id` as text; a duplicate is an error."""
    first: dict[str, int] = {}
    for record in records:
        name = str(record.identifier("question_id"))
        if name in first:
            record.fail(f"question_id {name!r} is a duplicate of record {first[name]}")
        first[name] = record.number
        yield name, record


def _verdict(annotation: Record, record: Record, reply: Any, profile: str) -> Verdict | None:
    if is_rejected(reply) or (reply is None and profile != "flageval"):
        return None
    if reply is not None and not isinstance(reply, str):
        record.fail(f"an inference must be text, not {reply!r:.40}")
    return judge_inference(annotation, reply, profile)


def _replies(record: Record) -> dict[int, Any]:
    """Read the three forms of file: `multiple_raw_answers` as object or list, `answer` as object, `answer` as text."""
    value = record.fields["multiple_raw_answers"] if "multiple_raw_answers" in record.fields else record.get("answer")
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, dict):
        return {0: value}
    indices = {key: _INDEX.fullmatch(key) for key in value}
    wrong = [key for key, match in indices.items() if match is None]
    if wrong:
        record.fail(f"{wrong[0]!r} is no name of an inference: expected inference_0, inference_1, …")
    numbered = {int(match[1]): value[key] for key, match in indices.items() if match}
    if len(numbered) != len(value):
        record.fail("two inferences have the same index")
    if max(numbered, default=0) >= MOST_INFERENCES:
        record.fail(f"inference index {max(numbered)} is too large: at most {MOST_INFERENCES} inferences a question")
    return numbered


def question_table(questions: Sequence[Question], tag_keys: Sequence[str]) -> ScoreTable:
    """Return the trials of all inferences; the fields `tag_keys` of the annotations are tags of the samples."""
    scores: list[ScoreRow] = []
    failed: list[TrialRow] = []
    samples: list[SampleRow] = []
    for number, question in enumerate(questions):
        # Named by the order of the file: tables are sorted by name.
        name = f"{number:09}"
        samples.append((name, None, {key: str(question.annotation.get(key)) for key in tag_keys}))
        for index, verdict in question.verdicts.items():
            if verdict is None:
                failed.append((name, BASE_VARIANT, index, _REJECTED))
            else:
                value, reason = (None, UNPARSED) if verdict.correct is None else (float(verdict.correct), None)
                scores.append((name, BASE_VARIANT, index, METRIC, value, None, None, reason))
    return read_tables(scores, failed, samples, tag_keys=tag_keys, metrics=(METRIC,))[METRIC]


_TOKEN_FIELDS = {"average_tokens": "total_tokens"}
_TOKEN_FIELDS |= {f"average_{kind}_tokens": f"{kind}_tokens" for kind in ("prompt", "completion")}


def average_tokens(questions: Sequence[Question]) -> dict[str, float]:
    """Return FlagEvalMM's averages over scored items, with or without usage; none if an item has several inferences."""
    several = any(_has_several(question.record.fields) for question in questions)
    usages = [question.record.fields.get("usage") for question in questions if question.is_scored]
    if several or not usages:
        return {}
    known = [usage for usage in usages if isinstance(usage, dict)]
    sums = {name: sum(float(usage.get(field) or 0) for usage in known) for name, field in _TOKEN_FIELDS.items()}
    return {name: total / len(usages) for name, total in sums.items()}


def _has_several(fields: Mapping[str, Any]) -> bool:
    return "multiple_raw_answers" in fields or not isinstance(fields["answer"], str | None)


class Inference(Struct, frozen=True):
    """One inference: the raw reply, what was read from it, and its score; None where there is none."""

    raw: str | None = None
    answer: str | None = None
    score: float | None = None


MISSING = Inference()


def inference_record(question_id: Any, question: str, inferences: Sequence[Inference]) -> dict[str, Any]:
    """Return one question in the form of the multiple-inference document.

    Failed and missing inferences are null at their own index, so none takes another's place; what could not be read is
    not right.
    """
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


def seed_record(question: Question, *, dense: bool) -> dict[str, Any]:
    """Return the record of one question; `dense` leaves gaps out and counts on, as FlagEvalMM does."""
    known = [index for index, verdict in question.verdicts.items() if verdict]
    indices = known if dense else range(max(question.replies) + 1)
    fields, annotated = question.record.fields, question.annotation.fields
    text = str(fields.get("question", annotated.get("question", "")))
    return inference_record(fields["question_id"], text, [_inference(question, index) for index in indices])


def _inference(question: Question, index: int) -> Inference:
    verdict = question.verdicts.get(index)
    raw = question.replies.get(index)
    return Inference(raw) if verdict is None else Inference(raw, verdict.answer, bool(verdict.correct))
