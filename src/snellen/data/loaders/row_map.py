"""Which column is which, and the cells of a row that have something in them: a row map is data (catalog/rows)."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ...core.config import convert, read_config_file
from ...core.errors import DataError, UsageError, not_among
from ..files.records import is_nothing
from ..files.rows import Row

PLAIN = "plain"
FIELDS = (
    *("id", "question", "hint", "options", "answer", "images", "group", "round", "form", "dialogue"),
    *("max_tokens", "system", "pages", "evidence_pages", "video", "subtitles", "start", "end", "fps"),
)
TAGS_TOO = ("images", "pages", "evidence_pages", "video", "subtitles", "start", "end", "fps")
"""Fields whose columns are not taken for good by their first name: pages mean something only beside a PDF."""
LABELS = ("video", "group", "round")
"""Fields that few rows have, beside tags: a row without any of them is not asked for them."""
FOLDED = ("id", "question", "hint", "options", "answer", "images", "dialogue")
"""Fields whose columns may be written `Question` or `Question ID`: without them the question would be another one."""
NUMBERED = "{n}"


class RowMap(Struct, frozen=True, forbid_unknown_fields=True):
    """Columns by the field they hold, the first that has something wins; and what cells of this format mean."""

    title: str = ""
    when: tuple[tuple[str, ...], ...] = ()
    """Recognised where a file has all columns of one of these."""
    structs: bool = False
    """Recognised also by a column of `{bytes, path}`."""
    unanswered: tuple[str, ...] = ()
    """Answers that say that the answer is kept back."""
    inside: tuple[str, ...] = ()
    """Columns that hold an object whose fields are columns too."""
    id: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    """What stands before the question: a hint, a context."""
    options: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    """`image_{n}` stands for image_1, image_2 …, all of them in order."""
    same_pictures: bool = False
    """Several of `images` are the same pictures written differently; else two at once are refused."""
    row_images: bool = False
    """A short cell may be the id of the row that has the picture."""
    group: tuple[str, ...] = ()
    round: tuple[str, ...] = ()
    form: tuple[str, ...] = ()
    dialogue: tuple[str, ...] = ()
    max_tokens: tuple[str, ...] = ()
    """The row's own limit, which wins over the task's."""
    system: tuple[str, ...] = ()
    """What the model is told before everything else, instead of the run's own."""
    pages: tuple[str, ...] = ()
    """Which pages of a PDF are shown."""
    evidence_pages: tuple[str, ...] = ()
    """Which pages of a document, or pictures of a row from 1, hold the answer: arm `without-page` leaves them out."""
    video: tuple[str, ...] = ()
    """A video file, its bytes, or a folder of frames."""
    subtitles: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    """Beside a video: the seconds from which to which it is meant."""
    fps: tuple[str, ...] = ()
    """Beside a folder of frames: how many a second."""
    options_in_question: bool = False
    absent: tuple[str, ...] = ()
    """Texts that mean that there is nothing."""
    heavy: tuple[str, ...] = ()
    """Columns that are not worth a tag."""
    forms: dict[str, str] = {}
    """What the column of forms may say -> our form."""


class Recognised(NamedTuple):
    """A row map, its name, and why it was taken."""

    map: RowMap
    name: str
    reason: str


class Places(NamedTuple):
    """Where the fields stand in rows of the same columns."""

    fields: Mapping[str, tuple[str, ...]]
    images: tuple[tuple[str, ...], ...]
    """Columns of pictures, those that belong together in one tuple."""
    lettered: Mapping[str, str]
    tags: tuple[str, ...]
    """Columns that nothing else reads."""
    unread: tuple[str, ...] = ()
    """Those of them that may turn out to be options."""
    lost: tuple[str, ...] = ()
    """Those of them that go on with the letters of options after a gap."""
    contexts: tuple[str, ...] = ()
    """Those of them that are called as a text before the question would be."""
    rivals: tuple[tuple[str, ...], ...] = ()
    """Those of them that hold options too, beside a column of options; lettered ones in one tuple."""
    family: tuple[str, ...] = ()
    """Those of them that are called as options in columns of their own would be."""
    told: bool = False
    """Whether rows may say how they are to be asked (limit of tokens, system prompt) or which pages hold the answer."""
    labelled: bool = True
    """Whether rows of these columns may have a video, a group, a round or tags."""


