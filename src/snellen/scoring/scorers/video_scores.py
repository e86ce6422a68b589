"""Scores of video benchmarks: mean relative accuracy of a number, and how far two spans of time overlap."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.errors import ConfigError, not_among
from ...core.types import OFFERED, Form, Prediction, Request, Sample, Score
from ...extract.extraction import AMBIGUOUS
from ...extract.numbers import in_unit
from ...extract.other_kinds import LAST, extract_number
from . import by_form
from .replies import NO_REFERENCE, figure_text, visible

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?"
_CLOCKS = re.compile(rf"\b({_CLOCK})\s*[–-]\s*({_CLOCK})\b")
_PAIR = re.compile(r"(\d+(?:\.\d+)?)\s*[–-]\s*(\d+(?:\.\d+)?)")
_ONE_CLOCK = re.compile(rf"\b({_CLOCK})\b")
_TIME = re.compile(r"\b(\d+(?:\.\d+)?)\b")
_CUES = ("start", "end", "happen")
_EXAMPLE = "a specific example is : 20.8 - 30.0 seconds"
"""What its prompt shows: a reply that repeats it has not answered with it."""


def read_span_lmms(text: str) -> tuple[float, float] | None:
    """Charades-STA in lmms-eval: the first span in sentences with a cue, else in any; clocks come before seconds.

    Without a span (`a - b`, `a to b`) two clocks, else the first numbers of two sentences. A span that ends before it
    starts is turned round.
    """
    lowered = text.lower().replace(_EXAMPLE, "").replace("to", "-")
    sentences = re.split(r"[!?\n]", lowered)
    sentences = [part for part in sentences if any(cue in part for cue in _CUES)] or sentences
    for shape in (_CLOCKS, _PAIR):
        pair = next((found for part in sentences if (found := shape.search(part))), None)
        if pair:
            return _in_order(_seconds(pair[1]), _seconds(pair[2]))
    times = [_seconds(clock) for part in sentences for clock in _ONE_CLOCK.findall(part)]
    if len(times) < 2:
        times = [float(found[1]) for part in sentences if (found := _TIME.search(part))]
    return _in_order(times[0], times[1]) if len(times) > 1 else None


def _seconds(said: str) -> float:
    seconds = 0.0
    for part in said.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def _in_order(first: float, second: float) -> tuple[float, float]:
    return (min(first, second), max(first, second))


TOLERANCES = tuple(0.5 + 0.05 * step for step in range(10))
"""Thresholds of mean relative accuracy, 0.50 to 0.95 (VSI-Bench)."""
OVERLAPS = (0.3, 0.5, 0.7)
OWN_TIMES = "snellen"
CLOCK = re.compile(r"\b(?:(\d{1,2}):)?(\d{1,2}):(\d{2}(?:\.\d+)?)\b")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
NO_SECONDS = re.compile(
    r"(?<![a-z])(?:min(?:ute)?s?|m|h|hours?|hrs?|frames?|ms|milliseconds?|percent)(?![a-z])|%|分|帧", re.IGNORECASE
)
"""Numbers beside one of these are no seconds: which of them are converted is not guessed."""


def score_mra(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a choice by accuracy, and a number by the share of tolerances its relative error keeps."""
    known = extract_number(sample.answers[0]) if sample.answers else None
    if (
        sample.form in OFFERED
        or sample.form is Form.YESNO
        or known is None
        or known.value is None
        or known.rule == LAST
    ):
        return by_form.score(sample, request, prediction, options)
    found = extract_number(prediction.text or "", finish=prediction.finish)
    if found.value is None:
        return [Score(request.key, "accuracy", None, None, found.rule, found.reason)]
    if found.rule == LAST:
        return [Score(request.key, "accuracy", None, None, found.rule, AMBIGUOUS)]
    said = in_unit(found.value, found.unit, known.unit)
    value = max((relative_accuracy(one, known.value) for one in said), default=0.0)
    return [
        Score(request.key, "accuracy", value, figure_text(found.value), "relative accuracy", None, {"metric": "mra"})
    ]


def relative_accuracy(value: float, answer: float) -> float:
    """Return the share of thresholds t for which the relative error is below 1 - t."""
    if not answer:
        return float(value == answer)
    error = abs(value - answer) / abs(answer)
    return sum(error < 1 - tolerance + 1e-12 for tolerance in TOLERANCES) / len(TOLERANCES)


def score_span(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score the overlap of two spans of time: as it is (`temporal_iou`), and whether it reaches 0.3, 0.5 and 0.7."""
    names = ["temporal_iou", *(f"recall_{level:g}" for level in OVERLAPS)]
    wanted = read_span(" ".join(sample.answers))
    if wanted is None:
        return [Score(request.key, name, None, None, None, NO_REFERENCE) for name in names]
    read = _span_reader(str(options.get("times") or OWN_TIMES))
    found = read(visible(prediction.text or ""))
    if found is None:
        return [Score(request.key, name, None, reason="not exactly two times") for name in names]
    overlap = span_overlap(found, wanted)
    values = [overlap, *(float(overlap >= level) for level in OVERLAPS)]
    said = f"{figure_text(found[0])} - {figure_text(found[1])}"
    return [Score(request.key, name, value, said, "two times") for name, value in zip(names, values, strict=True)]


def _span_reader(name: str) -> Callable[[str], tuple[float, float] | None]:
    if name not in SPAN_READERS:
        raise ConfigError(f"score_options.times {not_among(name, SPAN_READERS, ' is unknown')}")
    return SPAN_READERS[name]


def read_span(text: str) -> tuple[float, float] | None:
    """Return the two times a text names, in seconds or as a clock; None unless it names exactly two, in order."""
    seconds = [int(h or 0) * 3600 + int(m) * 60 + float(s) for h, m, s in CLOCK.findall(text)]
    if not seconds and not NO_SECONDS.search(text):
        seconds = [float(number) for number in NUMBER.findall(text)]
    return (seconds[0], seconds[1]) if len(seconds) == 2 and seconds[0] <= seconds[1] else None


def span_overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return intersection over union of two spans."""
    inside = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    union = max(first[1], second[1]) - min(first[0], second[0])
    return inside / union if union > 0 else float(first == second)


SPAN_READERS: Mapping[str, Callable[[str], tuple[float, float] | None]] = {
    OWN_TIMES: read_span,
    "lmms-eval": read_span_lmms,
}
"""Who reads the two times of a reply, by the name that cards use (`score_options.times`)."""
