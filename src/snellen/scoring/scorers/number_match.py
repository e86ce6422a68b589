"""Turns a reply to a question for a number into its score: the number read equals one of the answers, or does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import AMBIGUOUS
from ...extract.numbers import counts_from_freezing, same_quantity
from ...extract.other_kinds import LAST, NumberRead, extract_number
from .replies import NO_REFERENCE, figure_text

METRIC = "accuracy"
NO_NUMBER = "the answer is not a number"
"""Also of one that holds several, as `3 to 5` does: which of them is meant is not guessed."""
CELSIUS = "°C"
SAME = 1e-9
"""Relative difference up to which two numbers are one: what writing them down loses."""


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a number: 1.0 if it is one of `sample.answers`; unscored where none was read or nothing is known of it."""
    if not sample.answers:
        return [Score(request.key, METRIC, None, None, None, NO_REFERENCE)]
    told = map(extract_number, sample.answers)
    wanted = [known for known in told if known.value is not None and known.rule != LAST]
    if not wanted:
        return [Score(request.key, METRIC, None, None, None, NO_NUMBER)]
    text = prediction.text or ""
    found = extract_number(text, finish=prediction.finish)
    if found.value is None:
        return [Score(request.key, METRIC, None, None, found.rule, found.reason)]
    if found.rule == LAST or _on_no_scale(text, found, wanted):
        return [Score(request.key, METRIC, None, None, found.rule, AMBIGUOUS)]
    detail = {"span": found.span} if found.span else {}
    said, right = _said(found, wanted), _is_one_of(found, wanted)
    if right is None:
        return [Score(request.key, METRIC, None, said, found.rule, AMBIGUOUS, detail)]
    return [Score(request.key, METRIC, float(right), said, found.rule, None, detail)]


def _is_one_of(found: NumberRead, wanted: Sequence[NumberRead]) -> bool | None:
    """Tell whether a number is one of those wanted; None where it is only if it is read in one of two ways."""
    verdicts = {is_same(found, known) for known in wanted}
    return True if True in verdicts else None if None in verdicts else False


def _said(found: NumberRead, wanted: Sequence[NumberRead]) -> str:
    """Return a number as an answer is kept. Where the right answer has another unit, votes must tell them apart:

    it is kept in the answer's unit if it is the same quantity, else with its own.
    """
    units = {known.unit for known in wanted if known.unit}
    if not found.unit or not units or found.unit in units:
        return figure_text(found.value or 0.0)
    same = next((known for known in wanted if is_same(found, known)), None)
    return f"{figure_text(found.value or 0.0)} {found.unit}" if same is None else figure_text(same.value or 0.0)


def _on_no_scale(text: str, found: NumberRead, wanted: Sequence[NumberRead]) -> bool:
    """Tell whether a temperature is told by its distance from freezing, and not known to be in degrees Celsius."""
    if not counts_from_freezing(text.lower()):
        return False
    return {found.unit, *(known.unit for known in wanted)} - {"", "degree", "degrees", "°"} != {CELSIUS}


def is_same(found: NumberRead, known: NumberRead) -> bool | None:
    """Tell whether two numbers are one, by their units where both have one; None where it hangs on how one is read.

    `50 %` is 50 where the other is a plain 50, and 0.5 where it is that.
    """
    if (found.percent and known.unit) or (known.percent and found.unit):
        return False
    wanted = (known.value or 0.0, known.unit)
    same = same_quantity((found.value or 0.0, found.unit), wanted)
    if same is False and found.percent != known.percent:
        same = math.isclose(_as_share(found), _as_share(known), rel_tol=SAME)
    if same is False and found.other is not None:
        return None if same_quantity((found.other, found.unit), wanted) else False
    return same


def _as_share(number: NumberRead) -> float:
    return (number.value or 0.0) / (100 if number.percent else 1)
