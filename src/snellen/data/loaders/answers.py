"""A gold answer in any usual form (letter, index, text, list of them) to the texts a Sample keeps."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ...core.config import read_config_file
from ...core.errors import DataError, not_among
from ...core.message_parts import holds_marker

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


_BEFORE = r"(?:options?|choices?|opt|选项|選項|選択肢)[ _.:/\[-]?"
LETTER_COLUMN = re.compile(rf"(?:{_BEFORE})?_?([A-Z])\]?", re.IGNORECASE)
NUMBER_COLUMN = re.compile(rf"{_BEFORE}(\d{{1,2}})\]?", re.IGNORECASE)
"""Also as tools flatten lists and objects: `options.A`, `choices/0`, `choices[0]`."""
NAN = "nan"
"""What pandas writes for an empty cell."""
NUMBER_AT_END = re.compile(r"\d{1,3}\Z")


class LookedAt(Struct, frozen=True):
    """Options, and what was found out about them."""

    options: tuple[str, ...]
    folded: tuple[str, ...]
    twice: tuple[int, int] | None
    """The places of two that are the same but for case and space."""
    settled: bool
    """Whether there are no such two, no marker of a picture, also of another tool's, and no empty cell."""
    marks: tuple[str, ...]
    """The marks they begin with, where they have some of their own."""
    read_as: dict[tuple[str, str, str], tuple[str, ...]]
    """What answers were read as so far, by how they are read, the form they state and how they are written."""


PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:,\d{3}){1,4})(?:\.\d+)?")


def is_plain_number(text: str) -> bool:
    """Tell whether a text is a number and nothing else; `007` and `10:30` are written so for a reason."""
    return text[:1] in "-0123456789" and PLAIN_NUMBER.fullmatch(text) is not None


def lettered_columns(columns: Iterable[str]) -> Mapping[str, str]:
    """Return letter -> column, in order, for options in columns of their own (A B C…, choice_A…); none without A and B.

    A column `x` of coordinates or `E` of energies is no option: the letters must run from A without a gap.
    """
    return _lettered(tuple(columns))


def numbered_options(columns: Iterable[str]) -> Mapping[str, str]:
    """Return number -> column, in order, for options in `option_1`, `option_2` …, counted from 0 or 1 without a gap."""
    found = {int(match[1]): column for column in columns if (match := NUMBER_COLUMN.fullmatch(column))}
    numbers = sorted(found)
    gapless = len(numbers) > 1 and numbers[0] < 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return {str(number): found[number] for number in numbers} if gapless else {}


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
    return answers_among(value, look_at_options(options), kind, where)


def answers_among(value: Any, seen: LookedAt, kind: str, where: str) -> tuple[str, ...]:
    """Return the same, of options that were looked at."""
    if kind not in READINGS:
        raise DataError(f"answer_kind {not_among(kind, READINGS, ' is unknown')}")
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple)):
        return tuple([_find_option(answer, seen, kind, where) if seen.options else str(answer) for answer in value])
    return (_find_option(value, seen, kind, where) if seen.options else str(value),)


def refuse_flags(answers: Collection[Any], options: tuple[str, ...], where: str) -> None:
    """Refuse a list of as many 0 and 1 as there are options: one flag each, or the places of two of them?"""
    if options and len(answers) == len(options) and all(type(one) is int and one in (0, 1) for one in answers):
        fix = "write the letters of the right ones, or -p dataset.answer_kind=index takes places from 0"
        raise DataError(f"{where}: answer {list(answers)} can be a flag for each option, or places among them; {fix}")


def find_keyed(answer: Any, keyed: Mapping[str, str], kind: str, where: str) -> str | None:
    """Return the option that an answer names by the key its data gives it, or None."""
    text = str(answer).strip()
    if kind in ("text", WHOLE):
        return None
    if not text.isdecimal():
        return keyed.get(text)
    if kind not in ("auto", "letter"):
        return None  # a place was told, not a name
    if kind == "auto" and "A" in keyed and tuple(keyed) != tuple(string.ascii_uppercase[: len(keyed)]):
        fix = "write its letter"
        raise DataError(f"{where}: answer {text} is a place among options with a gap ({', '.join(keyed)}); {fix}")
    numbered = {match[0]: option for key, option in keyed.items() if (match := NUMBER_AT_END.search(key))}
    return _by_number(text, numbered, where) if len(numbered) == len(keyed) else keyed.get(text)


