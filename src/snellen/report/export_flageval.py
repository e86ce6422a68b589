"""Turns stored trials into FlagEvalMM's multiple-inference records: one a question, inferences by their own index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.types import BASE_VARIANT, Prediction, Request, Sample, Score

StoredTrial = tuple[Sample, Request, Prediction, Score | None]
"""A trial as stored, with its score of the metric to export (None: failed or not scored)."""


def flageval_records(trials: Iterable[StoredTrial]) -> list[dict[str, Any]]:
    """Return one record a question (and variant): answers, raw texts and scores of all its inferences.

    A failed, unscored or missing inference is null at its own index, so that none ever takes another's place.
    """
    questions: dict[str, dict[int, StoredTrial]] = {}
    for trial in trials:
        key = trial[2].key
        name = key.sample if key.variant == BASE_VARIANT else f"{key.sample}?{key.variant}"
        questions.setdefault(name, {})[key.repeat] = trial
    return [_record(name, inferences) for name, inferences in questions.items()]


def _record(name: str, inferences: dict[int, StoredTrial]) -> dict[str, Any]:
    ordered = [inferences.get(index) for index in range(max(inferences) + 1)]
    scores = [trial[3] if trial else None for trial in ordered]
    values = [score.value for score in scores if score and score.value is not None]
    return {
        "question_id": name,
        "question": _question(next(iter(inferences.values()))[1]),
        "answer": {f"inference_{index}": score.answer if score else None for index, score in enumerate(scores)},
        "multiple_raw_answers": [trial[2].text if trial else None for trial in ordered],
        "correct": sum(values) / len(values) if values else None,
        "inference_scores": [_plain(score.value) if score else None for score in scores],
        "num_inferences": len(values),
    }


def _question(request: Request) -> str:
    """The question as the model saw it: the last message a user sent."""
    return next((turn.text for turn in reversed(request.messages) if turn.role == "user"), "")


def _plain(value: float | None) -> int | float | None:
    return int(value) if value is not None and value.is_integer() else value