@cache
def presets() -> Mapping[str, RowMap]:
    """Return every row map of the catalog by its name; what one leaves open is as in `plain`."""
    folder = Path(str(files("snellen") / "catalog" / "rows"))
    tables = {path.stem: read_config_file(path) for path in sorted(folder.glob("*.toml"))}
    return {name: convert({**tables[PLAIN], **table}, RowMap, f"row map {name!r}") for name, table in tables.items()}


def choose_map(preset: str, row: Mapping[str, Any]) -> Recognised:
    """Return the named row map, or the one that a file's first row is recognised by."""
    known = presets()
    if preset:
        if preset not in known:
            raise UsageError(f"--preset {not_among(preset, sorted(known), ' is unknown')}")
        return Recognised(known[preset], preset, "of --preset")
    has = {*row, *map(fold_column, row)}
    for name in RECOGNISED:
        reason = _why(known[name], row, has)
        if reason:
            return Recognised(known[name], name, reason)
    return Recognised(known[PLAIN], PLAIN, "")


RECOGNISED = ("messages", "sharegpt", "longbench", "flageval", "vlmevalkit", "lmms-eval", "hub")
"""The order in which presets are tried: those with the most telling columns first."""


def _why(rows: RowMap, row: Mapping[str, Any], has: Collection[str]) -> str:
    """Say which columns tell that a row is of this kind; `has` are their names, folded ones too."""
    columns = next((columns for columns in rows.when if all(name in has for name in columns)), None)
    if columns:
        return f"it has {_and(columns)}"
    struct = next((name for name, value in row.items() if is_picture_struct(value)), None) if rows.structs else None
    return f"column {struct!r} holds pictures as bytes and path" if struct else ""


def _and(names: tuple[str, ...]) -> str:
    noun = "column" if len(names) == 1 else "columns"
    return f"{noun} {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else f"{noun} {names[0]}"


def is_picture_struct(value: Any) -> bool:
    """Tell whether a cell is a picture as the tables of hubs have it, or a list of them."""
    if isinstance(value, list):
        return bool(value) and all(is_picture_struct(one) for one in value)
    return isinstance(value, dict) and bool(value) and value.keys() <= {"bytes", "path"} and "bytes" in value


def with_columns(rows: RowMap, columns: Mapping[str, str]) -> RowMap:
    """Return the map with the user's own columns (`--map field=column`, several as `a,b`) before all others."""
    changes: dict[str, Any] = {}
    for field, column in columns.items():
        name = {"image": "images", "videos": "video", "messages": "dialogue", "turns": "dialogue"}.get(field, field)
        if name not in FIELDS:
            raise UsageError(f"--map {field}={column}: there is no field {not_among(field, [*FIELDS, 'image'])}")
        changes[name] = (column,)
    return msgspec.structs.replace(rows, **changes)


