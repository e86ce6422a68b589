"""Text to numbers and quantities: separators, units, per cent, fractions, powers of ten and number words."""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from .reply_text import normalise
from .word_lists import START, After, Before, LazyPattern, assemble, one_of, words

_SCALE_WORDS = {
    **{"thousands": 1e3, "lakhs": 1e5, "millions": 1e6, "crores": 1e7, "billions": 1e9, "unsure": math.nan},
    **{"trillion_glued": 1e12, "hundred_million_glued": 1e8, "ten_million_glued": 1e7, "million_glued": 1e6},
    **{"ten_thousand_glued": 1e4, "thousand_glued": 1e3},
}
"""Groups of words by what they multiply with; nan where that cannot be known."""
_APART = "<numbers.thousands>|<numbers.lakhs>|<numbers.millions>|<numbers.crores>|<numbers.billions>|<numbers.unsure>"
_GLUED = (
    "<numbers.trillion_glued>|<numbers.hundred_million_glued>|<numbers.ten_million_glued>|<numbers.million_glued>"
    "|<numbers.ten_thousand_glued>|<numbers.thousand_glued>"
)
"""Words of scales by whether they are written at their number; the longer ones first."""
_NUMBER = LazyPattern(
    r"(?<![^\W\u2e80-\ud7af])(?<!\.)(?P<sign>[-+−–]\s?)?(?P<money>[$€£¥₹₩]\s?)?(?P<sign2>[-−])?"
    + "(?P<digits>"
    + one_of(
        r"[1-9]\d{0,2}(?:\.\d{3}){2,8}+(?![\d]|\.\d)",  # 1.234.567
        r"[1-9]\d{0,2}(?:\.\d{3}){1,8}+(?=,(?:\d{1,2}(?!\d)|\d{4}))",  # 1.234,5
        r"\d{1,2}(?:,\d{2}(?=,)){1,8}+,\d{3}(?![\d,])",  # 12,34,567, as in India
        r"\d{1,3}(?:[,'_ ]\d{3})++(?!\d)",  # 1 234 567
        r"\d+(?:(?<=\d),(?=\d{3}(?!\d))\d{3})*",
        r"(?=\.\d)",  # .5
    )
    + ")"
    r"(?P<part>\.\d+|,\d{1,2}(?!\d)|,\d{4,})?"
    r"(?P<more>(?:\.\d+)++|'\d{1,2}[\"”])?"  # 1.2.3 and 5'10" are no numbers
    + "(?P<power>"
    + one_of(
        r"e[-+]?\d{1,3}",
        r"\s?(?:\\times|\*|x|×)\s?10\s?(?:\^|\*\*)\s?\{?[-+−]?\d{1,3}\}?",  # × 10^{-3}
        r"\s?[x×]\s?10[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}",
    )
    + r")?(?P<raised>\s?(?:\^|\*\*)\s?\{?[-+−]?\d{1,3}\}?|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})?"
    + "(?:"
    + one_of(
        r"\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/])",  # 3/4
        r"\s?(?P<vulgar>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])",  # 1½
        r"\s(?P<over>\d{1,3})/(?P<under>\d{1,3})(?![\d/.])",  # 1 1/2
    )
    + r")?(?P<scale>\s?(?:(?:<numbers.scales>|bn)(?!\w?th)"  # 3 million
    rf"|(?P<word>{_APART})(?!\w)|(?P<glued>{_GLUED}))|[kmb](?![\w/]))?"  # 1,5 Mio., 3万, 3k
    r"(?P<percent>\s?(?:%|percent|per cent))?",
    re.IGNORECASE,
    finds="1,234.5",
    passes="none",
)
_SCALED = After(rf"\s?(?:(?:{_APART})(?!\w)|{_GLUED})", finds="万", passes=" m")
_GROUPS_BY_POINT = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:(?:\.\d{3}){2,8}+(?![\d.]*\d)|(?:\.\d{3}){1,8}+,\d)")
_TWO_WAYS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
"""`1.234` is a decimal to some and a thousand to others, and so is `1,234`."""
_NEAR = 8
_SIGN_BEFORE = "=(<>≈:,+*/×[{|"
"""After one of these a dash with a space behind it is a minus; after a word it is a dash."""
_BELOW_ZERO = After(
    r"\s?(?:°\s?[cf]?|[^\W\d_]{1,12})?(?:\s[^\W\d_]{1,12})?\s(?:<numbers.below_zero>)(?!\w)",
    reach=60,
    finds=" degrees below zero",
    passes=" degrees",
)
_BELOW = After(
    r"\s?(?:°\s?[cf]?|degrees?)?\sbelow(?=\s*(?:[.,;!)]|\Z))",
    finds=" degrees below.",
    passes=" are listed below the map",
)
"""`8 below`, and nothing that it would be below of."""
_FREEZING = After(
    r"\s?(?:°\s?[cf]?|[^\W\d_]{1,12})?(?:\s[^\W\d_]{1,12})?\s(?:below|above|under|over) (?:the )?freezing(?!\w)",
    finds=" degrees below freezing",
    passes=" degrees",
)
_LESS_THAN_NOTHING = Before(
    rf"(?:{START}(?:<numbers.less_than_nothing>)\s|(?:<numbers.less_than_nothing_glued>)\s?)",
    reach=24,
    finds="it is minus ",
    passes="the answer is ",
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
    other: float | None = None
    """What it may be too, where its writing has two meanings (`8 below`, `5m`)."""


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


@cache
def _scale_of(written: str) -> float:
    """Return what a word of another language after a number multiplies it by; nan where that cannot be known."""
    for group, value in _SCALE_WORDS.items():
        if re.fullmatch(assemble(f"<numbers.{group}>"), written, re.IGNORECASE):
            return value
    return math.nan


def find_numbers(text: str) -> list[Number]:
    """Return all numbers of `text` in order of appearance, digits and words alike."""
    numbers = [_from_digits(match) for match in _NUMBER.finditer(text)]
    ends = {number.end for number in numbers}
    # `5 million` was read with its scale word already.
    numbers += [_from_words(match) for match in _spelt().finditer(text) if match.end() not in ends]
    if not text.isascii():
        numbers += [
            Number(unicodedata.numeric(match.group()), False, *match.span())
            for match in _VULGAR.finditer(text)
            if match.end() not in ends
        ]
    numbers = sorted((number for number in numbers if math.isfinite(number.value)), key=lambda number: number.start)
    return _with_signs(text.lower(), numbers) if numbers and speaks_of_sign(text.lower()) else numbers


def speaks_of_sign(low: str) -> bool:
    """Tell whether a text may say in words that a number is less than nothing; cheap, and no proof."""
    return any(stem in low for stem in words("numbers.sign_stems"))


def is_scaled(low: str, end: int) -> bool:
    """Tell whether the digits that end here are so many thousands or millions in another language (`3万`)."""
    return low[end - 1 : end].isdigit() and _SCALED.match(low, end) is not None


def is_below_zero(low: str, start: int, end: int) -> bool:
    """Tell whether the words around a number make it less than nothing (`minus 8`, `8 degrees below zero`, `零下8`)."""
    if low[start : start + 1] in {"-", "−"}:
        return False
    before = _LESS_THAN_NOTHING.before(low, start)
    if before is not None or _BELOW_ZERO.after(low, end):
        return True
    return _BELOW.match(low, end) is not None


def counts_from_freezing(low: str) -> bool:
    """Tell whether a text gives a temperature by its distance from freezing, which is zero in degrees Celsius alone."""
    if "freezing" not in low:
        return False
    return any(_FREEZING.match(low, match.end()) for match in _NUMBER.finditer(low))


def _with_signs(low: str, numbers: list[Number]) -> list[Number]:
    """Return numbers with the signs that words give them; the zero that one is below is no number of its own."""
    signed: list[Number] = []
    told = 0
    for one in numbers:
        if one.start < told:
            continue
        if one.value > 0 and is_below_zero(low, one.start, one.end):
            below = _BELOW_ZERO.after(low, one.end)
            told = below.end() if below else told
            signed.append(one._replace(value=-one.value, other=one.value if _is_only_below(low, one) else None))
        else:
            signed.append(one)
    return signed


def _is_only_below(low: str, number: Number) -> bool:
    """Whether a number is followed by a bare `below`: of what is counted by degrees it is a sign, of others a place."""
    return _BELOW.match(low, number.end) is not None and "°" not in low and "degree" not in low


def groups_by_point(text: str) -> bool:
    """Tell whether a text plainly groups its thousands by points (`1.234.567`, `1.234,5`): its `12.000` is 12000."""
    return "." in text and _GROUPS_BY_POINT.search(text) is not None


def regrouped(number: Number, text: str) -> float | None:
    """Return what `1.234` is to those who group by points, and `1,234` to those whose decimals follow a comma."""
    written = text[number.start : number.end]
    found = _TWO_WAYS.search(written) if "." in written or "," in written else None
    if found is None or sum(one.isdigit() for one in written) != sum(one.isdigit() for one in found[0]):
        return None
    return number.value * 1000 if "." in found[0] else number.value / 1000


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
    """Return a number in figures; one that cannot be (`1.2.3`, `5/0`) has the value nan."""
    written = match.group()
    if written.isdecimal():  # most are nothing else
        return Number(float(written[:300]), False, *match.span())
    value = _figures(match) * _power(match["power"])
    if match["raised"]:
        value = _raise(value, match["raised"])
    value = _with_fraction(value, match)
    scale, end, other = (match["scale"] or "").strip(), match.end(), None
    if scale == "m" and not match["money"] and not match["percent"]:  # metres or minutes, rarely millions
        end, other = match.start("scale"), value * 1e6
    elif scale:
        value *= _scaled_by(scale, match["word"] or match["glued"])
    if match["sign2"] or (match["sign"] or "")[:1] in {"-", "−", "–"}:
        value, other = _signed(match, value, other)
    return Number(value, match["percent"] is not None, match.start(), end, other)


def _scaled_by(scale: str, word: str | None) -> float:
    """Return how many times as much a number is by what follows it (`3 Mio.`, `3k`)."""
    by_word = _scale_of(word) if word else 0.0
    return by_word or _SHORT_SCALES.get(scale.lower()) or float(_scales().get(scale.lower(), 1))


def _signed(match: re.Match[str], value: float, other: float | None) -> tuple[float, float | None]:
    """Return a number behind a dash, and what it may be too where the dash may be a bullet."""
    minus = True if match["sign2"] else _is_minus(match)
    if minus is False:
        return value, other
    return -value, value if minus is None else other and -other


def _figures(match: re.Match[str]) -> float:
    """Return the digits of a number with what follows its point."""
    if match["more"]:
        return math.nan
    part = (match["part"] or "").replace(",", ".")
    return float(f"{re.sub(r'[^0-9]', '', _plain_digits(match['digits']))[:300] or 0}{part[:300]}")


def _plain_digits(text: str) -> str:
    return text if text.isascii() else "".join(str(unicodedata.digit(one, one)) for one in text)


def _with_fraction(value: float, match: re.Match[str]) -> float:
    """Return a number over another (`3/4`), or with a fraction behind it (`1 1/2`, `1½`)."""
    if match["below"]:
        below = float(match["below"])
        return value / below if below else math.nan
    if match["vulgar"]:
        return value + unicodedata.numeric(match["vulgar"])
    if match["over"]:
        over, under = int(match["over"]), int(match["under"])
        return value + over / under if over < under else math.nan
    return value


def _is_minus(match: re.Match[str]) -> bool | None:
    """Tell whether a dash before a number is its sign: not after a word and a space; None where it may be a bullet."""
    if not match["sign"][1:]:
        return True
    near = match.string[max(0, match.start() - _NEAR) : match.start()]
    before = near.rpartition("\n")[2].rstrip()
    if before:
        return before[-1] in _SIGN_BEFORE
    alone = len(match.string) - len(match.group()) <= _NEAR and match.string.strip() == match.group().strip()
    return True if alone else None


def _raise(value: float, written: str) -> float:
    exponent = re.search(r"[-+−⁻⁺]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}", written)
    try:
        return value ** float(exponent.group().translate(_RAISED)) if exponent else math.nan
    except (OverflowError, ZeroDivisionError):
        return math.nan


def _power(text: str | None) -> float:
    if not text:
        return 1.0
    exponent = re.search(r"(?:[-+−]?\d{1,3}|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})(?=\}?$)", text)
    return float(f"1e{exponent.group().translate(_RAISED)}") if exponent else 1.0


_UNIT: Final = re.compile(
    r"\s{0,3}[*_$]{0,2}[ \t]{0,9}(degrees?\b|度|°(?![CF])"
    r"|(?:[a-zA-ZµμΩÅ]{1,12}(?:[²³]|\^\{?[23]\}?)?)(?:[/·][a-zA-ZµμΩ]{1,4}(?:[²³]|\^\{?[23]\}?)?"
    r"|\sper\s[a-z]{3,6})?(?![a-zA-Z²³^⁻/·]|\s(?:squared|cubed|per)\b|\s[a-zA-Z]{1,2}[²³^⁻]))"
)
_LONGEST_REST = 12
"""What may stand in an option beside its quantity: a sign of money, a unit nobody listed."""


_WITH_UNIT: Final = re.compile(
    r"\s{0,3}[*_$]{0,2}[ \t]{0,9}((?:°|degrees?)\s?(?:[CFcf](?![\w])|[Cc]elsius|[Ff]ahrenheit)|[℃℉€£¥₹₩¢$元円]"
    r"|[\u4e00-\u9fff]{1,3}|[\u0400-\u04ff]{1,2}(?!\w))"
)
"""Units that only answers with one are compared by: temperatures with their scale, money, other scripts."""
_INCHES: Final = re.compile(r"\s{0,3}in(?=\.?\W*(?:\Z|\n))")
_MONEY: Final = "$€£¥₹₩"
NEAR = 0.02
"""Two quantities in different units that differ by less may be one that was rounded."""


class Measure(NamedTuple):
    """A quantity in a text: its value in the base unit, that unit if one was said, as written, and where it stands."""

    value: float
    unit: str
    bare: float
    percent: bool
    start: int
    end: int


def find_measures(body: str) -> list[Measure]:
    """Return the quantities of a text as it was written (units differ by case), in order."""
    return [_measure(body, number) for number in find_numbers(body)]


def _measure(body: str, number: Number) -> Measure:
    if number.percent:
        return Measure(number.value / 100, "", number.value, True, number.start, number.end)
    match = _UNIT.match(body, number.end)
    base = base_unit(match.group(1)) if match else None
    if match is None or base is None:
        return Measure(number.value, "", number.value, False, number.start, number.end)
    return Measure(number.value * base[1], base[0], number.value, False, number.start, match.end())


def option_measures(texts: Sequence[str]) -> list[Measure]:
    """Return the quantity that each text is; nothing unless all texts are one, and not all the same."""
    found = [_only_measure(normalise(text)) for text in texts]
    measures = [measure for measure in found if measure is not None]
    told = len({(measure.value, measure.unit) for measure in measures})
    if len(measures) < len(texts) or told < 2:
        return []
    # Of `$1,400 gain` and `$1,400 loss` the number tells nothing; 36 kW and 0.036 MW leave the others what they are.
    beside = {
        (text[: one.start] + text[one.end :]).strip() for text, one in zip(map(normalise, texts), measures, strict=True)
    }
    return measures if told == len(texts) or len(beside) == 1 else []


def _only_measure(text: str) -> Measure | None:
    measures = find_measures(text)
    if len(measures) != 1 or any(sign.isalpha() for sign in text[: measures[0].start]):
        return None
    rest = text[: measures[0].start] + text[measures[0].end :]
    return measures[0] if len(rest.strip(" $.*\\(){}")) <= _LONGEST_REST and rest.isprintable() else None


def fitting_option(said: Measure, offered: Sequence[Measure]) -> int | None:
    """Return the only option that a quantity equals: by value, else as written where one of both has no unit."""
    by_value = [i for i, own in enumerate(offered) if own.unit == said.unit and _same(own.value, said.value)]
    if by_value:
        return None if len(by_value) > 1 or _is_share_or_number(said, offered) else by_value[0]
    bare = [i for i, own in enumerate(offered) if not (own.unit and said.unit) and _same(own.bare, said.bare)]
    return bare[0] if len(bare) == 1 else None


def _is_share_or_number(said: Measure, offered: Sequence[Measure]) -> bool:
    """Whether a percentage may be meant as a share or as a number: `50 %` where both 0.5 and 50 are offered."""
    return said.percent and any(_same(own.bare, said.bare) and not own.percent for own in offered)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)


