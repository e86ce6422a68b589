"""Which column is which: a row map is data (catalog/rows), found by a file's columns or named with `--preset`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ...core.config import convert, read_config_file
from ...core.errors import UsageError, not_among
from .answers import lettered_columns, numbered_options
from .unused_columns import fold_column, near_columns, option_family, telling_names

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
    fields = {field: tuple(_present(getattr(rows, field), columns, field in FOLDED)) for field in FIELDS}
    lettered = {} if fields["options"] else lettered_columns(columns) or numbered_options(columns if offered else ())
    used = {*_taken(fields), *rows.heavy, *lettered.values(), *rows.inside}
    images = _pictures_by_name(columns, rows)
    tags = _without(columns, used)
    unread = _without(tags, set(chain.from_iterable(fields[field] for field in TAGS_TOO)))
    lost = tuple(column for column in tags if _goes_on(column, lettered))
    labelled = bool(tags) or any(map(fields.get, LABELS))
    contexts = tuple(near_columns(tags, telling_names("context")))
    family = () if fields["options"] or lettered else option_family(tags)
    told = any(map(fields.get, ("max_tokens", "system", "evidence_pages")))
    rivals = () if "," in "".join(rows.options) else _rivals(fields["options"], columns)
    return Places(fields, images, lettered, tags, unread, lost, contexts, rivals, family, told, labelled)


def _rivals(options: tuple[str, ...], columns: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return what may offer other options than the first column of options does."""
    lettered = tuple(lettered_columns(columns).values()) if options else ()
    return tuple(filter(None, (*((name,) for name in options[1:]), lettered)))


def _taken(fields: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the columns that fields have for good: the first of each, and all pictures."""
    first = {names[0] for field, names in fields.items() if names and field not in TAGS_TOO}
    return first | set(fields["images"])


def _pictures_by_name(columns: tuple[str, ...], rows: RowMap) -> tuple[tuple[str, ...], ...]:
    """Return the columns of pictures that are there, by the name that the map has for them."""
    return tuple(filter(None, (tuple(_present((name,), columns, folded=True)) for name in rows.images)))


def _goes_on(column: str, lettered: Mapping[str, str]) -> bool:
    """Tell whether a column is written as those of the options are: `D` after `A` and `B`."""
    first = next(iter(lettered.values()), "")
    return bool(first) and column[:-1] == first[:-1] and column[-1:].isalpha() and column[-1:] <= "Z"


def _without(columns: tuple[str, ...], used: Collection[str]) -> tuple[str, ...]:
    return tuple(column for column in columns if column not in used)


def _present(wanted: Iterable[str], columns: tuple[str, ...], folded: bool) -> Iterable[str]:
    return dict.fromkeys(chain.from_iterable(_columns_of(name, columns, folded) for name in wanted))


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
