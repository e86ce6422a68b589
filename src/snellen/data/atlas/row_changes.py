"""Changes of rows as data: a tag out of an index, words around a question, options out of its text. Nothing runs."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ...core.errors import DataError
from ..files.rows import Row
from ..files.written_lists import parse_literal
from ..loaders.row_options import options_in_text

_MARK = re.compile(r"\s*[(\[]?([A-Za-z])[)\].:：、]\s*")
_SMALL_MARK = re.compile(r"\(([a-z])\)")
_MARKED = re.compile(r"(?:^|(?<=;))\s*([A-J])[.．)]\s*")
"""An option of a text that holds nothing else: each may stand on a line of its own."""
_CLOSE_MARK = re.compile(r";(?=[B-J][.．)])")
"""Where an option follows another without a space: `A. 3;B. 4`."""


def fields_of(value: Any, name: str) -> Any:
    """Return the field of every object of a list, also of one written as text; anything else stays as it is.

    A hub's table may hold such a list as one object of lists.
    """
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
    if isinstance(parsed, dict) and isinstance(parsed.get(name), list):
        return parsed[name]
    if isinstance(parsed, list) and all(isinstance(one, dict) for one in parsed):
        return [one[name] for one in parsed if one.get(name) is not None]
    return value


def unmarked(value: Any) -> Any:
    """Return options without the letters before them: of a list, or of one text in which they stand marked."""
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if isinstance(parsed, list):
        return _without_marks(parsed)
    text = _SMALL_MARK.sub(lambda found: f"({found[1].upper()})", _CLOSE_MARK.sub("; ", str(value)))
    found = options_in_text(text) or options_in_text(_MARKED.sub(r"\n\1. ", text))
    return list(found.options) if found else None


def _without_marks(options: list[Any]) -> list[Any]:
    """Return texts without their marks A, B, C …; as they are where those are not all there in order."""
    marks = [_MARK.match(str(one)) for one in options]
    letters = "".join(mark[1].upper() if mark else " " for mark in marks)
    if not letters or letters != string.ascii_uppercase[: len(letters)]:
        return options
    return [str(one)[mark.end() :].strip() for one, mark in zip(options, marks, strict=True) if mark]


def onward_from(value: Any, marker: str) -> Any:
    """Return a text from a marker on, or every text of a list: a path without what stood before it elsewhere."""
    if isinstance(value, list):
        return [onward_from(one, marker) for one in value]
    return value[value.index(marker) :] if isinstance(value, str) and marker in value else value


def nth_of(value: Any, size: int, first: int, number: int) -> int:
    """Return in which group of `size` consecutive rows a row stands, by its number, which begins at `first`."""
    try:
        return (int(value) - first) // size
    except (TypeError, ValueError):
        raise DataError(f"record {number}: {value!r} is no whole number, so it has no group") from None


def last_of(value: Any) -> Any:
    """Return the last member of a list, also of one written as text; of anything else, itself."""
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    return parsed[-1] if isinstance(parsed, list) and parsed else value


def told_turns(questions: Any, answers: Any) -> Any:
    """Return the questions of a dialogue with the answers to all but the last, as one text; a single one as it is."""
    asked = questions if isinstance(questions, list) else [questions]
    if len(asked) < 2:
        return asked[0] if asked else None
    said = answers if isinstance(answers, list) else [answers]
    pairs = zip(asked[:-1], said, strict=False)
    turns = [f"Question: {question}\nAnswer: {answer}" for question, answer in pairs]
    return "\n".join([*turns, f"Question: {asked[-1]}"])


class RowChange(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One change: the column `set` is made of the column `of` (or of `words` with columns in braces)."""

    set: str
    of: str = ""
    """Where the value comes from; empty: from the column itself."""
    words: str | None = None
    """`Hint: {hint}`: a text with the row's columns."""
    when: str = ""
    """Only rows that have something in this column."""
    without: str = ""
    """Only rows that have nothing in this column."""
    values: dict[str, str] = {}
    """A value -> what it becomes; one that is not named stays, or becomes `otherwise`."""
    otherwise: str | None = None
    pattern: str = ""
    """The first group of this pattern in the value; a value without it is refused."""
    split: str = ""
    part: int = 0
    """The part between separators, from 0."""
    modulo: int = 0
    key: str = ""
    """The field of an object, or of an object written as text."""
    swap: str = ""
    by: str = ""
    """A text, with the row's columns in braces, and what takes its place wherever it stands in the value."""
    case: str = ""
    """`capitalize` as Python has it: the rest becomes lower case."""
    options_in_text: bool = False
    """The options that stand marked in the text; the text itself stays, and options the row has are kept."""
    field: str = ""
    """The field of every object of a list."""
    onward: str = ""
    """The text from here on, or every text of a list: paths as they were elsewhere."""
    every: int = 0
    """Which group of so many consecutive rows it is, where the value numbers the rows from `first`."""
    first: int = 0
    turns: str = ""
    """The value is the questions of a dialogue, this column the answers to all but the last: one text of them."""
    last: bool = False
    """The last member of a list."""
    joined: str = ""
    """The members of a list as one text, with this between them."""
    unmark: bool = False
    """Options without their letters: of a list `(A) …`, or of one text in which they stand marked."""


