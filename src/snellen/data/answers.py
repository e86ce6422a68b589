"""A gold answer in any usual form (letter, index, text, list of them) to the texts a Sample keeps."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from ..core.errors import DataError, did_you_mean

LETTER_COLUMN = re.compile(r"(?:option|choice)?_?([A-Z])", re.IGNORECASE)
KINDS = ("auto", "text", "letter", "index", "index1")


def lettered_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return letter -> column for options in columns of their own (A B C…, choice_A…), in order; none unless A and B are there.

    A column `x` of coordinates or `E` of energies is no option: the letters must run from A without a gap.
    """
    found = dict(sorted((match.group(1).upper(), column) for column in columns if (match := LETTER_COLUMN.fullmatch(column))))
    letters = [letter for letter, _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, string.ascii_uppercase, strict=False))]
    return {letter: found[letter] for letter in letters} if len(letters) > 1 else {}


def find_answers(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return the answer texts; for a choice each is one of `options`, else DataError. None gives ()."""
    if kind not in KINDS:
        raise DataError(f"answer_kind {kind!r} is unknown{did_you_mean(kind, KINDS)}; known: {', '.join(KINDS)}")
    if value is None or value == "":
        return ()
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not options:
        return tuple(str(each) for each in values)
    return tuple(_find_option(each, options, kind, where) for each in values)


def _find_option(value: Any, options: tuple[str, ...], kind: str, where: str) -> str:
    readings = {
        "text": _by_text(value, options),
        "letter": _by_letter(value, options),
        "index": _by_index(value, options, 0),
        "index1": _by_index(value, options, 1) if kind == "index1" else None,
    }
    if kind != "auto":
        readings = {kind: readings[kind]}
    found = {reading: option for reading, option in readings.items() if option is not None}
    if not found:
        raise DataError(f"{where}: answer {value!r} is not among the options ({', '.join(map(repr, options))})")
    if len(set(found.values())) > 1:
        ways = " or ".join(f"{option!r} by {reading}" for reading, option in found.items())
        raise DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind={'|'.join(found)}")
    return next(iter(found.values()))


def _by_text(value: Any, options: tuple[str, ...]) -> str | None:
    text = _fold(str(value))
    return next((option for option in options if _fold(option) == text), None)


def _by_letter(value: Any, options: tuple[str, ...]) -> str | None:
    letter = str(value).strip().strip("().").upper()
    place = string.ascii_uppercase.find(letter) if len(letter) == 1 else -1
    return options[place] if 0 <= place < len(options) else None


def _by_index(value: Any, options: tuple[str, ...], base: int) -> str | None:
    if isinstance(value, bool) or not str(value).strip().isdecimal():
        return None
    place = int(value) - base
    return options[place] if 0 <= place < len(options) else None


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
