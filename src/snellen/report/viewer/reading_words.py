"""A scored trial to one sentence: which rule read the answer and why, and the part of the reply that decided."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ...core.markup import shorten
from ...core.types import Score
from ...extract.choice import extract_choice
from ...extract.explain import RULE_NAMES, why
from ...extract.extraction import RULE_SET, Extraction
from ...extract.mark_patterns import derive_marks
from ...scoring.tables.table import lower_is_better
from ..pages.gallery import Shown

LIKELIHOOD = "likelihood"


class Explained(NamedTuple):
    """Why a trial was read as it was; empty where its scorer reads no options."""

    sentence: str = ""
    span: Sequence[int] | None = None


def explain_score(shown: Shown) -> Explained:
    """Return the words for a trial's first score: the reader's own for a reply, the values for likelihoods."""
    if not shown.scores:
        return Explained()
    score = shown.scores[0]
    if shown.prediction.loglikelihoods is not None:
        return Explained(_values_in_words(score))
    if shown.prediction.text is None or score.rule is None:
        return Explained("", shown.span)
    found = _read_again(shown, score) or _as_stored(shown, score)
    if found is None:
        return Explained(_metric_in_words(score), shown.span or _place_of(shown, score))
    return Explained(why(found, shown.prediction.text), found.span or shown.span)


@cache
def _sentences() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads((files("snellen") / "catalog" / "reading" / "metrics.toml").read_text("utf-8"))


def _metric_in_words(score: Score) -> str:
    """Return what the score of a text, a number or fields means; nothing where no sentence fits what is stored."""
    told = _sentences().get(score.metric, {}).get(score.rule or "", {})
    if score.value is None or not told:
        return ""
    best = score.value <= 0.0 if lower_is_better(score.metric) else score.value >= 1.0
    named = {"answer": shorten(score.answer or "", 60), "value": score.value, **score.detail}
    try:
        return told["right" if best else "wrong"].format_map(named)
    except (KeyError, ValueError):  # scored by another version, which kept other details
        return ""


def _place_of(shown: Shown, score: Score) -> tuple[int, int] | None:
    """Return where in the reply the answer stands, if it stands there once: then it is what decided."""
    text, answer = (shown.prediction.text or "").lower(), (score.answer or "").lower()
    if not answer or answer == text.strip() or len(text) != len(shown.prediction.text or "") or text.count(answer) != 1:
        return None
    start = text.index(answer)
    return start, start + len(answer)


def _read_again(shown: Shown, score: Score) -> Extraction | None:
    """Return the reading whole, its place too where no option was read; None if other rules read it than today's."""
    options = shown.request.shown or shown.sample.options
    if score.detail.get("rules") != RULE_SET or not options:
        return None
    marks = shown.request.marks or derive_marks(len(options))
    offered = dict(zip(marks, options, strict=True))
    found = extract_choice(shown.prediction.text or "", offered, finish=shown.prediction.finish)
    same = found.rule == score.rule and (None if found.letter is None else offered[found.letter]) == score.answer
    return found if same else None


def _as_stored(shown: Shown, score: Score) -> Extraction | None:
    """Return the reading as far as the score keeps it, where a rule of ours or of a profile read it."""
    options = shown.request.shown or shown.sample.options
    if "profile" not in score.detail and (score.rule not in RULE_NAMES or not options):
        return None
    named = dict(zip(shown.request.shown, shown.request.marks, strict=False))
    letter = None if score.answer is None else named.get(score.answer, score.answer)
    start, end = shown.span if isinstance(shown.span, list | tuple) and len(shown.span) == 2 else (0, 0)
    return Extraction(letter, str(score.rule), None if letter else score.reason, (start, end) if end > start else None)


def _values_in_words(score: Score) -> str:
    values = sorted(score.detail.get("values") or (), reverse=True)
    if score.detail.get("ties", 1) > 1:
        tied = f"{score.detail['ties']} options are equally likely ({values[0]:.4f})"
        if score.answer is None:
            return f"{tied}, right and wrong ones: none was chosen."
        return f"{tied}; the one that stands first in the sample is taken."
    if score.answer is None or len(values) < 2:
        return "No option has a likelihood above zero, so none was chosen." if score.answer is None else ""
    _, _, reduction = (score.rule or LIKELIHOOD).partition(":")
    return (
        f"The likeliest option is taken: {values[0]:.4f} against {values[1]:.4f} of the next (by {reduction or 'sum'})."
    )