@cache
def _unit_data() -> dict[str, Any]:
    return tomllib.loads((files("snellen") / "catalog" / "reading" / "units.toml").read_text("utf-8"))


@cache
def _units() -> dict[str, tuple[str, float]]:
    """Return what is known of units, by how they are written: the base unit, and how much of it one is."""
    data = _unit_data()
    decimal = data["decimal"]
    return {
        **{f"{p}{base}": (base, 10.0**power) for p, power in decimal["prefixes"].items() for base in decimal["bases"]},
        **{f"{name}{s}": ("s", factor) for name, factor in data["times"].items() for s in ("", "s")},
        **{
            f"{prefix}{word}{s}": (base, 10.0**power)
            for prefix, power in decimal["word_prefixes"].items()
            for word, base in decimal["words"].items()
            for s in ("", "s")
        },
        **{f"{name}²": ("m²", 10.0 ** (2 * power)) for name, power in decimal["lengths"].items()},
        **{f"{name}³": ("L", 10.0 ** (3 * power + 3)) for name, power in decimal["lengths"].items()},
        **{name: (unit, factor) for name, (unit, factor) in data["others"].items()},
    }


def unit_after(body: str, start: int, end: int) -> str:
    """Return the unit of the number at this place as it is written, money before it too; nothing for other words."""
    sign = next((one for one in body[start:end] if one in _MONEY), "")
    special = _WITH_UNIT.match(body, end)
    known = sign or ("" if special is None else _special(special.group(1)))
    if known and not (known == "$" and body.count("$") > 1):  # two of them may be LaTeX
        return known
    if _INCHES.match(body, end):
        return "inch"
    plain = _UNIT.match(body, end)
    return plain.group(1) if plain is not None and meanings(plain.group(1)) else ""


