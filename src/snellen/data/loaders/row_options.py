"""The options of a row out of its cells, whatever their shape; and what its texts say of where pictures stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.errors import DataError
from ...core.message_parts import MARKER, holds_marker, marked_pictures, number_markers, write_marker
from ...core.types import Image
from ..files.records import is_nothing, parse_literal
from .option_texts import (
    OptionFacts,
    alphabets_of,
    find_option_facts,
    fold,
    option_facts,
    options_in_text,
    without_mark,
)
from .row_map import Places, is_picture_struct
from .row_media import PICTURE_NAME, SHORTEST_BASE64, Pictures, holds_picture

NOT_THERE = "(not in the file)"
AS_TEXTS = "-p dataset.not_pictures=['options'] shows them as texts"


class RowOptions(Struct, frozen=True):
    """The options of a row as texts, by the keys its data gives them, and the pictures that stand for some of them."""

    facts: OptionFacts
    keyed: Mapping[str, str] = {}
    images: tuple[Image, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts."""
        return self.facts.options


NO_OPTIONS = RowOptions(option_facts(()))
ONLY_TEXTS = frozenset({str})


def read_texts(cells: dict[Any, Any] | list[Any]) -> RowOptions | None:
    """Return the options of nearly every row of nearly every table: texts that can be no pictures; None for others."""
    values = list(cells.values()) if isinstance(cells, dict) else cells
    plain = _plain_options(tuple(values)) if ONLY_TEXTS.issuperset(map(type, values)) else None
    if plain is None or not isinstance(cells, dict):
        return plain
    return RowOptions(plain.facts, dict(zip(map(str, cells), values, strict=True)))


def read_row_options(
    cells: dict[Any, Any] | list[Any], first: int, pictures: Pictures | None, where: str
) -> RowOptions:
    """Return the options; one that is a picture becomes the marker of picture `first` and those after it.

    Bytes and base64 are pictures; names of files only where all options are. Without `pictures` all are texts.
    """
    keys, values = (list(map(str, cells)), list(cells.values())) if isinstance(cells, dict) else ((), cells)
    found = _find_pictures(values, pictures.root, where) if pictures is not None else ()
    if not found or pictures is None:
        texts = tuple(map(str, values))
        return RowOptions(option_facts(texts), dict(zip(keys, texts, strict=False)))
    images = pictures.read([values[place] for place in found], where)
    texts = _with_marks(values, found, first)
    names = {name: texts[place] for place in found if isinstance(name := values[place], str)}
    return RowOptions(option_facts(texts), {**names, **dict(zip(keys, texts, strict=False))}, images)


@lru_cache(maxsize=64)
def _plain_options(texts: tuple[str, ...]) -> RowOptions | None:
    """Return options none of which is a picture, kept for a while: many rows offer the same; None where one may be."""
    return None if _may_show(texts) else RowOptions(find_option_facts(texts))


def _with_marks(values: Sequence[Any], found: Sequence[int], first: int) -> tuple[str, ...]:
    """Return the options as texts, those found to be pictures as markers."""
    markers = {place: write_marker(first + number) for number, place in enumerate(found)}
    return tuple(markers.get(place) or str(value) for place, value in enumerate(values))


def _may_show(values: Sequence[Any]) -> bool:
    """Tell whether one of the options may be a picture: most are short texts without an ending."""
    for value in values:  # noqa: SIM110 - a generator costs more, and all options of every table come by here
        if type(value) is not str or len(value) >= SHORTEST_BASE64 or "." in value[-5:]:
            return True
    return False


def _find_pictures(values: Sequence[Any], root: str, where: str) -> Sequence[int]:
    """Return the places of the options that are pictures."""
    sure = [place for place, value in enumerate(values) if holds_picture(value)]
    if sure or not values or not all(isinstance(value, str) and _is_name(value) for value in values):
        return sure
    missing = next((value for value in values if not (Path(root) / value).is_file()), None)
    if missing is not None:
        raise DataError(f"{where}: its options look like pictures and {missing!r} is not there; {AS_TEXTS}")
    return range(len(values))


def _is_name(text: str) -> bool:
    return "." in text[-5:] and PICTURE_NAME.fullmatch(text) is not None


FOREIGN = re.compile(
    r"data:image/[a-z+.-]{1,20};base64,|<(?:image|img|im)_(?:placeholder|token|patch|context|pad)>"
    r"|(?<![\w\\])[\[{]{1,2}(?:image|img)(?:[ _-]?\d{1,2})?[\]}]{1,2}|<ImageHere>|<\|image(?:_\d+|_pad)?\|>"
    r"|<img>[^<\n]{0,500}</img>|<img\s[^<>\n]{0,500}>|!\[[^\]\n]{0,200}\]\([^)\s]{1,500}\)",
    re.IGNORECASE,
)
"""How other tools say where a picture stands, or write it into the text."""


