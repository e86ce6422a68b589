"""Turns a reply to a question with several right options into scores: all and no other, and how far it agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.option_set import derive_marks
from ...extract.other_kinds import read_mark_set
from .text_match import NO_REFERENCE

METRIC, PARTIAL = "accuracy", "jaccard"
"""The second is the share of the options named or right that are both."""


def score_set(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a multiple response: `accuracy` 1.0 for exactly the right options, `jaccard` for how far the sets agree."""
    shown = request.shown or sample.options
    marks = request.marks or derive_marks(len(shown))
    found = read_mark_set(prediction.text or "", marks, shown, prediction.finish)
    chosen = [text for mark, text in zip(marks, shown, strict=True) if mark in found.marks]
    reason = found.reason if sample.answers else NO_REFERENCE
    shares = dict.fromkeys((METRIC, PARTIAL)) if reason else _shares(set(chosen), set(sample.answers))
    detail: dict[str, Any] = {"span": found.span} if found.span else {}
    said = "; ".join(chosen) or None
    return [Score(request.key, metric, value, said, found.rule, reason, detail) for metric, value in shares.items()]


def _shares(chosen: set[str], right: set[str]) -> dict[str, float | None]:
    return {METRIC: float(chosen == right), PARTIAL: len(right & chosen) / len(right | chosen)}
