"""One foreign row to the records of a trial: what was asked, and what came back."""

from __future__ import annotations

from typing import Any

from ...core.text import clean_text
from ...core.types import Failure, FailureKind, Prediction, Request, Sample, TrialKey, Turn, Usage
from ...data.foreign.foreign_rows import ForeignRow
from ...scoring.scorers.option_choice import RIGHT
from ...scoring.scorers.replies import PEER

LONGEST_MESSAGE = 2_000
_KINDS = (
    (("timed out", "timeout"), FailureKind.TIMEOUT),
    (("rate limit", "429", "too many requests"), FailureKind.RATE),
    (("inappropriate", "content filter", "content_filter", "safety"), FailureKind.REFUSED),
    (("401", "403", "unauthorized", "api key"), FailureKind.AUTH),
    (("connection", "network"), FailureKind.NETWORK),
    (("holds no reply",), FailureKind.DECODE),
)
"""Words in a failure's text -> its kind; any other is the server's."""


def sample_of(row: ForeignRow, task: str) -> Sample:
    """Return the question as the file tells it."""
    return Sample(
        row.id,
        task,
        row.form,
        row.question or row.prompt,
        row.images,
        tuple(row.options.values()),
        row.answers,
        group=row.group,
        tags=dict(row.tags),
        meta=dict(row.meta),
    )


def request_of(key: TrialKey, row: ForeignRow, sample: Sample) -> Request:
    """Return what was sent, as far as the file holds it; else the question alone."""
    turns = (Turn("user", row.prompt or sample.question, sample.images),)
    return Request(key, turns, marks=tuple(row.options), shown=tuple(row.options.values()))


def prediction_of(key: TrialKey, row: ForeignRow) -> Prediction:
    """Return the reply or the failure, with what the harness made of it."""
    told = {"reply": row.read_reply, "read": row.read_answer, "verdict": row.verdict}
    peer = {name: value for name, value in told.items() if value is not None}
    detail: dict[str, Any] = {**row.detail, **({PEER: peer} if peer else {})}
    if row.right is not None:
        detail[RIGHT] = row.right
    failure = None if row.failure is None else Failure(kind_of_failure(row.failure), row.failure[:LONGEST_MESSAGE])
    return Prediction(
        key,
        text=None if failure is not None else clean_text(row.reply or ""),
        failure=failure,
        reasoning=row.reasoning,
        usage=Usage(*row.tokens) if row.tokens else None,
        finish=row.finish,
        detail=detail,
    )


def kind_of_failure(message: str) -> FailureKind:
    """Return the kind of failure that a harness's own words tell of."""
    lowered = message.lower()
    return next((kind for words, kind in _KINDS if any(word in lowered for word in words)), FailureKind.SERVER)