def find_places(columns: tuple[str, ...], rows: RowMap, *, offered: bool) -> Places:
    """Return where the fields stand among these columns; `offered`: options may stand in `option_1`, `option_2` too."""
    fields = {field: _present(getattr(rows, field), columns, field in FOLDED) for field in FIELDS}
    lettered = {} if fields["options"] else lettered_columns(columns) or numbered_options(columns if offered else ())
    # Fields have the first of their columns for good, and all pictures; what another column holds may be a tag too.
    taken = {names[0] for field, names in fields.items() if names and field not in TAGS_TOO}
    taken |= {*fields["images"], *rows.heavy, *lettered.values(), *rows.inside}
    tags = tuple([column for column in columns if column not in taken])
    read_beside = set(chain.from_iterable(fields[field] for field in TAGS_TOO))
    return Places(
        fields,
        images=tuple(filter(None, [_present((name,), columns, folded=True) for name in rows.images])),
        lettered=lettered,
        tags=tags,
        unread=tuple([column for column in tags if column not in read_beside]),
        lost=tuple([column for column in tags if _goes_on(column, lettered)]),
        contexts=tuple(near_columns(tags, telling_names("context"))) if tags else (),
        rivals=() if "," in "".join(rows.options) else _rivals(fields["options"], columns),
        family=() if fields["options"] or lettered else option_family(tags),
        told=any(map(fields.get, ("max_tokens", "system", "evidence_pages"))),
        labelled=bool(tags) or any(map(fields.get, LABELS)),
    )


