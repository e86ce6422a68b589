"""What a score counts in a figure: its value, the worst where nothing could be read, nothing where nobody can judge."""

from __future__ import annotations

import re

from .types import Score

LOWER_IS_BETTER = ("wer", "cer", "edit_distance", "word_error", "error", "acuity_px", "contrast_threshold")
"""The first words of metrics whose best value is the lowest: `wer_ptb` is one, `certainty` is not."""
_ERRORS = re.compile(rf"(?:{'|'.join(LOWER_IS_BETTER)})s?(?![a-z])")
WITHOUT_WORST = re.compile(r"(?:acuity_px|contrast_threshold)(?![a-z])")
"""Metrics without a worst value: pixels may be any number. What was not read is outside of them, and is counted."""
NOT_JUDGED = (
    "no_reference",
    "the sample ",
    "a blank picture has no ",
    "the answer ",
    "harness_error",
    "left out by the tool",
    "open answer: this benchmark needs a scorer of its own",
    "when the answer is shown is not known",
    "which frames were seen is not known",
    "the size of the picture is not known",
    "test ",
    "no valid verdict",
    "no majority: ",
    "not judged",
    "not scored",
)
"""How reasons begin that do not speak of the reply: nobody knows the right answer, or who should judge could not.

Every other reason says that no answer could be read: unparsed, refused, truncated, ambiguous, empty, or what a plug-in
says in its own words. A plug-in that could not judge begins its reason with `not judged`.
"""

CONVENTIONS = ("conditional", "over-n")
"""What the consistency of a chain (Cf, Cb) may divide by; the first is ours."""


def lower_is_better(metric: str) -> bool:
    """Tell whether the lowest value of a metric is its best."""
    return _ERRORS.match(metric) is not None


def worst_value(metric: str) -> float | None:
    """Return what a reply is worth in which no answer could be read: 0, of an error 1; None where there is no worst.

    A word error rate of 1 is that of an empty page: every word is missing.
    """
    if WITHOUT_WORST.match(metric):
        return None
    return 1.0 if lower_is_better(metric) else 0.0


def is_unread(reason: str | None) -> bool:
    """Tell whether the reason of a score without a value is that no answer could be read from the reply."""
    return reason is not None and not reason.startswith(NOT_JUDGED)


def worth_of(score: Score) -> float | None:
    """Return what a score counts in a figure: its value, the worst where nothing was read; None: it is outside."""
    if score.value is not None:
        return score.value
    return worst_value(score.metric) if is_unread(score.reason) else None
