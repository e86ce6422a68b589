"""Turns predictions with several inferences a question, and the annotations, into macro and micro accuracy and seed-form records.

Inferences are keyed by (question, index): a missing or failed one leaves a gap of its own and never moves another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from ...core.errors import DataError
from ...core.types import Estimate
from ...stats.intervals import estimate_mean
from .flageval import is_rejected
from .inference_record import Inference, inference_record
from .inference_rules import Verdict, judge_inference
from .outside_fields import Row

MOST_INFERENCES = 100_000
_INDEX = re.compile(r"(?:.*_)?(\d+)")


class Question(Struct, frozen=True):
    """One question with its inferences in order of index; a verdict is None where the inference failed or is missing."""

    annotation: Row
    question_id: Any
    text: str
    replies: dict[int, Any]
    verdicts: dict[int, Verdict | None]

    @property
    def scores(self) -> list[float]:
        """Return the scores of the inferences that were scored."""
        return [float(verdict.correct) for verdict in self.verdicts.values() if verdict and verdict.correct is not None]


class MultiInference(Struct, frozen=True):
    """All questions of a file, the ids that have no prediction, and tokens as the server counted them."""

    questions: list[Question]
    missing: list[str]
    tokens: dict[str, float]


def read_annotations(rows: Iterable[Row]) -> dict[str, Row]:
    """Index annotations by question id; a duplicate is an error."""
    return _by_id(rows)


def judge_all(annotations: Mapping[str, Row], predictions: Iterable[Row], *, profile: str) -> MultiInference:
    """Score every inference; predictions without annotation and duplicates are errors."""
    questions: list[Question] = []
    seen = _by_id_stream(predictions)
    answered: set[str] = set()
    tokens = _Tokens()
    for name, row in seen:
        if name not in annotations:
            row.fail(f"question_id {name!r} is not in the annotations")
        answered.add(name)
        question = _judge_question(annotations[name], row, profile)
        tokens.add(row, question)
        if question.replies:
            questions.append(question)
    empty = answered - {str(question.question_id) for question in questions}
    missing = [name for name in annotations if name not in answered or name in empty]
    if not questions:
        raise DataError("the predictions hold no inference of any annotated question, so there is nothing to score")
    return MultiInference(questions, missing, tokens.averages() if profile == "flageval" else {})


def _judge_question(annotation: Row, row: Row, profile: str) -> Question:
    replies = dict(sorted(_replies(row).items()))
    verdicts = {index: _verdict(annotation, row, reply, profile) for index, reply in replies.items()}
    text = row.fields.get("question", annotation.fields.get("question", ""))
    return Question(annotation, row.get("question_id"), str(text), replies, verdicts)


def _verdict(annotation: Row, row: Row, reply: Any, profile: str) -> Verdict | None:
    if is_rejected(reply) or (reply is None and profile != "flageval"):
        return None
    if reply is not None and not isinstance(reply, str):
        row.fail(f"an inference must be text, not {reply!r:.40}")
    return judge_inference(annotation, reply, profile)


def _replies(row: Row) -> dict[int, Any]:
    """Read the three forms of file: `multiple_raw_answers` as object or list, `answer` as object, `answer` as text."""
    value = row.fields["multiple_raw_answers"] if "multiple_raw_answers" in row.fields else row.get("answer")
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, dict):
        return {0: value}
    indices = {key: _INDEX.fullmatch(key) for key in value}
    wrong = [key for key, match in indices.items() if match is None]
    if wrong:
        row.fail(f"{wrong[0]!r} is no name of an inference: expected inference_0, inference_1, …")
    numbered = {int(match[1]): value[key] for key, match in indices.items() if match}
    if len(numbered) != len(value):
        row.fail("two inferences have the same index")
    if max(numbered, default=0) >= MOST_INFERENCES:
        row.fail(f"inference index {max(numbered)} is too large: at most {MOST_INFERENCES} inferences a question")
    return numbered


def _by_id(rows: Iterable[Row]) -> dict[str, Row]:
    return dict(_by_id_stream(rows))


def _by_id_stream(rows: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    first: dict[str, int] = {}
    for row in rows:
        name = str(row.identifier("question_id"))
        if name in first:
            row.fail(f"question_id {name!r} is a duplicate of record {first[name]}")
        first[name] = row.number
        yield name, row


_TOKEN_FIELDS = {
    "average_tokens": "total_tokens",
    "average_prompt_tokens": "prompt_tokens",
    "average_completion_tokens": "completion_tokens",
}


class _Tokens:
    """FlagEvalMM's averages: over items with single answers, counting those without usage in the divisor."""

    def __init__(self) -> None:
        self._sums, self._items, self._single = dict.fromkeys(_TOKEN_FIELDS, 0.0), 0, True

    def add(self, row: Row, question: Question) -> None:
        """Count one item."""
        usage = row.fields.get("usage")
        self._single = (
            self._single
            and isinstance(row.fields.get("answer"), str | None)
            and "multiple_raw_answers" not in row.fields
        )
        self._items += bool(question.scores)
        if isinstance(usage, dict) and question.scores:
            for name, field in _TOKEN_FIELDS.items():
                self._sums[name] += float(usage.get(field) or 0)

    def averages(self) -> dict[str, float]:
        """Return the averages; none when an item has several inferences."""
        return {name: total / self._items for name, total in self._sums.items()} if self._single and self._items else {}


def estimates(questions: Sequence[Question]) -> dict[str, Estimate]:
    """Return `accuracy` (mean over questions of their mean) and `accuracy_micro` (mean over inferences)."""
    scored = [(code, question.scores) for code, question in enumerate(questions) if question.scores]
    failed = sum(verdict is None for question in questions for verdict in question.verdicts.values())
    unscored = sum(len(question.verdicts) - len(question.scores) for question in questions) - failed
    means = np.array([sum(scores) / len(scores) for _, scores in scored])
    values = np.array([score for _, scores in scored for score in scores])
    clusters = np.array([code for code, scores in scored for _ in scores])
    return {
        "accuracy": estimate_mean(means, n=len(scored), unscored=len(questions) - len(scored)),
        "accuracy_micro": estimate_mean(values, clusters, unscored=unscored, failed=failed),
    }


def group_questions(questions: Sequence[Question], key: str) -> dict[str, list[Question]]:
    """Group by a field of the annotations; a question without it is an error."""
    groups: dict[str, list[Question]] = {}
    for question in questions:
        value = question.annotation.get(key)
        groups.setdefault(value if isinstance(value, str) else str(value), []).append(question)
    return groups


def seed_record(question: Question, *, dense: bool) -> dict[str, Any]:
    """Return the record of one question in the form of the multiple-inference document.

    Failed and missing inferences stand as null at their own index; `dense` leaves them out and counts on, as FlagEvalMM does.
    """
    known = [index for index, verdict in question.verdicts.items() if verdict]
    indices = known if dense else range(max(question.replies) + 1)
    return inference_record(question.question_id, question.text, [_inference(question, index) for index in indices])


def _inference(question: Question, index: int) -> Inference:
    verdict = question.verdicts.get(index)
    if verdict is None:
        return Inference(question.replies.get(index))
    return Inference(question.replies[index], verdict.answer, verdict.correct)
