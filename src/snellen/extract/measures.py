"""Quantities to values that can be compared: 0.25, 1/4 and 25 %; 16.9 kN and 16,900 N; 5 × 10⁻⁷ m and 500 nm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .normalise import normalise
from .numbers import Number, find_numbers
from .units import UNIT, base_unit

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
    match = UNIT.match(body, number.end)
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
    if by_value and said.percent and any(_same(own.bare, said.bare) and not own.percent for own in offered):
        # `50 %` where both 0.5 and 50 are offered.
        return None
    if by_value:
        return by_value[0] if len(by_value) == 1 else None
    bare = [i for i, own in enumerate(offered) if not (own.unit and said.unit) and _same(own.bare, said.bare)]
    return bare[0] if len(bare) == 1 else None


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)
