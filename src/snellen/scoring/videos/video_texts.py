"""How harnesses read numbers and short texts in replies to questions about videos, their misreadings included."""

from __future__ import annotations

import math
import re

import numpy as np

from ...core.types import Sample
from ...extract.numbers import parse_number
from ..scorers.mmmu_open import judge_open
from .video_letters import first_word

_POWERS = str.maketrans({"²": "^2", "³": "^3", "¹": "^1", "⁰": "^0", "⁴": "^4", "⁵": "^5"})
_NUMBER = re.compile(r"\d+\.?\d*")
_ORDER = re.compile(r"o\s*\([^)]+\)")
_NEAR = 0.01
_PUNCTUATION = """!"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"""


def mra_of_first_word(reply: str, sample: Sample) -> float | None:
    """VSI-Bench and lmms-eval: the first word must be the number (`about 4` is none)."""
    error = _relative_error(first_word(reply), sample)
    return None if error is None else float(np.mean(error <= 1 - np.linspace(0.5, 0.95, 10)))


def mra_of_whole(reply: str, sample: Sample) -> float | None:
    """VSI-Bench in VLMEvalKit: the whole reply must be the number (`4 tables` is none)."""
    error = _relative_error(reply, sample)
    return None if error is None else sum(error < 1 - (0.5 + 0.05 * step) for step in range(10)) / 10


def _relative_error(text: str, sample: Sample) -> float | None:
    """Return how far a text is from the right number, by its share; None where it is no number."""
    gold = parse_number(sample.answers[0])
    try:
        given = float(text)
    except ValueError:
        return None
    if gold is None or not gold.value or not math.isfinite(given):
        return None
    return abs(given - gold.value) / abs(gold.value)


def mmmu_after_answer(reply: str, sample: Sample) -> float:
    """Video-MMMU in VLMEvalKit: MMMU's rule for open questions, of what follows the last `Answer:`."""
    return float(judge_open(reply.rpartition("Answer:")[2].strip(), sample.answers))


def fits_text(reply: str, sample: Sample) -> float | None:
    """lmms-eval's MMVU: right where one text holds the other (so an empty reply is), numbers agree or all words occur.

    None for the rest, which it shows to a judge.
    """
    return 1.0 if any(_fits(_plain(reply), _plain(answer)) for answer in sample.answers) else None


def _plain(text: str) -> str:
    return " ".join(text.strip().lower().translate(_POWERS).split())


def _fits(given: str, wanted: str) -> bool:
    held = wanted in given or given in wanted
    return held or _same_number(given, wanted) or _same_order(given, wanted) or _all_words(given, wanted)


def _same_number(given: str, wanted: str) -> bool:
    numbers = [float(found[0]) for text in (given, wanted) if (found := _NUMBER.search(text))]
    return len(numbers) == 2 and abs(numbers[0] - numbers[1]) < _NEAR


def _same_order(given: str, wanted: str) -> bool:
    """Tell whether both name the same order of growth, `O(n)`."""
    orders = [found[0] for text in (given, wanted) if (found := _ORDER.search(text))]
    return len(orders) == 2 and orders[0] == orders[1]


def _all_words(given: str, wanted: str) -> bool:
    """Tell whether all longer words of an answer of two to five occur."""
    words, said = ([word.strip(_PUNCTUATION) for word in text.split()] for text in (wanted, given))
    return 2 <= len([word for word in words if word]) <= 5 and all(word in said for word in words if len(word) > 2)
