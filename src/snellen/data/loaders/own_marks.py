"""Marks that options have of their own (`A. red`, `(2) green`, `③ blue`), and which option an answer means by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from ...core.config import read_config_file
from ...core.errors import DataError

_NAME = r"([^\W_]|\d{2}|[ivxIVX]{2,4})"
MARK = re.compile(
    rf"\s*(?:[(（\[【]\s?{_NAME}\s?[)）\]】]\.?|{_NAME}(?:[.:](?=\s)|[)）、．：])|([①-⑳Ⓐ-Ⓩ])|([^\W\d_a-zA-Z])(?=\s))\s*"
)
"""A letter or a number in brackets or before a stop; a ring; a letter of another script before a space."""
AROUND = "()[]（）【】.:：、． "
LONGEST = 6
"""Characters of an answer that may be a mark, with what stands around it."""
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
GAPS = 3
"""So many marks may be left out of a list."""


@cache
def alphabets() -> Mapping[str, str]:
    """Return what options are marked with, in order, by a name."""
    return read_config_file(str(files("snellen") / "catalog/answers/marks.toml"))


@cache
def alphabets_of(mark: str) -> tuple[str, ...]:
    """Return the alphabets in which a text may mark options of which one is called so: Latin letters, and its own."""
    latin, small, *others = alphabets().values()
    return (latin, small, *(alphabet for alphabet in others if mark and mark in alphabet))


@cache
def _sequences() -> tuple[tuple[str, ...], ...]:
    numbers = (tuple(map(str, range(1, 41))), tuple(map(str, range(40))), ROMAN)
    return (*(tuple(alphabet.upper()) for alphabet in alphabets().values()), *numbers)


def own_marks(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the mark that each option begins with, in capitals; none where they are not marked, as a list would be.

    `E. coli` and `S. aureus` bear no marks: those of a list are all different, and among the first of an alphabet.
    """
    if not options or MARK.match(options[0]) is None:
        return ()
    found = [match.group(match.lastindex or 0).upper() for option in options if (match := MARK.match(option))]
    marks, likely = frozenset(found), len(options) + GAPS
    if len(marks) < len(options):
        return ()
    listed = any(order[0] in marks and marks.issubset(order[:likely]) for order in _sequences())
    return tuple(found) if listed else ()


def without_mark(option: str) -> str:
    """Return an option without the mark it begins with."""
    match = MARK.match(option)
    return option[match.end() :].strip() if match else option


def by_mark(text: str, options: tuple[str, ...], marks: tuple[str, ...]) -> str | None:
    """Return the option that a text names by the mark it begins with, or by what stands after it."""
    bare = text.strip(AROUND).upper() if len(text) <= LONGEST else ""
    if bare in marks:
        return options[marks.index(bare)]
    said = text.strip().casefold()
    return next((option for option in options if without_mark(option).casefold() == said), None)


def are_letters(marks: tuple[str, ...]) -> bool:
    """Tell whether marks are letters as a prompt puts them before options."""
    return bool(marks) and set(marks) <= set(alphabets()["latin"])


def refuse_contrary(marks: tuple[str, ...], where: str) -> None:
    """Refuse options whose own letters contradict those that a prompt puts before them: `B. green`, `A. red`."""
    if are_letters(marks) and marks != tuple(alphabets()["latin"][: len(marks)]):
        fix = "-p dataset.strip_marks=true takes them off"
        raise DataError(f"{where}: its options begin with letters of their own, {', '.join(marks)}; {fix}")
