"""Text to numbers: digits with separators, units, currency, percent, fractions, powers of ten and number words."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import cache
from typing import NamedTuple

from .word_lists import START, LazyPattern, words

_NUMBER = LazyPattern(
    r"(?<![\w.])(?P<sign>[-+−]\s?)?(?:[$€£¥₹₩]\s?)?(?P<sign2>[-−])?"
    r"(?P<digits>\d{1,3}(?:[,' ]\d{3})++(?!\d)|\d+(?:(?<=\d),(?=\d{3}(?!\d))\d{3})*|(?=\.\d))"
    r"(?P<part>\.\d+|,\d{1,2}(?!\d)|,\d{4,})?"
    r"(?P<power>e[-+]?\d{1,3}|\s?(?:\\times|\*|x|×)\s?10\s?(?:\^|\*\*)\s?\{?[-+−]?\d{1,3}\}?|\s?[x×]\s?10[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})?"
    r"(?:\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/]))?"
    r"(?P<scale>\s?(?:<numbers.scales>|bn)|[kmb](?![\w/]))?"
    r"(?P<percent>\s?(?:%|percent|per cent))?",
    re.IGNORECASE,
)
_BELOW_ZERO = LazyPattern(r"\s?(?:°\s?[cf]?|[^\W\d_]{1,12})?(?:\s[^\W\d_]{1,12})?\s(?:<numbers.below_zero>)(?!\w)")
_BELOW = LazyPattern(r"\s?(?:°\s?[cf]?|degrees?)?\sbelow(?=\s*(?:[.,;!)]|\Z))")
"""`8 below`, and nothing that it would be below of."""
_FREEZING = LazyPattern(
    r"\s?(?:°\s?[cf]?|[^\W\d_]{1,12})?(?:\s[^\W\d_]{1,12})?\s(?:below|above|under|over) (?:freezing|the freezing)(?!\w)"
)
_LESS_THAN_NOTHING = LazyPattern(
    rf"(?:{START}(?:<numbers.less_than_nothing>)\s|(?:<numbers.less_than_nothing_glued>)\s?)\Z"
)
_SHORT_SCALES = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")
_VULGAR = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")


class Number(NamedTuple):
    """A number in a text: its value (percent kept as written), whether it was a percentage, and where it stood."""

    value: float
    percent: bool
    start: int
    end: int


@cache
def word_values() -> dict[str, int]:
    """Return the English words for 0 to 19 and the tens, with what they stand for."""
    tens = {word: 20 + 10 * i for i, word in enumerate(words("numbers.tens"))}
    return {word: i for i, word in enumerate(words("numbers.ones"))} | tens


@cache
def _scales() -> dict[str, int]:
    return {words("numbers.hundred")[0]: 100} | {
        word: 1000 ** (i + 1) for i, word in enumerate(words("numbers.scales"))
    }


@cache
def _spelt() -> re.Pattern[str]:
    """The longest words first: `seventeen` is no `seven`."""
    word = "|".join(sorted([*word_values(), *_scales()], key=len, reverse=True))
    return re.compile(
        rf"(?<!\w)(?P<minus>minus |negative )?(?P<words>(?:{word})(?:(?:\s+and\s+|[\s-]+)(?:{word})){{0,12}}+)(?!\w)"
        r"(?P<half>\s+and\s+a\s+half(?!\w))?",
        re.IGNORECASE,
    )


def find_numbers(text: str) -> list[Number]:
    """Return all numbers of `text` in order of appearance, digits and words alike."""
    numbers = [_from_digits(match) for match in _NUMBER.finditer(text)]
    ends = {number.end for number in numbers}
    # `5 million` was read with its scale word already.
    numbers += [_from_words(match) for match in _spelt().finditer(text) if match.end() not in ends]
    if not text.isascii():
        numbers += [
            Number(unicodedata.numeric(match.group()), False, *match.span()) for match in _VULGAR.finditer(text)
        ]
    numbers = sorted((number for number in numbers if math.isfinite(number.value)), key=lambda number: number.start)
    return _with_signs(text.lower(), numbers) if numbers and speaks_of_sign(text.lower()) else numbers


def speaks_of_sign(low: str) -> bool:
    """Tell whether a text may say in words that a number is less than nothing; cheap, and no proof."""
    return any(stem in low for stem in words("numbers.sign_stems"))


def is_below_zero(low: str, start: int, end: int) -> bool:
    """Tell whether the words around a number make it less than nothing (`minus 8`, `8 degrees below zero`, `零下8`)."""
    if low[start : start + 1] in {"-", "−"}:
        return False
    before = _LESS_THAN_NOTHING.search(low, max(0, start - 24), start)
    if before is not None or _BELOW_ZERO.match(low, end, end + 60):
        return True
    return _BELOW.match(low, end) is not None


def counts_from_freezing(low: str) -> bool:
    """Tell whether a text gives a temperature by its distance from freezing, which is zero in degrees Celsius alone."""
    if "freezing" not in low:
        return False
    return any(_FREEZING.match(low, match.end()) for match in _NUMBER.finditer(low))


def _with_signs(low: str, numbers: list[Number]) -> list[Number]:
    return [
        one._replace(value=-one.value) if one.value > 0 and is_below_zero(low, one.start, one.end) else one
        for one in numbers
    ]


def parse_number(text: str) -> Number | None:
    """Return the number a whole text stands for (`$1,200.00`, `four`, `3 m/s`), or None if it holds none or several."""
    numbers = find_numbers(text)
    return numbers[0] if len(numbers) == 1 else None


def words_value(spelt: str) -> float:
    """Return the value of English number words (`two hundred and five`)."""
    total = current = 0
    for word in re.split(r"[\s-]+", spelt.lower()):
        if scale := _scales().get(word):
            current = max(current, 1) * scale
            if scale > 100:
                total, current = total + current, 0
        else:
            current += word_values().get(word, 0)
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
    value *= _SHORT_SCALES.get(scale) or float(_scales().get(scale, 1))
    negative = bool((match.group("sign") or "").strip() in {"-", "−"} or match.group("sign2"))
    return Number(-value if negative else value, match.group("percent") is not None, match.start(), match.end())


def _power(text: str | None) -> float:
    if not text:
        return 1.0
    exponent = re.search(r"(?:[-+−]?\d{1,3}|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})(?=\}?$)", text)
    return float(f"1e{exponent.group().translate(_RAISED)}") if exponent else 1.0
