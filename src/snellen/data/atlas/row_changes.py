"""Changes of rows: words around a question, one value for another, and named functions where that is not enough.

A card says which column is made of which, and names a function of `FUNCTIONS` for whatever needs code; nothing of a
card runs itself.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from msgspec import Struct

from ...core.errors import DataError, not_among
from ..files.records import as_list, parse_literal
from ..files.rows import Row
from ..loaders.option_texts import options_in_text

_MARK = re.compile(r"\s*[(\[]?([A-Za-z])[)\].:：、]\s*")
_SMALL_MARK = re.compile(r"\(([a-z])\)")
_MARKED = re.compile(r"(?:^|(?<=;))\s*([A-J])[.．)]\s*")
"""An option of a text that holds nothing else: each may stand on a line of its own."""
_CLOSE_MARK = re.compile(r";(?=[B-J][.．)])")
"""Where an option follows another without a space: `A. 3;B. 4`."""


def members(value: Any, row: Row, *, key: str) -> Any:
    """Return the field of every object of a list, also of one written as text; anything else stays as it is.

    A hub's table may hold such a list as one object of lists.
    """
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
    if isinstance(parsed, dict) and isinstance(parsed.get(key), list):
        return parsed[key]
    if isinstance(parsed, list) and all(isinstance(one, dict) for one in parsed):
        return [one[key] for one in parsed if one.get(key) is not None]
    return value


def unmarked(value: Any, row: Row) -> Any:
    """Return options without the letters before them: of a list, or of one text in which they stand marked."""
    parsed = as_list(value)
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


def onward(value: Any, row: Row, *, marker: str) -> Any:
    """Return a text from a marker on, or every text of a list: a path without what stood before it elsewhere."""
    if isinstance(value, list):
        return [onward(one, row, marker=marker) for one in value]
    return value[value.index(marker) :] if isinstance(value, str) and marker in value else value


def group(value: Any, row: Row, *, size: int, first: int = 0) -> int:
    """Return in which group of `size` consecutive rows a row stands, by its number, which begins at `first`."""
    return (_whole(value) - first) // size


def remainder(value: Any, row: Row, *, of: int) -> str:
    """Return what is left of a whole number after division."""
    return str(_whole(value) % of)


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r} is no whole number, so it has no group") from None


def last(value: Any, row: Row) -> Any:
    """Return the last member of a list, also of one written as text; of anything else, itself."""
    parsed = as_list(value)
    return parsed[-1] if isinstance(parsed, list) and parsed else value


def dialogue(questions: Any, row: Row, *, answers: str) -> Any:
    """Return the questions of a dialogue with the answers (a column) to all but the last, as one text."""
    asked = questions if isinstance(questions, list) else [questions]
    if len(asked) < 2:
        return asked[0] if asked else None
    replies = row.get(answers)
    said = replies if isinstance(replies, list) else [replies]
    pairs = zip(asked[:-1], said, strict=False)
    turns = [f"Question: {question}\nAnswer: {answer}" for question, answer in pairs]
    return "\n".join([*turns, f"Question: {asked[-1]}"])


def joined(value: Any, row: Row, *, between: str) -> Any:
    """Return the members of a list as one text; anything else as it is."""
    return between.join(map(str, value)) if isinstance(value, list) else value


def member(value: Any, row: Row, *, key: str) -> Any:
    """Return the field of an object, or of an object written as text."""
    table = parse_literal(value) if isinstance(value, str) else value
    return table.get(key) if isinstance(table, dict) else None


def matched(value: Any, row: Row, *, pattern: str) -> str:
    """Return the first group of a pattern in the value; a value without it is refused."""
    found = re.search(pattern, str(value))
    if found is None:
        raise DataError(f"{value!r} is not of the form {pattern}")
    return found[1]


def part(value: Any, row: Row, *, between: str, number: int) -> str:
    """Return the part between separators, from 0."""
    parts = str(value).split(between)
    if number >= len(parts):
        raise DataError(f"{value!r} has no part {number} between {between!r}")
    return parts[number]


def replaced(value: Any, row: Row, *, text: str, new: str) -> str:
    """Return the value with `new` wherever `text` stood, in which the row's columns stand in braces."""
    return str(value).replace(_worded(text, row), new)


def capitalized(value: Any, row: Row) -> str:
    """Return a text as Python capitalizes it: the rest becomes lower case."""
    return str(value).capitalize()


def marked_options(value: Any, row: Row) -> Any:
    """Return the options that stand marked in a text; None where there are none, or the row has columns A, B …"""
    found = None if _has(row.get("A")) else options_in_text(str(value or ""))
    return list(found.options) if found else None


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(capitalized, dialogue, group, joined, last, marked_options, matched, member, members),
        *(onward, part, remainder, replaced, unmarked),
    )
}
"""What a card may name by `by`: a function of a value and its row, told what `using` says."""
KEEPING = (marked_options,)
"""Functions that fill a column where it is empty; what stands there stays."""


class RowChange(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One change: the column `set` is made of the column `of` (or of `words` with columns in braces)."""

    set: str
    of: str = ""
    """Where the value comes from; empty: from the column itself."""
    words: str | None = None
    """`Hint: {hint}`: a text with the row's columns."""
    by: str = ""
    """The function of `FUNCTIONS` that makes the value of it."""
    using: dict[str, Any] = {}
    """What the function is told beside the value."""
    values: dict[str, str] = {}
    """A value -> what it becomes; one that is not named stays, or becomes `otherwise`."""
    otherwise: str | None = None
    when: str = ""
    """Only rows that have something in this column."""
    without: str = ""
    """Only rows that have nothing in this column."""

    def __post_init__(self) -> None:
        if not self.by:
            return
        if self.by not in FUNCTIONS:
            raise ValueError(f"by = {not_among(self.by, sorted(FUNCTIONS), ' is no function of rows')}")
        try:
            signature(FUNCTIONS[self.by]).bind(None, None, **self.using)
        except TypeError as error:
            raise ValueError(f"using of {self.by}: {error}") from None


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
                _apply(change, changed)
        except DataError as error:
            refuse(f"record {number}", DataError(f"record {number}: {error}"))
            continue
        yield number, changed


def _apply(change: RowChange, row: Row) -> None:
    if not _is_meant(change, row):
        return
    source, function = change.of or change.set, FUNCTIONS.get(change.by)
    if function in KEEPING and _has(row.get(change.set)):
        return
    if change.words is None and source not in row:
        return
    value = row[source] if change.words is None else _worded(change.words, row)
    if function is not None:
        value = function(value, row, **change.using)
    if function in KEEPING and value is None:
        return
    if change.values:
        value = change.values.get(str(value), value if change.otherwise is None else change.otherwise)
    row[change.set] = value


def _is_meant(change: RowChange, row: Row) -> bool:
    """Tell whether a row has what a change wants, and lacks what it must not have."""
    wanted = not change.when or _has(row.get(change.when))
    return wanted and not (change.without and _has(row.get(change.without)))


def _has(value: Any) -> bool:
    return value is not None and str(value).strip() not in ("", "nan", "[]")


def _worded(words: str, row: Row) -> str:
    try:
        return words.format_map(row)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise DataError(f"{words!r} names a column that the row has not") from None