def _special(written: str) -> str:
    """Return a temperature's unit or a sign by its name in the catalog; of ideographs the longest that is one."""
    if written[0] in "°dD":
        return {"c": "°C", "f": "°F"}[written.lower().lstrip("°degrs ")[0]]
    return next((written[:n] for n in range(len(written), 0, -1) if written[:n] in _unit_data()["told_apart"]), "")


@lru_cache(maxsize=2048)
def meanings(written: str) -> tuple[tuple[str, float, float], ...]:
    """Return what a unit can mean: base unit, how much of it one is, and from which zero it counts; () for none."""
    data, name = _unit_data(), written.replace(" per ", "/")
    told = data["told_apart"].get(name) or (len(name) > 1 and data["told_apart"].get(name.lower()))
    if told:
        return tuple((unit, factor, zero[0] if zero else 0.0) for unit, factor, *zero in told)
    above, slash, below = name.partition("/")
    if slash:
        quotients = [(f"{a[0]}/{b[0]}", a[1] / b[1]) for a in meanings(above) for b in meanings(below)]
        return tuple((data["derived"].get(unit, unit), factor, 0.0) for unit, factor in quotients)
    base = base_unit(name)
    return () if base is None else ((*base, 0.0),)


def in_unit(value: float, unit: str, wanted: str) -> list[float]:
    """Return a number in another unit, once for every meaning that both have; as it is where either has no unit.

    Units that measure different things give nothing.
    """
    if not unit or not wanted or unit == wanted:
        return [value]
    return [
        (value * factor + zero - other_zero) / other_factor
        for base, factor, zero in meanings(unit)
        for other_base, other_factor, other_zero in meanings(wanted)
        if base == other_base
    ]