def _raise(row: str, error: DataError) -> None:
    raise error


def changed_rows(
    changes: Sequence[RowChange],
    rows: Iterator[tuple[int, Row]],
    refuse: Callable[[str, DataError], None] = _raise,
) -> Iterator[tuple[int, Row]]:
    """Yield every row with all changes made, in their order; `refuse` is told of one that a change does not fit."""
    for number, row in rows:
        changed = dict(row)
        try:
            for change in changes:
                _apply(change, changed, number)
        except DataError as error:
            refuse(f"record {number}", error)
            continue
        yield number, changed


def _apply(change: RowChange, row: Row, number: int) -> None:
    if not _is_meant(change, row):
        return
    if change.options_in_text:
        _take_options(change, row)
        return
    source = change.of or change.set
    if change.words is None and source not in row:
        return
    value = _worded(change.words, row, number) if change.words is not None else row[source]
    value = told_turns(value, row.get(change.turns)) if change.turns else value
    value = str(value).replace(_worded(change.swap, row, number), change.by) if change.swap else value
    value = _reshaped(change, value, number)
    for step in STEPS:
        value = step(change, value, number)
    row[change.set] = value


def _reshaped(change: RowChange, value: Any, number: int) -> Any:
    value = fields_of(value, change.field) if change.field else value
    value = last_of(value) if change.last else value
    value = change.joined.join(map(str, value)) if change.joined and isinstance(value, list) else value
    value = onward_from(value, change.onward) if change.onward else value
    value = nth_of(value, change.every, change.first, number) if change.every else value
    return unmarked(value) if change.unmark else value


def _is_meant(change: RowChange, row: Row) -> bool:
    """Tell whether a row has what a change wants, and lacks what it must not have."""
    wanted = not change.when or _has(row.get(change.when))
    return wanted and not (change.without and _has(row.get(change.without)))


def _has(value: Any) -> bool:
    return value is not None and str(value).strip() not in ("", "nan", "[]")


def _worded(words: str, row: Row, number: int) -> str:
    try:
        return words.format_map(row)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise DataError(f"record {number}: {words!r} names a column that the row has not") from None


def _valued(change: RowChange, value: Any, number: int) -> Any:
    if not change.values:
        return value
    return change.values.get(str(value), value if change.otherwise is None else change.otherwise)


def _matched(change: RowChange, value: Any, number: int) -> Any:
    if not change.pattern:
        return value
    found = re.search(change.pattern, str(value))
    if found is None:
        raise DataError(f"record {number}: {value!r} is not of the form {change.pattern}")
    return found[1]


def _split_part(change: RowChange, value: Any, number: int) -> Any:
    if not change.split:
        return value
    parts = str(value).split(change.split)
    if change.part >= len(parts):
        raise DataError(f"record {number}: {value!r} has no part {change.part} between {change.split!r}")
    return parts[change.part]


def _remainder(change: RowChange, value: Any, number: int) -> Any:
    if not change.modulo:
        return value
    try:
        return str(int(value) % change.modulo)
    except (TypeError, ValueError):
        raise DataError(f"record {number}: {value!r} is no whole number, so it has no group") from None


def _keyed(change: RowChange, value: Any, number: int) -> Any:
    if not change.key:
        return value
    table = parse_literal(value) if isinstance(value, str) else value
    return table.get(change.key) if isinstance(table, dict) else None


def _cased(change: RowChange, value: Any, number: int) -> Any:
    return str(value).capitalize() if change.case == "capitalize" else value


def _take_options(change: RowChange, row: Row) -> None:
    """Give a row the options that stand in a text of it, where it has none of its own."""
    if _has(row.get(change.set)) or _has(row.get("A")):
        return
    found = options_in_text(str(row.get(change.of) or ""))
    if found is not None:
        row[change.set] = list(found.options)


STEPS: tuple[Callable[[RowChange, Any, int], Any], ...] = (
    _keyed,
    _matched,
    _split_part,
    _remainder,
    _valued,
    _cased,
)
