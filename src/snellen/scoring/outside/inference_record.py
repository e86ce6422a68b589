"""Turns the inferences of one question into its record in the form of the multiple-inference document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct


class Inference(Struct, frozen=True):
    """One inference: the raw reply, what was read from it, and its score; None where there is none."""

    raw: str | None = None
    answer: str | None = None
    score: float | None = None


MISSING = Inference()


def inference_record(question_id: Any, question: str, inferences: Sequence[Inference]) -> dict[str, Any]:
    """Return the record. Failed, unscored and missing inferences are null at their own index, so none takes another's place."""
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
