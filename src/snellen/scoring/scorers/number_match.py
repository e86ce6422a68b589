"""Turns a reply to a question for a number into its score: the number read equals one of the answers, or does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...extract.extraction import AMBIGUOUS
from ...extract.other_kinds import extract_number
from .text_match import NO_REFERENCE

METRIC = "accuracy"
SAME = 1e-9
"""Relative difference up to which two numbers are one: what writing them down loses."""


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Score a number: 1.0 if it is one of `sample.answers`; unscored where none was read or nothing is known of it."""
    if not sample.answers:
        return [Score(request.key, METRIC, None, None, None, NO_REFERENCE)]
    wanted = [known for answer in sample.answers if (known := extract_number(answer)).value is not None]
    if not wanted:
        return [Score(request.key, METRIC, None, None, None, "the answer is not a number")]
    found = extract_number(prediction.text or "", finish=prediction.finish)
    if found.value is None:
        return [Score(request.key, METRIC, None, None, found.rule, found.reason)]
    if found.rule == "last":  # one of several, with nothing that says it is the answer
        return [Score(request.key, METRIC, None, None, found.rule, AMBIGUOUS)]
    right = any(math.isclose(found.value, known.value or 0.0, rel_tol=SAME) for known in wanted)
    detail = {"span": found.span} if found.span else {}
    return [Score(request.key, METRIC, float(right), f"{found.value:g}", found.rule, None, detail)]
