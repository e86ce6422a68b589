"""Options that are pictures, and the markers (`<image 1>`) that say where a row's pictures stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import DataError
from ...core.message_parts import MARKER, holds_marker, marked_pictures, number_markers, write_marker
from ...core.types import Image
from .row_map import is_picture_struct
from .row_pictures import PICTURE_NAME, SHORTEST_BASE64, SIGNATURES, Pictures, is_base64

AS_TEXTS = "-p dataset.not_pictures=['options'] shows them as texts"


class RowOptions(NamedTuple):
    """The options of a row as texts, by the keys its data gives them, and the pictures that stand for some of them."""

    texts: tuple[str, ...] = ()
    keyed: Mapping[str, str] = {}
    images: tuple[Image, ...] = ()


def read_row_options(
    cells: Mapping[Any, Any] | Sequence[Any], first: int, pictures: Pictures | None, where: str
) -> RowOptions:
    """Return the options; one that is a picture becomes the marker of picture `first` and those after it.

    Bytes and base64 are pictures; names of files only where all options are. Without `pictures` all are texts.
    """
    if type(cells) is list and not _may_show(cells):  # nearly every row of nearly every table
        return RowOptions(tuple(cells))
    keys, values = (list(map(str, cells)), list(cells.values())) if isinstance(cells, Mapping) else ([], list(cells))
    found = _find_pictures(values, pictures.root, where) if pictures is not None and _may_show(values) else ()
    if not found or pictures is None:
        texts = tuple(map(str, values))
        return RowOptions(texts, dict(zip(keys, texts, strict=False)))
    images = pictures.read([values[place] for place in found], where)
    texts = _with_marks(values, found, first)
    names = {name: texts[place] for place in found if isinstance(name := values[place], str)}
    return RowOptions(texts, {**names, **dict(zip(keys, texts, strict=False))}, images)


def _with_marks(values: Sequence[Any], found: Sequence[int], first: int) -> tuple[str, ...]:
    """Return the options as texts, those found to be pictures as markers."""
    markers = {place: write_marker(first + number) for number, place in enumerate(found)}
    return tuple(markers.get(place) or str(value) for place, value in enumerate(values))


def _may_show(values: Sequence[Any]) -> bool:
    """Tell whether one of the options may be a picture: most are short texts without an ending."""
    for value in values:  # noqa: SIM110 - a generator costs more, and every row of every table comes by here
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


def settle_markers(
    question: str, options: tuple[str, ...], keyed: Mapping[str, str], pictures: int, where: str
) -> tuple[str, tuple[str, ...], Mapping[str, str]]:
    """Check the markers of a row that has so many pictures, and number those of its options; most rows have none."""
    if not holds_marker("\n".join((question, *options))):
        return question, options, keyed
    check_markers((question, *options), pictures, where)
    return number_row(question, options, keyed)


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
