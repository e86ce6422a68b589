"""Options in a notation of their own (orders, times of day, intervals, roots) to keys that other notations share."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from .normalise import normalise
from .numbers import word_values
from .word_lists import LazyPattern, word_set

Form = tuple[Hashable, int, int]
"""What is said, in a form that can be compared, and where it starts and ends."""

_STEP = r"\s?(?:[-–—,，、>→⇒]|->)\s?"
_ORDER = re.compile(
    rf"(?:(?<![a-z\d_.,/])(?<![-–—,]\s)[a-z\d]{{1,3}}(?:{_STEP}[a-z\d]{{1,3}}(?![a-z\d])){{2,9}}"
    r"|[①-⑳](?:\s?[-–—,，、>→⇒]?\s?[①-⑳]){2,9})(?![a-z\d%])"
)
_ITEM = re.compile(r"[①-⑳]|[^\W_]+")
_DIGITAL = re.compile(r"(?<![\d:.])(\d{1,2}):(\d{2})(?!:?\d)")
_NUMBER = r"-?\d{1,6}(?:\.\d{1,6})?"
_INTERVAL = re.compile(rf"([\[(])\s?({_NUMBER}|-∞)\s?[,;]\s?({_NUMBER}|\+?∞)\s?([\])])")
_BETWEEN = re.compile(
    rf"({_NUMBER})\s?(<=?|≤|\\leq?)\s?(?:[a-z]|f\([a-z]\))\s?(<=?|≤|\\leq?)\s?({_NUMBER})(?![\w.]\d|\w)"
)
_ROOT = re.compile(
    r"(?<![\w.^+*/×·-])(?<![+*/×·-]\s)(\d{0,4})\s?(?:√|\\sqrt)\s?[({]?(\d{1,6})[)}]?(?![\w.]\d|\s?[+*/×·-])"
)
_WHOLE = re.compile(r"\d{1,4}")


class Notation(NamedTuple):
    """One way of writing: what a whole option text says in it, and what stands in a reply in it or in its like."""

    of_option: Callable[[str], Hashable | None]
    in_reply: Callable[[str], Iterator[Form]]


class Written(NamedTuple):
    """The notation that all options of a question share, and what each of them says in it."""

    notation: Notation
    keys: tuple[Hashable, ...]


def option_notation(texts: Sequence[str]) -> Written | None:
    """Return the notation in which all texts are written, all different; None if there is no such one."""
    plain = [normalise(text, circles=True).lower().strip(" .$*") for text in texts]
    for notation in _NOTATIONS:
        keys = tuple(notation.of_option(text) for text in plain)
        if None not in keys and 1 < len(set(keys)) == len(keys) and _belong(keys, notation):
            return Written(notation, keys)
    return None


def _belong(keys: tuple[Hashable, ...], notation: Notation) -> bool:
    """Whether the options are of one kind: orders of the same things, and more roots than one."""
    if notation is _ORDERS:
        return len({frozenset(key) for key in keys if isinstance(key, tuple)}) == 1
    return True


def _order(text: str) -> Hashable | None:
    items = tuple(_ITEM.findall(text))
    whole = _ORDER.fullmatch(text.strip("()[] "))
    return items if whole and len(set(items)) == len(items) else None


def _orders_in(low: str) -> Iterator[Form]:
    for match in _ORDER.finditer(low):
        yield tuple(_ITEM.findall(match.group())), *match.span()


def _time(text: str) -> Hashable | None:
    match = _DIGITAL.fullmatch(text)
    return (int(match.group(1)) % 12, int(match.group(2))) if match else None


@cache
def _spoken() -> LazyPattern:
    number = "|".join(sorted(word_values(), key=len, reverse=True))
    return LazyPattern(
        rf"(?<!\w)(?<!from )(?<!between )(?:(?P<part>half|quarter|(?:twenty[ -])?(?:{number})|\d{{1,2}})(?: minutes?)?"
        rf"\s(?P<way><numbers.clock_past>|<numbers.clock_to>)\s)?(?P<hour>{number}|\d{{1,2}})(?P<even> o'clock)?"
        r"(?![\w:.%]\w|\w)"
    )


def _times_in(low: str) -> Iterator[Form]:
    for match in _DIGITAL.finditer(low):
        yield (int(match.group(1)) % 12, int(match.group(2))), *match.span()
    for match in _spoken().finditer(low):
        hour = _count(match.group("hour"))
        if 1 <= hour <= 12 and (match.group("part") or match.group("even")):
            minutes = _minutes(match.group("part") or "0")
            ahead = match.group("way") in word_set("numbers.clock_to")
            yield ((hour - 1) % 12, 60 - minutes) if ahead and minutes else (hour % 12, minutes), *match.span()


def _minutes(part: str) -> int:
    named = {"half": 30, "quarter": 15}.get(part)
    return sum(map(_count, re.split("[ -]", part))) if named is None else named


def _count(word: str) -> int:
    return int(word) if word.isdigit() else word_values()[word]


def _interval(text: str) -> Hashable | None:
    match = _INTERVAL.fullmatch(text)
    return _range(match) if match else None


def _range(match: re.Match[str]) -> Hashable:
    opened, low, high, closed = match.groups()
    return opened == "[", low, high.lstrip("+"), closed == "]"


def _intervals_in(low: str) -> Iterator[Form]:
    for match in _INTERVAL.finditer(low):
        yield _range(match), *match.span()
    for match in _BETWEEN.finditer(low):
        start, first, second, end = match.groups()
        yield (first != "<", start, end, second != "<"), *match.span()


def _root(text: str) -> Hashable | None:
    match = _ROOT.fullmatch(text)
    if match is None:
        return int(text) ** 2 if _WHOLE.fullmatch(text) else None
    return int(match.group(1) or 1) ** 2 * int(match.group(2))


def _roots_in(low: str) -> Iterator[Form]:
    for match in _ROOT.finditer(low):
        yield int(match.group(1) or 1) ** 2 * int(match.group(2)), *match.span()


_ORDERS = Notation(_order, _orders_in)
_NOTATIONS = (_ORDERS, Notation(_time, _times_in), Notation(_interval, _intervals_in), Notation(_root, _roots_in))
