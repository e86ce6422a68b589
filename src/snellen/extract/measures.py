"""Quantities to values that can be compared: 0.25, 1/4 and 25 %; 16.9 kN and 16,900 N; 5 × 10⁻⁷ m and 500 nm."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .normalise import normalise
from .numbers import Number, find_numbers

_UNIT: Final = re.compile(
    r"\s{0,3}[*_$]{0,2}[ \t]{0,9}(degrees?\b|度|°(?![CF])"
    r"|(?:[a-zA-ZµμΩÅ]{1,12}(?:[²³]|\^\{?[23]\}?)?)(?:[/·][a-zA-ZµμΩ]{1,4}(?:[²³]|\^\{?[23]\}?)?"
    r"|\sper\s[a-z]{3,6})?(?![a-zA-Z²³^⁻/·]|\s(?:squared|cubed|per)\b|\s[a-zA-Z]{1,2}[²³^⁻]))"
)
_PREFIXES: Final = {
    **{"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "h": 2, "d": -1, "c": -2, "m": -3, "µ": -6, "μ": -6, "n": -9, "p": -12}
}
_BASES: Final = ("m", "g", "s", "A", "V", "W", "J", "N", "Pa", "Hz", "Ω", "C", "F", "L", "T", "eV", "mol", "H", "cal")
_WORD_PREFIXES: Final = {"": 0, "kilo": 3, "mega": 6, "giga": 9, "centi": -2, "milli": -3, "micro": -6, "nano": -9}
_WORD_BASES: Final = {
    **{"meter": "m", "metre": "m", "gram": "g", "second": "s", "liter": "L", "litre": "L", "watt": "W", "volt": "V"},
    **{"amp": "A", "ampere": "A", "newton": "N", "joule": "J", "pascal": "Pa", "ohm": "Ω", "mole": "mol"},
}
_TIMES: Final = {"h": 3600.0, "hr": 3600.0, "hour": 3600.0, "min": 60.0, "minute": 60.0, "sec": 1.0, "day": 86400.0}
_LENGTHS: Final = {"m": 0, "km": 3, "dm": -1, "cm": -2, "mm": -3, "µm": -6, "μm": -6, "nm": -9}
_UNITS: Final[dict[str, tuple[str, float]]] = {
    **{f"{prefix}{base}": (base, 10.0**power) for prefix, power in _PREFIXES.items() for base in _BASES},
    **{f"{name}{s}": ("s", factor) for name, factor in _TIMES.items() for s in ("", "s")},
    **{
        f"{prefix}{word}{s}": (base, 10.0**power)
        for prefix, power in _WORD_PREFIXES.items()
        for word, base in _WORD_BASES.items()
        for s in ("", "s")
    },
    **{f"{name}²": ("m²", 10.0 ** (2 * power)) for name, power in _LENGTHS.items()},
    # A litre is a cubic decimetre: volumes are compared in litres.
    **{f"{name}³": ("L", 10.0 ** (3 * power + 3)) for name, power in _LENGTHS.items()},
    **{"l": ("L", 1.0), "ml": ("L", 1e-3), "cl": ("L", 1e-2), "dl": ("L", 0.1), "µl": ("L", 1e-6), "cc": ("L", 1e-3)},
    **{"bar": ("Pa", 1e5), "mbar": ("Pa", 100.0), "Wh": ("J", 3600.0), "kWh": ("J", 3.6e6), "Å": ("m", 1e-10)},
    **{"Nm": ("N·m", 1.0), "kNm": ("N·m", 1000.0), "N·m": ("N·m", 1.0), "kN·m": ("N·m", 1000.0)},
    **{"s²": ("s²", 1.0), "K": ("K", 1.0), "ha": ("m²", 1e4)},
    **dict.fromkeys(("°", "度", "degree", "degrees"), ("°", 1.0)),
}
_DERIVED: Final = {"N/m²": "Pa", "J/s": "W"}
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


@lru_cache(maxsize=2048)
def base_unit(written: str) -> tuple[str, float] | None:
    """Return the base unit of a unit and how much of it one is; None for a word that is no unit."""
    name = re.sub(r"\sper\s", "/", written)
    name = re.sub(r"\^\{?([23])\}?", lambda match: "²³"[int(match.group(1)) - 2], name)
    if name in _UNITS:
        return _UNITS[name]
    above, slash, below = name.partition("/")
    if not slash:
        return (name, 1.0) if "·" in name else None
    if above not in _UNITS or below not in _UNITS:
        return name, 1.0
    unit = f"{_UNITS[above][0]}/{_UNITS[below][0]}"
    return _DERIVED.get(unit, unit), _UNITS[above][1] / _UNITS[below][1]
