"""Options that are pictures, and the markers (`<image 1>`) that say where a row's pictures stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.errors import DataError
from ...core.message_parts import MARKER, holds_marker, marked_pictures, number_markers, write_marker
from ...core.types import Image
from .answers import LookedAt, look_afresh, look_at_options
from .row_map import is_picture_struct
from .row_media import PICTURE_NAME, SHORTEST_BASE64, SIGNATURES, Pictures, is_base64

NOT_THERE = "(not in the file)"
AS_TEXTS = "-p dataset.not_pictures=['options'] shows them as texts"


class RowOptions(Struct, frozen=True):
    """The options of a row as texts, by the keys its data gives them, and the pictures that stand for some of them."""

    seen: LookedAt
    keyed: Mapping[str, str] = {}
    images: tuple[Image, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts."""
        return self.seen.options


NO_OPTIONS = RowOptions(look_at_options(()))
ONLY_TEXTS = frozenset({str})


def read_row_options(
    cells: dict[Any, Any] | list[Any], first: int, pictures: Pictures | None, where: str
) -> RowOptions:
    """Return the options; one that is a picture becomes the marker of picture `first` and those after it.

    Bytes and base64 are pictures; names of files only where all options are. Without `pictures` all are texts.
    """
    keys, values = (list(map(str, cells)), list(cells.values())) if isinstance(cells, dict) else ((), cells)
    plain = _plain_options(tuple(values)) if ONLY_TEXTS.issuperset(map(type, values)) else None
    if plain is not None:  # nearly every row of nearly every table
        return RowOptions(plain.seen, dict(zip(keys, values, strict=False))) if keys else plain
    found = _find_pictures(values, pictures.root, where) if pictures is not None else ()
    if not found or pictures is None:
        texts = tuple(map(str, values))
        return RowOptions(look_at_options(texts), dict(zip(keys, texts, strict=False)))
    images = pictures.read([values[place] for place in found], where)
    texts = _with_marks(values, found, first)
    names = {name: texts[place] for place in found if isinstance(name := values[place], str)}
    return RowOptions(look_at_options(texts), {**names, **dict(zip(keys, texts, strict=False))}, images)


@lru_cache(maxsize=64)
def _plain_options(texts: tuple[str, ...]) -> RowOptions | None:
    """Return options none of which is a picture, kept for a while: many rows offer the same; None where one may be."""
    return None if _may_show(texts) else RowOptions(look_afresh(texts))


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
    sure = [place for place, value in enumerate(values) if _holds_picture(value)]
    if sure or not values or not all(isinstance(value, str) and _is_name(value) for value in values):
        return sure
    missing = next((value for value in values if not (Path(root) / value).is_file()), None)
    if missing is not None:
        raise DataError(f"{where}: its options look like pictures and {missing!r} is not there; {AS_TEXTS}")
    return range(len(values))


def _holds_picture(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) >= SHORTEST_BASE64 and (value.startswith("data:image/") or is_base64(value))
    return is_picture_struct(value) if isinstance(value, dict) else _is_bytes(value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes) and value.startswith(SIGNATURES)


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
    if "<" not in question and offered.seen.settled:
        return question, offered
    foreign_marker("\n".join(offered.texts), pictures, where)
    if not holds_marker("\n".join((question, *offered.texts))):
        return question, offered
    check_markers((question, *offered.texts), pictures, where)
    question, texts, keyed = number_row(question, offered.texts, offered.keyed)
    return question, RowOptions(look_at_options(texts), keyed, offered.images)


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
