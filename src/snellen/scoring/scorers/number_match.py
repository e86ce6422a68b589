"""Turns a reply to a question for a number into its score: the number read equals one of the answers, or does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import AMBIGUOUS
from ...extract.other_kinds import NumberRead, extract_number
from .replies import figure_text
from .text_match import NO_REFERENCE

METRIC = "accuracy"
NO_NUMBER = "the answer is not a number"
"""Also of one that holds several, as `3 to 5` does: which of them is meant is not guessed."""
LAST = "last"
"""The rule by which the last of several numbers is read."""
SAME = 1e-9
"""Relative difference up to which two numbers are one: what writing them down loses."""


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a number: 1.0 if it is one of `sample.answers`; unscored where none was read or nothing is known of it."""
    if not sample.answers:
        return [Score(request.key, METRIC, None, None, None, NO_REFERENCE)]
    wanted = [known for answer in sample.answers if (known := extract_number(answer)).value is not None]
    wanted = [known for known in wanted if known.rule != LAST]
    if not wanted:
        return [Score(request.key, METRIC, None, None, None, NO_NUMBER)]
    found = extract_number(prediction.text or "", finish=prediction.finish)
    if found.value is None:
        return [Score(request.key, METRIC, None, None, found.rule, found.reason)]
    if found.rule == LAST:  # one of several, with nothing that says it is the answer
        return [Score(request.key, METRIC, None, None, found.rule, AMBIGUOUS)]
    right = any(_is_same(found, known) for known in wanted)
    detail = {"span": found.span} if found.span else {}
    return [Score(request.key, METRIC, float(right), figure_text(found.value), found.rule, None, detail)]


def _is_same(found: NumberRead, known: NumberRead) -> bool:
    """Tell whether two numbers are one; `50 %` is 50 where the other is a plain 50, and 0.5 where it is that."""
    first, second = found.value or 0.0, known.value or 0.0
    if math.isclose(first, second, rel_tol=SAME):
        return True
    if found.percent == known.percent:
        return False
    return math.isclose(*((first / 100, second) if found.percent else (first, second / 100)), rel_tol=SAME)