def _by_number(text: str, keyed: Mapping[str, str], where: str) -> str:
    """Return the option of a number; one that is another option's text too is refused, as is one that is no name."""
    named = keyed.get(text)
    said = next((option for option in keyed.values() if fold(option) == fold(text)), None)
    if named is None and said is None:
        fix = "is it a place from 0? -p dataset.answer_kind=index"
        raise DataError(f"{where}: answer {text} is none of the options {', '.join(keyed)}; {fix}")
    if named is not None and said is not None and said != named:
        fix = "set -p dataset.answer_kind=text, or index for a place from 0"
        raise DataError(f"{where}: answer {text} can mean option {text} or the text {text!r}; {fix}")
    return said if named is None and said is not None else str(named)


def find_answer_set(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return all right options of a multiple response: a list, `A,C`, `AC`, texts joined by commas, or a single one."""
    seen = look_at_options(options)
    if isinstance(value, str) and value.strip():
        value = _listed_options(value.strip(), seen, kind, where)
    return tuple(dict.fromkeys(answers_among(value, seen, kind, where)))


def _listed_options(text: str, seen: LookedAt, kind: str, where: str) -> Any:
    """Return a cell as the list it writes; as it is where it names one option, or nothing that is understood."""
    letters = _letters(text, seen.options) if kind in ("auto", "letter") else ()
    if fold(text) in seen.folded:
        if letters:
            by_letters = f"{' and '.join(map(repr, letters))} by letters"
            raise DataError(f"{where}: answer {text!r} can mean {text!r}, or {by_letters}; write it as a list")
        return text
    return list(letters) or [part for part in SEVERAL.split(text) if part]


SEVERAL = re.compile(r"\s*[,;、，；|&/]\s*|\s+and\s+")
"""What divides the right options of one cell; letters may have a space between them too."""


def _letters(text: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of letters that stand together or apart, in capitals and each once (`ACD`, `A, C`)."""
    letters = "".join(SEVERAL.sub("", text).split())
    places = [string.ascii_uppercase.find(letter) for letter in letters]
    named = len(letters) > 1 and letters.isalpha() and letters.isupper() and len(set(letters)) == len(letters)
    inside = named and all(0 <= place < len(options) for place in places)
    return tuple(options[place] for place in places) if inside else ()


def names_several(value: Any, options: tuple[str, ...]) -> bool:
    """Tell whether an answer is the letters of several options."""
    return isinstance(value, str) and bool(_letters(value.strip(), options))


def _find_option(value: Any, seen: LookedAt, kind: str, where: str) -> str:
    text, found = _written(value, seen, kind, where), None
    for _, read in READINGS[kind]:
        option = read(text, seen)
        if option is None or option == found:
            continue
        if found is not None:
            raise _ambiguous(value, seen, kind, where)
        found = option
    if found is None:
        several = (
            "; several right options? question_type multiple-response, or --form multiple"
            if _letters(text, seen.options)
            else ""
        )
        raise DataError(f"{where}: answer {value!r} {_not_found(text, seen, kind)}{several}")
    return found


def _written(value: Any, seen: LookedAt, kind: str, where: str) -> str:
    """Return an answer as its cell would be written; a whole float is a place, in a column that has gaps."""
    text = str(value).strip()
    if not isinstance(value, float) or not value.is_integer():
        return text
    place = str(int(value))
    if kind != "auto" or fold(text) not in seen.folded:
        return text if kind == "text" and fold(text) in seen.folded else place
    if _by_index(place, seen) not in (None, _by_text(text, seen)):
        ways = f"the text {text!r} or place {place}"
        raise DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind=text|index")
    return text


def _not_found(text: str, seen: LookedAt, kind: str) -> str:
    """Say that an answer names no option; where it does when read otherwise than it was told to be, say so."""
    shown = ", ".join(map(repr, seen.options))
    other = [name for name, read in _SINGLE if name != kind and read(text, seen) is not None]
    if kind in ("auto", WHOLE, "text") and not other:
        return f"is not among the options ({shown}); write the letter, the text or the place (from 0) of one"
    fix = f"; is it the {' or the '.join(other)}? -p dataset.answer_kind={'|'.join(other)}" if other else ""
    return f"read as {kind} is not among the options ({shown}){fix}"


def _ambiguous(value: Any, seen: LookedAt, kind: str, where: str) -> DataError:
    meanings = {name: read(str(value).strip(), seen) for name, read in READINGS[kind]}
    meanings = {name: option for name, option in meanings.items() if option is not None}
    ways = " or ".join(f"{option!r} by {name}" for name, option in meanings.items())
    return DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind={'|'.join(meanings)}")


def _by_text(text: str, seen: LookedAt) -> str | None:
    sought = fold(text)
    return seen.options[seen.folded.index(sought)] if sought in seen.folded else None


def _by_letter(text: str, seen: LookedAt) -> str | None:
    letter = (text if text.isascii() else unicodedata.normalize("NFKC", text)).strip("().").upper()
    return _at(string.ascii_uppercase.find(letter), seen.options) if len(letter) == 1 else None


def _by_mark(text: str, seen: LookedAt) -> str | None:
    return by_mark(text, seen.options, seen.marks) if seen.marks else None


def _by_index(text: str, seen: LookedAt) -> str | None:
    return _at(int(text), seen.options) if text.isdecimal() else None


def _by_index1(text: str, seen: LookedAt) -> str | None:
    return _at(int(text) - 1, seen.options) if text.isdecimal() else None


def _at(index: int, options: tuple[str, ...]) -> str | None:
    return options[index] if 0 <= index < len(options) else None


Reading = tuple[str, Callable[[str, LookedAt], str | None]]
_TEXT, _LETTER, _INDEX, _MARK = ("text", _by_text), ("letter", _by_letter), ("index", _by_index), ("mark", _by_mark)
_SINGLE: tuple[Reading, ...] = (_TEXT, _LETTER, _INDEX, ("index1", _by_index1), _MARK)
WHOLE = "whole"
"""The cell is one answer, also where it is a list: a box, the members of a list that all belong to the answer."""
READINGS: dict[str, tuple[Reading, ...]] = {
    "auto": (_TEXT, _LETTER, _INDEX, _MARK),
    WHOLE: (_TEXT,),
    **{reading[0]: (reading,) for reading in _SINGLE},
}
"""How an answer is read, by the kind that is told; `auto` reads it in four ways, which must agree."""


UNSEEN = dict.fromkeys(
    (0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A), 0xFEFF)
)
"""Characters that nobody sees; joiners (U+200C, U+200D) are none: they change how their neighbours look."""


def fold(text: str) -> str:
    """Return a text without what does not tell options apart: case, how much space, how an accent is stored."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(UNSEEN)
    return " ".join(text.casefold().split())


def look_afresh(options: tuple[str, ...]) -> LookedAt:
    """Return what is to be known of options."""
    folded = tuple([fold(option) for option in options])
    marks = own_marks(options)
    if len(set(folded)) == len(folded):
        settled = not _may_show("\n".join(options)) and NAN not in folded
        return LookedAt(options, folded, None, settled, marks, {})
    second = next(place for place, text in enumerate(folded) if text in folded[:place])
    return LookedAt(options, folded, (folded.index(folded[second]), second), False, marks, {})


def _may_show(text: str) -> bool:
    """Tell whether a text says where a picture stands, also as other tools do."""
    return "<img" in text or "![" in text or holds_marker(text)


look_at_options: Callable[[tuple[str, ...]], LookedAt] = lru_cache(maxsize=64)(look_afresh)
"""Return the same, kept for a while: a row is read twice, and many rows offer the same."""
