"""Quantities to values that can be compared: 0.25, 1/4 and 25 %; 16.9 kN and 16,900 N; 5 × 10⁻⁷ m and 500 nm."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from .normalise import normalise
from .numbers import Number, find_numbers

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