def padded(images: tuple[Image, ...], texts: Sequence[str]) -> tuple[Image, ...]:
    """Return the pictures of a row with as many that are not there as its texts speak of beside them."""
    marked = [text for text in texts if holds_marker(text)]
    bare = sum(1 for text in marked for found in MARKER.finditer(text) if not found[1])
    wanted = max([*marked_pictures(marked), bare])
    return (*images, *[Image(NOT_THERE)] * (wanted - len(images)))


def foreign_marker(text: str, pictures: int, where: str) -> str | None:
    """Return another tool's marker in a question, which is sent as it is; refuse it in a row without pictures."""
    if "<" not in text and "[" not in text and "{" not in text and "data:image/" not in text:
        return None  # nearly every question
    found = FOREIGN.search(text)
    if found is None:
        return None
    if not pictures:
        fix = "name its file in a column `image`, and write <image> where it stands"
        raise DataError(f"{where}: the question shows a picture ({found[0][:60]!r}) and the row has none; {fix}")
    return found[0][:60]


def settle_markers(question: str, offered: RowOptions, pictures: int, where: str) -> tuple[str, RowOptions]:
    """Check the markers of a row that has so many pictures, and number those of its options; most rows have none."""
    if "<" not in question and offered.facts.settled:
        return question, offered
    foreign_marker("\n".join(offered.texts), pictures, where)
    if not holds_marker("\n".join((question, *offered.texts))):
        return question, offered
    check_markers((question, *offered.texts), pictures, where)
    question, texts, keyed = number_row(question, offered.texts, offered.keyed)
    return question, RowOptions(option_facts(texts), keyed, offered.images)


def number_row(
    question: str, options: tuple[str, ...], keyed: Mapping[str, str]
) -> tuple[str, tuple[str, ...], Mapping[str, str]]:
    """Return question and options with bare markers numbered, where an option has one: they would be the same text."""
    if not options or not holds_marker("\n".join(options)):
        return question, options, keyed
    first, *rest = number_markers([question, *options])
    return first, tuple(rest), dict(zip(keyed, rest, strict=True)) if len(keyed) == len(rest) else keyed


def check_markers(texts: Sequence[str], pictures: int, where: str) -> None:
    """Refuse a row that speaks of a picture it does not have, or that numbers some of its markers only."""
    marked = [text for text in texts if holds_marker(text)]
    numbers = marked_pictures(marked)
    bare = sum(1 for text in marked for found in MARKER.finditer(text) if not found[1])
    if numbers and bare:
        fix = "number all of its pictures or none"
        raise DataError(f"{where}: <image {numbers[0]}> and <image> stand in one row: which is meant? {fix}")
    wanted = max([*numbers, bare])
    if wanted > pictures:
        fix = "name their columns with --map images=COLUMN,COLUMN"
        raise DataError(f"{where}: the question speaks of picture {wanted} and the row has {pictures}; {fix}")
    if 0 in numbers:
        raise DataError(f"{where}: the question speaks of picture 0; pictures are counted from 1")


TEXT_FIELDS = ("text", "value", "content", "answer", "option", "choice")
NAME_FIELDS = ("label", "key", "letter", "id", "index", "mark")
"""Where options that are objects have their text, and the name an answer calls them by."""


def parse_list(text: str, where: str, field: str = "options") -> Any:
    """Return the list or mapping that a text writes, as JSON or as Python would (never run); `a|b` and `a;b` are lists.

    None for an empty text.
    """
    stripped = text.strip()
    if not stripped:
        return None
    if not stripped.startswith(("[", "{", "array(", "np.array(", "('", '("')):
        return _split_list(text, where, field)
    value = parse_literal(stripped)
    if isinstance(value, list | dict):
        return value
    raise DataError(f"{where}: {field} are not valid JSON, nor a list as Python writes it: {stripped[:60]!r}")


def _split_list(text: str, where: str, field: str) -> list[str]:
    """Return the parts of a text with marks between them: `a|b`, `a;b`, or letters before each."""
    parts = [part.strip() for part in text.split("|" if "|" in text else ";")]
    found = options_in_text(text, alphabets_of("")) if len(parts) == 1 else None
    if found is not None and not found.question:
        return [option.rstrip(",") for option in found.options]
    if len(parts) == 1:
        fix = 'a choice needs two: write a|b|c, or a list ["a", "b", "c"]'
        raise DataError(f"{where}: {field} is one text without | or ; between its parts: {text.strip()[:60]!r}; {fix}")
    return parts


def plain_options(cell: Any, where: str) -> Any:
    """Return options as a list, or as a mapping of the names they have; objects by the field that has their text."""
    if isinstance(cell, str):
        cell = parse_list(cell, where)
    if not isinstance(cell, list):
        return _of_mapping(cell, where) if isinstance(cell, dict) else cell
    for value in cell:
        if type(value) is not str or not value:
            return _odd_options(cell, where)
    return cell  # nearly every row of nearly every table


def _of_mapping(cell: dict[Any, Any], where: str) -> Mapping[Any, Any]:
    return _of_columns(cell, where) if any(isinstance(value, list) for value in cell.values()) else cell