def same_quantity(first: tuple[float, str], second: tuple[float, str]) -> bool | None:
    """Tell whether two numbers with their units are one quantity; None where one of them may be rounded."""
    said = in_unit(*first, second[1])
    counted_from = max((zero for _, _, zero in meanings(first[1])), default=0.0)
    exactly = 1e-12 * counted_from or 1e-300  # 32 °F are 0 °C but for what adding loses
    if any(math.isclose(one, second[0], rel_tol=1e-9, abs_tol=exactly) for one in said):
        return True
    apart = first[1] and second[1] and first[1] != second[1]
    return None if apart and any(math.isclose(one, second[0], rel_tol=NEAR) for one in said) else False


@lru_cache(maxsize=2048)
def base_unit(written: str) -> tuple[str, float] | None:
    """Return the base unit of a unit and how much of it one is; None for a word that is no unit."""
    name = re.sub(r"\sper\s", "/", written)
    name = re.sub(r"\^\{?([23])\}?", lambda match: "²³"[int(match.group(1)) - 2], name)
    units = _units()
    if name in units:
        return units[name]
    above, slash, below = name.partition("/")
    if not slash:
        return (name, 1.0) if "·" in name else None
    if above not in units or below not in units:
        return name, 1.0
    unit = f"{units[above][0]}/{units[below][0]}"
    return _unit_data()["derived"].get(unit, unit), units[above][1] / units[below][1]
