"""Turns extracted document fields into containment (as in ReForm-Eval) and field F1."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from .replies import answer_text, text_scorer
from .vqa import contains_word, normalise_vqa
from .word_accuracy import contains_words, words


def contains_reform(prediction: str, answers: str | Sequence[str]) -> bool:
    """ReForm-Eval's KIE score: VQA normalisation of both sides, then `\\b answer \\b`; a list means any of them."""
    read = normalise_vqa(prediction)
    wanted = [answers] if isinstance(answers, str) else answers
    return any(contains_word(read, normalise_vqa(answer)) for answer in wanted)


def contains_field(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the words of any answer stand together in the prediction, else 0.

    Works for `$5`, `50%` and every script; an answer of symbols alone is compared as it is.
    """
    symbols = any(answer.strip() and not words(answer) and answer.strip() in prediction for answer in answers)
    return float(symbols) or contains_words(prediction, answers)


def field_f1(predicted: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Return the F1 (0..1) over (field, value) pairs; values are compared by their words, empty values do not count."""
    found, gold = _pairs(predicted), _pairs(wanted)
    if not found and not gold:
        return 1.0
    return 2 * (found & gold).total() / (found.total() + gold.total())


def _pairs(fields: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    flat = (
        (name, value) for name, values in fields.items() for value in (values if isinstance(values, list) else [values])
    )
    pairs = ((" ".join(words(name)), " ".join(words(_plain(value))) or _plain(value).strip()) for name, value in flat)
    return Counter(pair for pair in pairs if pair[1])


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def parse_fields(text: str) -> dict[str, Any] | None:
    """Read the one JSON object of a reply (code fences and text around it allowed), or return None."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


score = text_scorer("kie_accuracy", contains_field)
"""Scorer `kie`: containment of any reference value."""
score_reform = text_scorer("kie_accuracy_reform", contains_reform)
"""Scorer `kie_reform`: containment as in ReForm-Eval; several answers mean any of them."""


def score_f1(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `kie_f1`: F1 of a JSON reply against `sample.meta["fields"]`."""
    text, wanted = answer_text(prediction), sample.meta.get("fields")
    predicted = parse_fields(text) if text is not None else None
    if not isinstance(wanted, dict):
        return [Score(prediction.key, "kie_f1", None, reason='the sample has no meta["fields"]')]
    if predicted is None:
        return [Score(prediction.key, "kie_f1", None, text, reason="the reply holds no JSON object")]
    return [Score(prediction.key, "kie_f1", field_f1(predicted, wanted), text, "json_fields")]
