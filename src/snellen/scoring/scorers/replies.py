"""Turns a stored reply and a text metric into a Score: what counts as answer text, and when there is none to score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.thinking import answer_start

Measure = Callable[[str, Sequence[str]], float]


def answer_text(prediction: Prediction) -> str | None:
    """Return the reply after any thinking block, or None when it is log-likelihoods or only an unfinished thought."""
    if prediction.text is None:
        return None
    start = answer_start(prediction.text)
    return None if start is None else prediction.text[start:].strip()


def score_text(metric: str, measure: Measure, sample: Sample, prediction: Prediction) -> Score:
    """Measure the reply against the sample's answers; unscored, with the reason, where text or reference is missing."""
    text = answer_text(prediction)
    if text is None:
        reason = "no text reply" if prediction.text is None else "truncated inside its thinking block"
        return Score(key=prediction.key, metric=metric, value=None, reason=reason)
    if not sample.answers:
        return Score(
            key=prediction.key, metric=metric, value=None, answer=text, reason="the sample has no reference answer"
        )
    return Score(
        key=prediction.key, metric=metric, value=float(measure(text, sample.answers)), answer=text, rule=metric
    )


def text_scorer(metric: str, measure: Measure) -> Callable[..., Sequence[Score]]:
    """Return the scorer that gives one metric by measuring the reply against the references."""

    def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
        return [score_text(metric, measure, sample, prediction)]

    return score
