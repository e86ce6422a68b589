"""Text to numbers: digits with separators, units, currency, percent, fractions, powers of ten and number words."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import NamedTuple

_ONES_TEXT = "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_ONES = list(_ONES_TEXT.split("|"))
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORD_VALUES: dict[str, int] = {word: i for i, word in enumerate(_ONES)} | {
    word: 20 + 10 * i for i, word in enumerate(_TENS)
}
_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
    "trillion": 1_000_000_000_000,
}
_WORDS = "|".join(sorted([*WORD_VALUES, *_SCALES], key=len, reverse=True))

_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-+−]\s?)?(?:[$€£¥₹₩]\s?)?(?P<sign2>[-−])?"
    r"(?P<digits>\d{1,3}(?:[,  ' ]\d{3})++(?!\d)|\d+(?:(?<=\d),(?=\d{3}(?!\d))\d{3})*|(?=\.\d))"
    r"(?P<part>\.\d+|,\d{1,2}(?!\d)|,\d{4,})?"
    r"(?P<power>e[-+]?\d{1,3}|\s?(?:\\times|\*|x|×)\s?10\s?(?:\^|\*\*)\s?\{?[-+−]?\d{1,3}\}?)?"
    r"(?:\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/]))?"
    r"(?P<scale>\s?(?:thousand|million|billion|trillion|bn)|[kmb](?![\w/]))?"
    r"(?P<percent>\s?(?:%|percent|per cent))?",
    re.IGNORECASE,
)
_SPELT = re.compile(
    rf"(?<!\w)(?P<minus>minus |negative )?(?P<words>(?:{_WORDS})(?:(?:\s+and\s+|"
    rf"[\s-]+)(?:{_WORDS})){{0,12}}+)(?!\w)(?P<half>\s+and\s+a\s+half(?!\w))?",
    re.IGNORECASE,
)
_SHORT_SCALES = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, **{name: float(value) for name, value in _SCALES.items()}}
_VULGAR = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")


class Number(NamedTuple):
    """A number found in a text: its value (percent kept as written), whether it was a percentage, and where it stood."""

    value: float
    percent: bool
    start: int
    end: int


def find_numbers(text: str) -> list[Number]:
    """Return all numbers of `text` in order of appearance, digits and words alike."""
    found = [_from_digits(match) for match in _NUMBER.finditer(text)]
    ends = {number.end for number in found}
    found += [_from_words(match) for match in _SPELT.finditer(text) if match.end() not in ends]
    if not text.isascii():
        found += [Number(unicodedata.numeric(match.group()), False, *match.span()) for match in _VULGAR.finditer(text)]
    return sorted((number for number in found if math.isfinite(number.value)), key=lambda number: number.start)


def parse_number(text: str) -> Number | None:
    """Return the number a whole text stands for (`$1,200.00`, `four`, `3 m/s`), or None if it holds none or several."""
    numbers = find_numbers(text)
    return numbers[0] if len(numbers) == 1 else None


def words_value(words: str) -> float:
    """Return the value of English number words (`two hundred and five`)."""
    total = current = 0
    for word in re.split(r"[\s-]+", words.lower()):
        if word in _SCALES:
            scale = _SCALES[word]
            current = max(current, 1) * scale
            if scale > 100:
                total, current = total + current, 0
        else:
            current += WORD_VALUES.get(word, 0)
    return float(total + current)


def _from_words(match: re.Match[str]) -> Number:
    value = words_value(match.group("words")) + (0.5 if match.group("half") else 0.0)
    return Number(-value if match.group("minus") else value, False, match.start(), match.end())


def _from_digits(match: re.Match[str]) -> Number:
    whole = re.sub(r"\D", "", match.group("digits"))
    part = (match.group("part") or "").replace(",", ".")
    value = float(f"{whole[:300] or 0}{part[:300]}") * _power(match.group("power"))
    below = float(match.group("below") or 1)
    value = value / below if below else value
    scale = (match.group("scale") or "").strip().lower()
    value *= _SHORT_SCALES.get(scale, 1.0)
    negative = bool((match.group("sign") or "").strip() in {"-", "−"} or match.group("sign2"))
    return Number(-value if negative else value, match.group("percent") is not None, match.start(), match.end())


def _power(text: str | None) -> float:
    if not text:
        return 1.0
    exponent = re.search(r"[-+−]?\d{1,3}\}?$", text)
    return float(f"1e{exponent.group().rstrip('}').replace('−', '-')}") if exponent else 1.0
