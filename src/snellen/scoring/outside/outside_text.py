"""Turns outside OCR and KIE records into a Tally of containment scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..scorers import key_values, word_accuracy
from .outside_fields import Row
from .outside_tally import Tally


def tally_texts(rows: Iterable[Row], *, formulation: str, profile: str, with_rounds: bool) -> Tally:
    """Score every record of an OCROpenEnded or KIEOpenEnded file."""
    measure = _MEASURES[formulation, profile == "reform"]
    tally = Tally(with_rounds=with_rounds)
    for row in rows:
        tally.add(row, measure(row))
    return tally


def _ocr_reform(row: Row) -> float:
    return float(word_accuracy.contains_reform(row.text_or_texts("prediction"), row.text_or_texts("answer")))


def _kie_reform(row: Row) -> float:
    return float(key_values.contains_reform(row.text("prediction"), row.text_or_texts("answer")))


def _ocr(row: Row) -> float:
    prediction = row.text_or_texts("prediction")
    return word_accuracy.contains_words(
        prediction if isinstance(prediction, str) else " ".join(prediction), _references(row)
    )


def _kie(row: Row) -> float:
    return key_values.contains_field(row.text("prediction"), _references(row))


def _references(row: Row) -> list[str]:
    answer = row.text_or_texts("answer")
    references = [answer] if isinstance(answer, str) else answer
    if not any(reference.strip() for reference in references):
        row.fail("'answer' is empty, so nothing can match it")
    return references


_MEASURES: dict[tuple[str, bool], Callable[[Row], float]] = {
    ("OCROpenEnded", True): _ocr_reform,
    ("OCROpenEnded", False): _ocr,
    ("KIEOpenEnded", True): _kie_reform,
    ("KIEOpenEnded", False): _kie,
}
