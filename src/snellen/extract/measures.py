"""Quantities to values that can be compared: 0.25, 1/4 and 25 %; 16.9 kN and 16,900 N; 5 × 10⁻⁷ m and 500 nm."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from .normalise import normalise
from .numbers import Number, find_numbers

_UNIT = re.compile(
    r"\s{0,3}[*_$]{0,2}[ \t]{0,9}(degrees?\b|度|°(?![CF])|minutes?\b|hours?\b|hrs?\b|mins?\b"
    r"|[a-zA-ZµμΩ]{1,4}(?:[/·][a-zA-Z]{1,3}[²³]?)?(?![a-zA-Z²³^⁻/·]))"
)
_PREFIXES: Final = {"": 0, "k": 3, "M": 6, "G": 9, "m": -3, "µ": -6, "μ": -6, "n": -9, "c": -2, "p": -12}
_BASES: Final = ("m", "g", "s", "A", "V", "W", "J", "N", "Pa", "Hz", "Ω", "C", "F", "L", "T", "eV", "mol")
_TIMES: Final = {"h": 3600.0, "hr": 3600.0, "hour": 3600.0, "min": 60.0, "minute": 60.0}
_UNITS: Final = {
    **{f"{prefix}{base}": (base, 10.0**power) for prefix, power in _PREFIXES.items() for base in _BASES},
    **{f"{name}{plural}": ("s", factor) for name, factor in _TIMES.items() for plural in ("", "s")},
    **{"km/h": ("m/s", 1000 / 3600), "km/s": ("m/s", 1000.0), "cm/s": ("m/s", 0.01)},
    **dict.fromkeys(("°", "度", "degree", "degrees"), ("°", 1.0)),
}
_LONGEST_REST = 12
"""What may stand in an option beside its quantity: a sign of money, a unit nobody listed."""


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
    word = match.group(1) if match else ""
    if match is None or not (word in _UNITS or "/" in word):
        return Measure(number.value, "", number.value, False, number.start, number.end)
    unit, factor = _UNITS.get(word, (word, 1.0))
    return Measure(number.value * factor, unit, number.value, False, number.start, match.end())


def option_measures(texts: Sequence[str]) -> list[Measure]:
    """Return the quantity that each text is; nothing unless all texts are one, all different."""
    found = [_only_measure(normalise(text)) for text in texts]
    measures = [measure for measure in found if measure is not None]
    told = len({(measure.value, measure.unit) for measure in measures})
    return measures if 1 < told == len(texts) else []


def _only_measure(text: str) -> Measure | None:
    measures = find_measures(text)
    if len(measures) != 1 or any(sign.isalpha() for sign in text[: measures[0].start]):
        return None
    rest = text[: measures[0].start] + text[measures[0].end :]
    return measures[0] if len(rest.strip(" $.*\\(){}")) <= _LONGEST_REST and rest.isprintable() else None


def fitting_option(said: Measure, offered: Sequence[Measure]) -> int | None:
    """Return the only option that a quantity equals: by value, else as written where one of both has no unit."""
    by_value = [i for i, own in enumerate(offered) if own.unit == said.unit and _same(own.value, said.value)]
    if by_value and said.percent and any(_same(own.bare, said.bare) and not own.percent for own in offered):
        # `50 %` where both 0.5 and 50 are offered.
        return None
    if by_value:
        return by_value[0] if len(by_value) == 1 else None
    bare = [i for i, own in enumerate(offered) if not (own.unit and said.unit) and _same(own.bare, said.bare)]
    return bare[0] if len(bare) == 1 else None


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)
