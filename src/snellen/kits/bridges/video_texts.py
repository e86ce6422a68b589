"""How harnesses read numbers and short texts in replies to questions about videos, their misreadings included."""

from __future__ import annotations

import math
import re

import numpy as np

from ...core.types import Sample
from ...data.files.written_lists import parse_literal
from ...extract.numbers import parse_number
from ...scoring.scorers.mmmu_open import judge_open
from .video_letters import UNSEEN, after_thought, first_word

_POWERS = str.maketrans({"²": "^2", "³": "^3", "¹": "^1", "⁰": "^0", "⁴": "^4", "⁵": "^5"})
_NUMBER = re.compile(r"\d+\.?\d*")
_ORDER = re.compile(r"o\s*\([^)]+\)")
_NEAR = 0.01
_SIGNED = re.compile(r"-?\d+(?:\.\d+)?")
_WITH_POWERS = re.compile(r"[-+]?(?:\d*\.\d+|\d+)(?:[eE][-+]?\d+)?")
_TAGGED_NUMBER = re.compile(
    rf"<\s*answer\b[^>]*>\s*({_WITH_POWERS.pattern})(?:[^\d<][^<]*)?<\s*/\s*answer\s*>", re.IGNORECASE
)
_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_NUMBER_WORDS = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
_PUNCTUATION = """!"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"""


def mra_of_first_word(reply: str, sample: Sample) -> float | None:
    """VSI-Bench's own: the first word must be the number (`about 4` is none)."""
    return _mra(_float(first_word(reply)), sample)


def mra_of_first_number(reply: str, sample: Sample) -> float | None:
    """VSI-Bench in lmms-eval: the first word as a number, else the first number in digits, else in words."""
    given = _float(first_word(reply))
    if given is None and (digits := _SIGNED.search(reply)):
        given = float(digits[0])
    if given is None and (word := _NUMBER_WORDS.search(reply)):
        given = float(_WORDS.index(word[1].lower()))
    return _mra(given, sample)


def mra_of_last_number(reply: str, sample: Sample) -> float | None:
    """VSI-Bench in VLMEvalKit: the number an `<answer>` begins with, else the last one after any thought.

    Words up to twenty are numbers too; of a list its first member is read.
    """
    listed = parse_literal(reply.strip()) if reply.strip().startswith("[") and reply.strip().endswith("]") else None
    text = str(listed[0]) if isinstance(listed, list) and listed else reply
    text = _NUMBER_WORDS.sub(lambda word: str(_WORDS.index(word[1].lower())), UNSEEN.sub("", text.strip()))
    tagged = _TAGGED_NUMBER.search(text)
    numbers = [tagged[1]] if tagged else _WITH_POWERS.findall(after_thought(text)) or _WITH_POWERS.findall(text)
    return _mra(float(numbers[-1]) if numbers else None, sample)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _mra(given: float | None, sample: Sample) -> float | None:
    """Return mean relative accuracy over ten thresholds, 0.50 to 0.95; None where no number was given."""
    gold = parse_number(sample.answers[0])
    if given is None or gold is None or not gold.value or not math.isfinite(given):
        return None
    error = abs(given - gold.value) / abs(gold.value)
    return float(np.mean(error <= 1 - np.linspace(0.5, 0.95, 10)))


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
