"""A gold answer in any usual form (letter, index, text, list of them) to the texts a Sample keeps."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from ..core.errors import DataError, not_among

LETTER_COLUMN = re.compile(r"(?:option|choice)?_?([A-Z])", re.IGNORECASE)


PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:,\d{3}){1,4})(?:\.\d+)?")


def is_plain_number(text: str) -> bool:
    """Tell whether a text is a number and nothing else; `007` and `10:30` are written so for a reason."""
    return text[:1] in "-0123456789" and PLAIN_NUMBER.fullmatch(text) is not None


def lettered_columns(columns: Iterable[str]) -> Mapping[str, str]:
    """Return letter -> column, in order, for options in columns of their own (A B C…, choice_A…); none without A and B.

    A column `x` of coordinates or `E` of energies is no option: the letters must run from A without a gap.
    """
    return _lettered(tuple(columns))


@lru_cache(maxsize=64)
def _lettered(columns: tuple[str, ...]) -> Mapping[str, str]:
    """Do so once for all rows of the same columns."""
    matches = ((LETTER_COLUMN.fullmatch(column), column) for column in columns)
    by_letter = dict(sorted((match[1].upper(), column) for match, column in matches if match))
    gapless = takewhile(lambda letter: letter in by_letter, string.ascii_uppercase)
    lettered = {letter: by_letter[letter] for letter in gapless}
    return MappingProxyType(lettered if len(lettered) > 1 else {})


def find_answers(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return the answer texts; for a choice each is one of `options`, else DataError. None gives ()."""
    if kind not in READINGS:
        raise DataError(f"answer_kind {not_among(kind, READINGS, ' is unknown')}")
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple)):
        return tuple([_find_option(answer, options, kind, where) if options else str(answer) for answer in value])
    return (_find_option(value, options, kind, where) if options else str(value),)


def find_answer_set(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return all right options of a multiple response: a list, `A,C`, `AC`, texts joined by commas, or a single one."""
    if isinstance(value, str) and value.strip():
        value = _listed_options(value.strip(), options, kind, where)
    return tuple(dict.fromkeys(find_answers(value, options, kind, where)))


def _listed_options(text: str, options: tuple[str, ...], kind: str, where: str) -> Any:
    """Return a cell as the list it writes; as it is where it names one option, or nothing that is understood."""
    letters = _letters(text, options) if kind in ("auto", "letter") else ()
    if fold(text) in fold_options(options):
        if letters:
            by_letters = f"{' and '.join(map(repr, letters))} by letters"
            raise DataError(f"{where}: answer {text!r} can mean {text!r}, or {by_letters}; write it as a list")
        return text
    return list(letters) or [part for part in SEVERAL.split(text) if part]


ASK_FOR_ALL = "; are several right? A column question_type with multiple-response, or --form multiple, asks for all"
SEVERAL = re.compile(r"\s*[,;、，；|&/]\s*|\s+and\s+")
"""What divides the right options of one cell; letters may have a space between them too."""


def _letters(text: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of letters that stand together or apart, in capitals and each once (`ACD`, `A, C`)."""
    letters = "".join(SEVERAL.sub("", text).split())
    places = [string.ascii_uppercase.find(letter) for letter in letters]
    named = len(letters) > 1 and letters.isalpha() and letters.isupper() and len(set(letters)) == len(letters)
    inside = named and all(0 <= place < len(options) for place in places)
    return tuple(options[place] for place in places) if inside else ()


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
        several = (
            "; several right options? question_type multiple-response, or --form multiple"
            if _letters(text, options)
            else ""
        )
        raise DataError(f"{where}: answer {value!r} {_not_found(text, options, kind)}{several}")
    return found


def _not_found(text: str, options: tuple[str, ...], kind: str) -> str:
    """Say that an answer names no option; where it does when read otherwise than it was told to be, say so."""
    shown = ", ".join(map(repr, options))
    other = [name for name, read in _SINGLE if name != kind and read(text, options) is not None]
    if kind in ("auto", WHOLE, "text") and not other:
        return f"is not among the options ({shown})"
    fix = f"; is it the {' or the '.join(other)}? -p dataset.answer_kind={'|'.join(other)}" if other else ""
    return f"read as {kind} is not among the options ({shown}){fix}"


def _ambiguous(value: Any, options: tuple[str, ...], kind: str, where: str) -> DataError:
    meanings = {name: read(str(value).strip(), options) for name, read in READINGS[kind]}
    meanings = {name: option for name, option in meanings.items() if option is not None}
    ways = " or ".join(f"{option!r} by {name}" for name, option in meanings.items())
    return DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind={'|'.join(meanings)}")


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


def _at(index: int, options: tuple[str, ...]) -> str | None:
    return options[index] if 0 <= index < len(options) else None


Reading = tuple[str, Callable[[str, tuple[str, ...]], str | None]]
_TEXT, _LETTER, _INDEX = ("text", _by_text), ("letter", _by_letter), ("index", _by_index)
_SINGLE: tuple[Reading, ...] = (_TEXT, _LETTER, _INDEX, ("index1", _by_index1))
WHOLE = "whole"
"""The cell is one answer, also where it is a list: a box, the members of a list that all belong to the answer."""
READINGS: dict[str, tuple[Reading, ...]] = {
    "auto": (_TEXT, _LETTER, _INDEX),
    WHOLE: (_TEXT,),
    **{reading[0]: (reading,) for reading in _SINGLE},
}
"""How an answer is read, by the kind that is told; `auto` reads it in three ways, which must agree."""


def fold(text: str) -> str:
    """Return a text without what does not tell options apart: case, and how much space."""
    return " ".join(text.casefold().split())


@lru_cache(maxsize=64)
def fold_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options folded; kept for a while, as a row is asked twice and many rows offer the same."""
    return tuple([fold(option) for option in options])
