"""Turns a reading of a picture's text into word accuracy: as ReForm-Eval defines it, and in every script."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.types import Prediction, Request, Sample, Score
from .replies import score_text, text_scorer
from .vqa import contains_word

_NOT_ASCII_WORD = re.compile(r"[^a-zA-Z0-9\s]")
# Scripts written without spaces: there every character is taken as a word of its own.
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
_SEPARATOR_CATEGORIES = frozenset("PSZC")
_DECIMAL_POINT = re.compile(r"(?<=\d)\.(?=\d)|(?<=\d)(?<!,\d)(?<!,\d\d),(?=\d{1,2}(?![\d,]))")
_MINUS = re.compile(r"(?<![^\W_])[-\u2212](?=\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_POINT_AS_LETTER, _MINUS_AS_LETTER = "\u02d1", "\u02d0"
"""Letters no text uses: they keep 12.5, 12,5 and -5 one word, so that an answer 5 is not found inside it."""


def characters_apart(text: str) -> str:
    """Return a text in which every character of a script without spaces stands alone, as a word; others stay."""
    return " ".join(_UNSPACED.sub(r" \1 ", text).split()) if _UNSPACED.search(text) else text


def contains_reform(prediction: str | Sequence[str], answer: str | Sequence[str]) -> bool:
    """ReForm-Eval's OCR score: all but ASCII letters, digits and space deleted, then `\\b answer \\b` is searched.

    A list is joined by spaces, on both sides: it does not mean "any of".
    """
    return contains_word(strip_reform(prediction), strip_reform(answer))


def strip_reform(text: str | Sequence[str]) -> str:
    """Return what ReForm-Eval compares: ASCII words, lower case, white space kept as it is."""
    joined = text if isinstance(text, str) else " ".join(text)
    return _NOT_ASCII_WORD.sub("", joined).lower()


def words(text: str) -> list[str]:
    """Split any script into comparable words: NFKC, accents kept, case folded, punctuation and symbols as separators.

    Numbers keep their sign and their decimal point, a comma too, and lose their thousands separators.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    numbers = _DECIMAL_POINT.sub(_POINT_AS_LETTER, _THOUSANDS.sub("", folded))
    if "-" in numbers or "\u2212" in numbers:
        numbers = _MINUS.sub(_MINUS_AS_LETTER, numbers)
    spaced = "".join(
        " " if unicodedata.category(character)[0] in _SEPARATOR_CATEGORIES else character for character in numbers
    )
    return _UNSPACED.sub(r" \1 ", spaced).replace(_POINT_AS_LETTER, ".").replace(_MINUS_AS_LETTER, "-").split()


def contains_words(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the words of any answer stand in the prediction, in order and next to each other, else 0."""
    read = _padded(words(prediction))
    return float(any(_padded(wanted) in read for answer in answers if (wanted := words(answer))))


def _padded(parts: Sequence[str]) -> str:
    return "\x1f".join(["", *parts, ""])


def word_accuracy(prediction: str, answers: Sequence[str]) -> float:
    """Return the share of the reference's words that were read (as a bag, 0..1), for the best reference."""
    read = Counter(words(prediction))
    return max((_recall(read, Counter(words(answer))) for answer in answers), default=0.0)


def _recall(read: Counter[str], wanted: Counter[str]) -> float:
    return (read & wanted).total() / wanted.total() if wanted else 0.0


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `ocr`: containment of the reference's words, and the share of them that was read."""
    return [
        score_text("ocr_accuracy", contains_words, sample, prediction),
        score_text("ocr_word_accuracy", word_accuracy, sample, prediction),
    ]


score_reform = text_scorer("ocr_accuracy_reform", contains_reform)
"""Scorer `ocr_reform`: ReForm-Eval's containment; several answers are joined, as there."""
