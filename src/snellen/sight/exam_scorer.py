"""Stored trials of an exam to scores and thresholds: the same readers and the same fit as while it was sat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..core.types import Estimate, Failure, FailureKind, Prediction, Request, Sample, Score
from ..model.served.replies import without_advice
from ..scoring.scorers.replies import answer_text
from .adaptive import AdaptiveTest
from .cards import exam_cards, eye_test
from .exam_trials import BLANK, Outcome, Planned, last_sitting
from .plate import EyeTest, Reading
from .procedure import MEASURED, rules_for
from .special import fixed_kind

METRIC = "right_where_asked"
"""The share right at the levels the exam chose; two models are asked at different ones."""
ADVICE = {
    FailureKind.PAYLOAD: "such pictures are the test: leave it out with --tests, or let the server take larger ones",
    FailureKind.TOO_LONG: "leave this test out with --tests, or serve the model with a longer context",
}
TRUNCATED = "the reply was cut off before its answer: raise --max-tokens"


def read_outcome(
    test: EyeTest, truth: str, detail: Mapping[str, Any], prediction: Prediction
) -> tuple[Reading | None, str]:
    """Return what a prediction says, or None and why it counts as failed."""
    if prediction.failure is not None:
        return None, failure_words(prediction.failure)
    text = answer_text(prediction)
    if text is not None and prediction.finish == "length":
        text = first_line_whole(text)
    if text is None:
        return None, TRUNCATED
    reading = test.read(text, truth, detail)
    bare = reading.answer is not None and _bare(reading.answer) == _bare(text)
    return (reading, "") if bare or prediction.finish != "length" else (None, TRUNCATED)


def failure_words(failure: Failure) -> str:
    """Return why a trial failed and what helps in an exam, where other commands may shrink their pictures."""
    advice = ADVICE.get(failure.kind)
    told = f"{without_advice(failure.message)} ({advice})" if advice else failure.message
    return f"{failure.kind.value}: {told}"


def first_line_whole(text: str) -> str | None:
    """Return the first line of a reply that was cut off, or None where the cut may have been in it.

    What a thought names before its end is no answer; an answer that stands alone on the first line is one.
    """
    line, end, _ = text.lstrip().partition("\n")
    return line if end else None


def _bare(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum() or char == "?")


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return one score: the share of the stimulus that was read right; no answer is none, and blanks are not scored."""
    name = str(sample.meta["test"])
    if name not in exam_cards():
        return [Score(prediction.key, METRIC, None, reason=f"test {name!r} is not in the catalog (a plug-in's)")]
    if sample.tags.get("stage") == BLANK:
        return [Score(prediction.key, METRIC, None, reason="a blank picture has no right answer")]
    truth = sample.answers[0] if sample.answers else ""
    reading, why = read_outcome(eye_test(name), truth, sample.meta["detail"], prediction)
    if reading is None:
        return [Score(prediction.key, METRIC, None, reason=why)]
    detail = {"right": reading.right, "glyphs": reading.glyphs, "guess": reading.guess, **reading.detail}
    if reading.answer is None:
        return [Score(prediction.key, METRIC, None, reason="no answer", detail=detail)]
    share = min(1.0, reading.right / reading.glyphs)
    return [Score(prediction.key, METRIC, share, answer=reading.answer, rule="exam", detail=detail)]


def thresholds(table: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
    """Return `threshold` in the unit of the test, fitted to the trials of its last sitting as the exam does."""
    pairs = list(table.scores() if hasattr(table, "scores") else table)
    names = {str(sample.meta["test"]) for sample, _ in pairs}
    if len(names) != 1:
        return {}
    name = names.pop()
    card = exam_cards().get(name)
    if card is None or fixed_kind(eye_test(name)) is not None:
        return {}
    running = AdaptiveTest(name, eye_test(name), 0, rules_for("standard", rows=card.glyphs > 1), blanks=False)
    running.outcomes = last_sitting([_outcome(sample, item) for sample, item in pairs])
    running.ready = True
    settled = running.settle()
    if settled.known is None or settled.verdict != MEASURED:
        return {"threshold": Estimate(None, n=len(pairs))}
    level = card.axis.level
    low, high = sorted((level(float(settled.known.low[0])), level(float(settled.known.high[0]))))
    value = level(float(settled.known.middle[0]))
    return {"threshold": Estimate(value, (high - low) / (2 * 1.96), (low, high), len(pairs))}


def _outcome(sample: Sample, item: Score) -> Outcome:
    planned = msgspec.convert(sample.meta["planned"], Planned)
    detail, level = item.detail, float(str(sample.tags["level"]))
    if "right" not in detail:
        return Outcome(planned, level, None)
    reading = Reading(float(detail["right"]), int(detail["glyphs"]), float(detail["guess"]), item.answer)
    return Outcome(planned, level, reading, sample.answers[0] if sample.answers else "", sample.meta["detail"])