def _odd_options(cell: list[Any], where: str) -> Sequence[Any] | Mapping[Any, Any]:
    filled = _without_gaps(cell, where)
    if any(isinstance(value, dict) and not is_picture_struct(value) for value in filled):
        return _of_objects(filled, where)
    if any(isinstance(value, list) for value in filled):
        raise DataError(f"{where}: an option is a list; write each option as a text")
    return filled


def in_order(options: Any, where: str) -> Mapping[Any, Any]:
    """Return a mapping of options by the order of its letters or numbers; by any other names as it is written."""
    if not isinstance(options, Mapping):
        raise DataError(f"{where}: options must be a list or a mapping of letters, not {type(options).__name__}")
    names = list(map(str, options))
    if all(map(str.isdecimal, names)):
        return {key: options[key] for key in sorted(options, key=int)}
    long = [name for name in names if len(name) > 1]
    if 0 < len(long) < len(names):
        raise DataError(f"{where}: options have a field {long[0]!r} beside letters; keep it in a column of its own")
    return {key: options[key] for key in sorted(options, key=str)} if all(map(str.isascii, names)) else options


def _without_gaps(cells: Sequence[Any], where: str) -> list[Any]:
    """Return a list without the nothing that fills it up at its end; within it, letters and places would shift."""
    filled = list(cells)
    while filled and is_nothing(filled[-1]):
        filled.pop()
    gap = next((place for place, value in enumerate(filled, 1) if is_nothing(value)), None)
    if gap is not None:
        raise DataError(f"{where}: option {gap} of {len(filled)} is empty; leave it out, or write its text")
    return filled


def _of_columns(cell: Mapping[Any, Any], where: str) -> Mapping[Any, Any]:
    """Read `{"text": […], "label": […]}`: a list of objects as column formats store it."""
    lists = {key: value for key, value in cell.items() if isinstance(value, list)}
    lengths = set(map(len, lists.values()))
    if len(lists) < len(cell) or len(lengths) != 1:
        raise _unread_options(list(cell), where)
    if lengths == {0}:
        return {}
    return _of_objects([dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)], where)


def _of_objects(objects: Sequence[Any], where: str) -> Mapping[Any, Any]:
    """Read `[{"label": "A", "text": "a cat"}, …]`, and `[{"A": "a cat"}, {"B": "a dog"}]`."""
    known = [one for one in objects if isinstance(one, dict)]
    if len(known) < len(objects):
        raise _unread_options(list(known[0]), where)
    return _of_letters(known) or _of_fields(known, where)


def _of_letters(objects: Sequence[dict[Any, Any]]) -> Mapping[Any, Any]:
    merged = {key: value for one in objects for key, value in one.items()}
    return merged if all(len(one) == 1 for one in objects) and len(merged) == len(objects) > 1 else {}


def _of_fields(objects: Sequence[dict[Any, Any]], where: str) -> Mapping[Any, Any]:
    text = next((field for field in TEXT_FIELDS if field in objects[0]), None)
    name = next((field for field in NAME_FIELDS if field in objects[0]), None)
    wanted = {text, name} - {None}
    if text is None or any(set(one) != wanted for one in objects):
        raise _unread_options(list(objects[0]), where)
    names = [str(place if name is None else one[name]) for place, one in enumerate(objects)]
    if len(set(names)) < len(names):
        raise DataError(f"{where}: two options have one name ({', '.join(names)}); name each once")
    return dict(zip(names, (one[text] for one in objects), strict=True))


def _unread_options(fields: list[str], where: str) -> DataError:
    shape = f"objects with {', '.join(map(str, fields))}"
    return DataError(f"{where}: options are {shape}; write a list of texts, or of objects with label and text")


def lettered_options(
    row: Mapping[str, Any], lettered: Mapping[str, str], is_empty: Callable[[Any], bool], where: str
) -> dict[str, Any]:
    """Return the options that stand in columns of their own, by their letters."""
    found = {letter: row[column] for letter, column in lettered.items() if not is_empty(row[column])}
    if len(found) == 1:
        (letter, text), *_ = found.items()
        raise DataError(f"{where} has one option alone ({letter}: {text!r}); a choice needs two")
    return found


def refuse_rivals(
    row: Mapping[str, Any], places: Places, options: tuple[str, ...], is_empty: Callable[[Any], bool], where: str
) -> None:
    """Refuse options in two places of a row that are not the same."""
    first, wanted = places.fields["options"][0], [fold(without_mark(option)) for option in options]
    for columns in places.rivals:
        cells = [row[column] for column in columns if not is_empty(row[column])]
        others = plain_options(cells[0], where) if cells and len(columns) == 1 else cells
        texts = others.values() if isinstance(others, Mapping) else others
        if texts and [fold(without_mark(str(text))) for text in texts] != wanted:
            fix = f"--map options={first} or --map options={','.join(columns)} says which are meant"
            raise DataError(f"{where}: columns {first!r} and {columns[0]!r} offer different options; {fix}")
