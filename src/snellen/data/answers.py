"""A gold answer in any usual form (letter, index, text, list of them) to the texts a Sample keeps."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from ..core.errors import DataError, did_you_mean

LETTER_COLUMN = re.compile(r"(?:option|choice)?_?([A-Z])", re.IGNORECASE)


def lettered_columns(columns: Iterable[str]) -> Mapping[str, str]:
    """Return letter -> column for options in columns of their own (A B C…, choice_A…), in order; none unless A and B are there.

    A column `x` of coordinates or `E` of energies is no option: the letters must run from A without a gap.
    """
    return _lettered(tuple(columns))


@lru_cache(maxsize=64)
def _lettered(columns: tuple[str, ...]) -> Mapping[str, str]:
    """Do so once for all rows of the same columns."""
    found = dict(
        sorted((match.group(1).upper(), column) for column in columns if (match := LETTER_COLUMN.fullmatch(column)))
    )
    letters = [
        letter
        for letter, _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, string.ascii_uppercase, strict=False))
    ]
    return MappingProxyType({letter: found[letter] for letter in letters} if len(letters) > 1 else {})


def find_answers(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return the answer texts; for a choice each is one of `options`, else DataError. None gives ()."""
    if kind not in READINGS:
        raise DataError(f"answer_kind {kind!r} is unknown{did_you_mean(kind, READINGS)}; known: {', '.join(READINGS)}")
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple)):
        return tuple([_find_option(each, options, kind, where) if options else str(each) for each in value])
    return (_find_option(value, options, kind, where) if options else str(value),)


def _find_option(value: Any, options: tuple[str, ...], kind: str, where: str) -> str:
    text, found = str(value).strip(), None
    for _, read in READINGS[kind]:
        option = read(text, options)
        if option is None or option == found:
            continue
        if found is not None:
            raise _ambiguous(value, options, kind, where)
        found = option
    if found is None:
        raise DataError(f"{where}: answer {value!r} is not among the options ({', '.join(map(repr, options))})")
    return found


def _ambiguous(value: Any, options: tuple[str, ...], kind: str, where: str) -> DataError:
    read = {
        name: option for name, reading in READINGS[kind] if (option := reading(str(value).strip(), options)) is not None
    }
    ways = " or ".join(f"{option!r} by {reading}" for reading, option in read.items())
    return DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind={'|'.join(read)}")


def _by_text(text: str, options: tuple[str, ...]) -> str | None:
    folded = fold_options(options)
    sought = fold(text)
    return options[folded.index(sought)] if sought in folded else None


def _by_letter(text: str, options: tuple[str, ...]) -> str | None:
    letter = text.strip("().").upper()
    return _at(string.ascii_uppercase.find(letter), options) if len(letter) == 1 else None


def _by_index(text: str, options: tuple[str, ...]) -> str | None:
    return _at(int(text), options) if text.isdecimal() else None


def _by_index1(text: str, options: tuple[str, ...]) -> str | None:
    return _at(int(text) - 1, options) if text.isdecimal() else None


def _at(place: int, options: tuple[str, ...]) -> str | None:
    return options[place] if 0 <= place < len(options) else None


Reading = tuple[str, Callable[[str, tuple[str, ...]], str | None]]
_TEXT, _LETTER, _INDEX, _INDEX1 = (
    ("text", _by_text),
    ("letter", _by_letter),
    ("index", _by_index),
    ("index1", _by_index1),
)
READINGS: dict[str, tuple[Reading, ...]] = {
    "auto": (_TEXT, _LETTER, _INDEX),
    "text": (_TEXT,),
    "letter": (_LETTER,),
    "index": (_INDEX,),
    "index1": (_INDEX1,),
}
"""How an answer is read, by the kind that is told; `auto` reads it in three ways, which must agree."""


def fold(text: str) -> str:
    """Return a text without what does not tell options apart: case, and how much space."""
    return " ".join(text.casefold().split())


@lru_cache(maxsize=64)
def fold_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options folded; kept for a while, as a row is asked twice and many rows offer the same."""
    return tuple([fold(option) for option in options])
