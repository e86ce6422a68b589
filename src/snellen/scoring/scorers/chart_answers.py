"""Answers about charts as ChartQAPro counts them: numbers within 5 %, years and stated kinds exactly, texts by ANLS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from ...data.files.records import parse_literal
from ...extract.other_kinds import extract_short
from .replies import answer_text, nothing_to_compare
from .vqa import RELAXED_TOLERANCE, anls

METRIC = "chart_answer"
KIND_TAG, YEARS_TAG = "Question Type", "years"
"""Where a sample says what it asks, and of which of its answers a year must be exact."""
EXACT_KINDS = frozenset({"Fact Checking", "Multi Choice"})
_QUOTES = " '\"’‘"


def score_chart_answer(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Metric `chart_answer`: the mean over the members of the answer, of the reply or of the short answer in it."""
    missing = nothing_to_compare(METRIC, sample, prediction)
    if missing:
        return missing
    text = answer_text(prediction) or ""
    exact = str(sample.tags.get(KIND_TAG)) in EXACT_KINDS
    years = _years(sample)
    said = (text, extract_short(text))
    value = max(chart_answer(answer, one, years, exact=exact) for answer in sample.answers for one in said)
    return [Score(request.key, METRIC, value, said[1], "exact" if exact else "relaxed")]


def _years(sample: Sample) -> list[bool]:
    flags = parse_literal(str(sample.tags.get(YEARS_TAG) or "[]"))
    read = [str(flag).upper() == "YES" for flag in flags] if isinstance(flags, list) else []
    return read[-1:] if sample.tags.get(KIND_TAG) == "Conversational" else read


def chart_answer(gold: str, reply: str, years: Sequence[bool] = (), *, exact: bool = False) -> float:
    """Return the mean over places of two lists (a single answer is a list of one); a missing or surplus one is 0."""
    wanted, given = members(gold), members(reply)
    flags = [*years] if len(years) >= len(wanted) else [*years] * len(wanted)
    pairs = list(zip(wanted, given, strict=False))
    scores = [
        float(one.lower() == other.lower()) if exact or (place < len(flags) and flags[place]) else _alike(one, other)
        for place, (one, other) in enumerate(pairs)
    ]
    return sum(scores) / max(len(wanted), len(given))


def members(text: str) -> list[str]:
    """Return the members of a list as it is written, with or without quotes; of any other text, the text."""
    bare = text.strip().strip(".").strip()
    if not (bare.startswith("[") and bare.endswith("]")):
        return [bare]
    parsed = parse_literal(bare)
    parts = parsed if isinstance(parsed, list) else bare[1:-1].split(",")
    return [str(part).strip(_QUOTES) for part in parts] or [bare]


def _alike(gold: str, reply: str) -> float:
    wanted, given = gold.strip().strip("%").strip(), reply.strip().strip("%").strip()
    left, right = _float(wanted), _float(given)
    if left is None or right is None:
        return anls(given, [wanted])
    return float(right == 0.0) if left == 0.0 else float(abs(right - left) <= RELAXED_TOLERANCE * abs(left))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