def _rivals(options: tuple[str, ...], columns: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return what may offer other options than the first column of options does."""
    lettered = tuple(lettered_columns(columns).values()) if options else ()
    return tuple(filter(None, (*((name,) for name in options[1:]), lettered)))


def _goes_on(column: str, lettered: Mapping[str, str]) -> bool:
    """Tell whether a column is written as those of the options are: `D` after `A` and `B`."""
    first = next(iter(lettered.values()), "")
    return bool(first) and column[:-1] == first[:-1] and column[-1:].isalpha() and column[-1:] <= "Z"


def _present(wanted: Iterable[str], columns: tuple[str, ...], folded: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys([column for name in wanted for column in _columns_of(name, columns, folded)]))


def _columns_of(name: str, columns: tuple[str, ...], folded: bool) -> list[str]:
    if NUMBERED in name:
        return _numbered(name, columns)
    if name in columns:
        return [name]
    if "," in name:  # several columns of the user's own
        return [part.strip() for part in name.split(",") if part.strip() in columns]
    near = _folded(columns).get(fold_column(name), []) if folded else []
    return near if len(near) == 1 else []


@lru_cache(maxsize=8)
def _folded(columns: tuple[str, ...]) -> dict[str, list[str]]:
    """Return columns by their folded names: made once, as a row may have a hundred thousand."""
    found: dict[str, list[str]] = {}
    for column in columns:
        found.setdefault(fold_column(column), []).append(column)
    return found


def _numbered(pattern: str, columns: tuple[str, ...]) -> list[str]:
    before, _, after = pattern.partition(NUMBERED)
    form = re.compile(re.escape(before) + r"(\d{1,4})" + re.escape(after))
    found = [(int(match[1]), column) for column in columns if (match := form.fullmatch(column))]
    return [column for _, column in sorted(found)]


BETWEEN_WORDS = re.compile(r"[ -]+")
FAMILY = re.compile(r"(.*?)[ _.:/\[-]?(\d{1,2}|[a-z])\]?", re.IGNORECASE)


@cache
def telling_names(kind: str) -> tuple[str, ...]:
    """Return the names of columns that look like the given thing."""
    return tuple(read_config_file(str(files("snellen") / "catalog/answers/columns.toml"))[kind])


def option_family(columns: Iterable[str]) -> tuple[str, ...]:
    """Return columns that are called as options in columns of their own would be (`opa`, `opb`), or none.

    They must run from a, 0 or 1 without a gap.
    """
    found: dict[str, dict[int, str]] = {}
    for column in columns:
        match = FAMILY.fullmatch(column.strip())
        if match and fold_column(match[1]) in telling_names("option_stems"):
            place = int(match[2]) if match[2].isdecimal() else ord(match[2].lower()) - ord("a")
            found.setdefault(fold_column(match[1]), {})[place] = column
    for places in found.values():
        if len(places) > 1 and min(places) < 2 and max(places) - min(places) == len(places) - 1:
            return tuple(places[place] for place in sorted(places))
    return ()


def near_columns(columns: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Return the columns whose names are among the wanted ones, however they are written."""
    known = {name: place for place, name in enumerate(wanted)}
    folded = {column: fold_column(column) for column in columns}
    return sorted((column for column in folded if folded[column] in known), key=lambda column: known[folded[column]])


@lru_cache(maxsize=1024)
def fold_column(name: str) -> str:
    """Return a column's name without what people write differently: case, space, hyphens."""
    folded = name.strip().casefold()
    return BETWEEN_WORDS.sub("_", folded) if " " in folded or "-" in folded else folded


_BEFORE = r"(?:options?|choices?|opt|选项|選項|選択肢)[ _.:/\[-]?"
LETTER_COLUMN = re.compile(rf"(?:{_BEFORE})?_?([A-Z])\]?", re.IGNORECASE)
NUMBER_COLUMN = re.compile(rf"{_BEFORE}(\d{{1,2}})\]?", re.IGNORECASE)
"""Also as tools flatten lists and objects: `options.A`, `choices/0`, `choices[0]`."""


@lru_cache(maxsize=64)
def lettered_columns(columns: tuple[str, ...]) -> Mapping[str, str]:
    """Return letter -> column, in order, for options in columns of their own (A B C…, choice_A…); none without A and B.

    A column `x` of coordinates or `E` of energies is no option: the letters must run from A without a gap.
    """
    matches = ((LETTER_COLUMN.fullmatch(column), column) for column in columns)
    by_letter = dict(sorted((match[1].upper(), column) for match, column in matches if match))
    gapless = takewhile(lambda letter: letter in by_letter, string.ascii_uppercase)
    lettered = {letter: by_letter[letter] for letter in gapless}
    return MappingProxyType(lettered if len(lettered) > 1 else {})


def numbered_options(columns: Iterable[str]) -> Mapping[str, str]:
    """Return number -> column, in order, for options in `option_1`, `option_2` …, counted from 0 or 1 without a gap."""
    found = {int(match[1]): column for column in columns if (match := NUMBER_COLUMN.fullmatch(column))}
    numbers = sorted(found)
    gapless = len(numbers) > 1 and numbers[0] < 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return {str(number): found[number] for number in numbers} if gapless else {}


FIELD = re.compile(r"\{(\w+)(?::0(\d{1,2}))?\}")


class Cells:
    """Reads cells; None, the empty text, NaN and the format's own words for nothing are nothing."""

    def __init__(self, absent: tuple[str, ...] = ()) -> None:
        self._words = absent
        self._doubtful = frozenset({float, str} if absent else {float})
        """Types of which a value can stand for nothing, beside None and the empty text."""

    def first(self, row: Row, columns: Sequence[str]) -> Any:
        """Return what the first of these columns that has something holds, or None."""
        for column in columns:
            value = row[column]
            if value and type(value) not in self._doubtful:  # most cells
                return value
            if value is not None and value != "" and not (type(value) in self._doubtful and self.is_empty(value)):
                return value
        return None

    def filled(self, row: Row, columns: Sequence[str]) -> list[Any]:
        """Return what these columns hold, those with nothing left out."""
        return [row[column] for column in columns if not self.is_empty(row[column])]

    def is_empty(self, value: Any) -> bool:
        """Tell whether a cell holds nothing."""
        return is_nothing(value) or (isinstance(value, str) and value in self._words)


def fill_name(template: str, row: Mapping[str, Any], where: str) -> str:
    """Return a name with the cells of a row in it: `{id}`, or with zeros before it to so many places, `{id:012}`."""

    def _cell(match: re.Match[str]) -> str:
        if match[1] not in row:
            raise DataError(f"{where}: {template!r} names column {not_among(match[1], list(row), ' is not there')}")
        return str(row[match[1]]).zfill(int(match[2] or 0))

    return FIELD.sub(_cell, template)
