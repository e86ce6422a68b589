"""Turns a stored reply and a text metric into a Score: what counts as answer text, and when there is none to score."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import EMPTY, TRUNCATED
from ...extract.reply_text import answer_start

# Answers made of several texts, as MM-Vet writes them: `a <AND> b` is met by both, `a <OR> b` by either.

AND, OR = "<AND>", "<OR>"
JOINED = "the answer joins texts by <AND> or <OR>: use the scorer contains, or a judge"
BOTH_WAYS = "the answer holds <AND> and <OR>, and what is asked hangs on which of them binds"


def is_joined(answers: Sequence[str]) -> bool:
    """Tell whether an answer is a condition over several texts."""
    return any("<" in answer and (AND in answer or OR in answer) for answer in answers)


def is_met(answer: str, holds: Callable[[str], bool]) -> bool | None:
    """Tell whether a condition is met, by what holds of each of its texts; a plain answer is one of a single text.

    Nobody says which of the two joints binds closer: where that decides, None.
    """
    all_of_any = all(any(map(holds, _parts(group, OR))) for group in _parts(answer, AND))
    any_of_all = any(all(map(holds, _parts(group, AND))) for group in _parts(answer, OR))
    return all_of_any if all_of_any == any_of_all else None


def _parts(text: str, joint: str) -> list[str]:
    return [part.strip() for part in text.split(joint) if part.strip()]


_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
NO_REFERENCE = "no_reference"
"""Why a reply is unscored to whose question nobody gave a right answer."""
PEER = "peer"
"""Where the detail of an imported prediction keeps what its harness made of the reply."""
NO_VERDICT = "the file has no verdict of it"
Measure = Callable[[str, Sequence[str]], float]


def answer_text(prediction: Prediction) -> str | None:
    """Return the reply after any thinking block, or None when it is log-likelihoods or only an unfinished thought."""
    if prediction.text is None:
        return None
    start = answer_start(prediction.text)
    return None if start is None else prediction.text[start:].strip()


def visible(text: str) -> str:
    """Return a reply without any block of thinking in it; one that is not closed hides all that follows."""
    return _THINKING.sub(" ", text).strip()


def why_no_text(prediction: Prediction) -> str:
    """Return why a prediction holds no answer in words: an empty reply is unscored by every metric, never just 0."""
    if prediction.text is None:
        return "no text reply"
    if answer_start(prediction.text) is None:
        return "truncated inside its thinking block"
    return TRUNCATED if prediction.finish == "length" else EMPTY


def nothing_to_compare(metric: str, sample: Sample, prediction: Prediction) -> list[Score]:
    """Return the unscored score of a reply that holds no answer in words, or whose sample has none; else nothing."""
    text = answer_text(prediction)
    if text and sample.answers:
        return []
    reason = NO_REFERENCE if text else EMPTY if text == "" else TRUNCATED
    return [Score(prediction.key, metric, None, None, None, reason)]


def figure_text(value: float) -> str:
    """Return a number as an answer is kept: with all its digits, so that 1234567 and 1234568 stay two answers."""
    return f"{value:.15g}"


def score_text(metric: str, measure: Measure, sample: Sample, prediction: Prediction) -> Score:
    """Measure the reply against the sample's answers; unscored, with the reason, where text or reference is missing."""
    text = answer_text(prediction)
    if not text:
        return Score(key=prediction.key, metric=metric, value=None, reason=why_no_text(prediction))
    if not sample.answers:
        return Score(
            key=prediction.key, metric=metric, value=None, answer=text, reason="the sample has no reference answer"
        )
    if is_joined(sample.answers):
        return Score(key=prediction.key, metric=metric, value=None, answer=text, reason=JOINED)
    return Score(
        key=prediction.key, metric=metric, value=float(measure(text, sample.answers)), answer=text, rule=metric
    )


def text_scorer(metric: str, measure: Measure) -> Callable[..., Sequence[Score]]:
    """Return the scorer that gives one metric by measuring the reply against the references."""

    def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
        if is_as_written(options) and prediction.text is not None and sample.answers:
            text = prediction.text
            return [Score(prediction.key, metric, float(measure(text, sample.answers)), text, rule=metric)]
        return [score_text(metric, measure, sample, prediction)]

    return score


def is_as_written(options: Mapping[str, Any]) -> bool:
    """Tell whether every reply is measured as it stands, the empty one too: ReForm-Eval does so."""
    return bool(options) and options.get("profile") == "reform"


def score_verdict(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `file_verdict`: what the file that the reply came from says it scored."""
    value = (prediction.detail.get(PEER) or {}).get("verdict")
    return [Score(request.key, "file_verdict", value, reason=None if value is not None else NO_VERDICT)]
