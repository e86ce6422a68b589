"""Cells of a row that have something in them, by what a format writes for nothing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...core.errors import DataError, not_among
from ...core.ids import content_hash
from ..files.rows import Row
from .row_map import Places

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
        if value is None or value == "":
            return True
        # NaN stands for an empty cell in tables that came through pandas.
        return value in self._words if isinstance(value, str) else isinstance(value, float) and math.isnan(value)


class RowNames:
    """Gives rows their ids: what their column says, or a hash of what they hold."""

    def __init__(self, cells: Cells, note: Callable[[str, str], None], *, joined: bool) -> None:
        self._cells, self._note = cells, note
        self._joined = joined
        """Whether the user named several columns that are one id together."""
        self._hashed: Counter[str] = Counter()

    def of_row(self, row: Row, places: Places, more: tuple[Any, ...], where: str) -> str:
        """Return the id of a row."""
        columns = places.fields["id"]
        value = self._cells.first(row, columns)
        if self._joined and len(columns) > 1:
            value = "/".join(str(row[column]) for column in columns)
        if value is None:
            if any(str(row[column]).isspace() for column in columns):
                raise DataError(f"{where} has an empty id")
            return self._hash(row, places, more, where)
        text = str(value)
        if not text.strip():
            raise DataError(f"{where} has an empty id")
        return text

    def _hash(self, row: Row, places: Places, more: tuple[Any, ...], where: str) -> str:
        """Return an id by what a row holds; where that is another's too, its question by whatever name counts.

        A row that is another's twin in all of this is a question of its own, as authors count theirs.
        """
        known = [row.get(name) for name in ("question", "image", "images", "options")]
        other = [row[name] for group in places.images for name in group if name not in ("image", "images")]
        parts = [*known, *([other] if other else []), *more]
        made = content_hash(parts, 12)
        if made in self._hashed and "question" not in row:
            asked = [row[name] for name in (*places.fields["question"], *places.fields["options"])]
            made = content_hash([*parts, asked], 12)
        self._hashed[made] += 1
        if self._hashed[made] == 1:
            return made
        self._note("rows without an id that ask what another row asks: each counts, whatever their answers", where)
        return f"{made}-{self._hashed[made]}"


def page_numbers(value: Any) -> list[int] | None:
    """Return the pages that a cell names: a number, a list of them, or either as a text (`[3, 4]`, `3;4`).

    None where it names something else, such as a page 0: only who leaves pages out needs to know.
    """
    if value is None:
        return []
    cells = value if isinstance(value, list | tuple) else re.split(r"[,;\s]+", str(value).strip().strip("[]()"))
    try:
        numbers = [float(cell) for cell in cells if cell != ""]
    except (TypeError, ValueError):
        return None
    return sorted(map(int, set(numbers))) if all(one.is_integer() and one > 0 for one in numbers) else None


def token_limit(value: Any, where: str) -> int | None:
    """Return a row's own limit of tokens: a whole number above 0, also as sheets write it; None for none or 0."""
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not number.is_integer() or number < 0:
        raise DataError(f"{where}: max_tokens {value!r} is not a whole number above 0")
    return int(number) or None


def round_number(value: Any, where: str) -> int:
    """Return the number of a dialogue's round."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: round {value!r} is not a whole number") from None


def tag_value(value: Any) -> str | int | float | bool | None:
    """Return a cell as a tag; what is no single value, as JSON."""
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()


def fill_name(template: str, row: Mapping[str, Any], where: str) -> str:
    """Return a name with the cells of a row in it: `{id}`, or with zeros before it to so many places, `{id:012}`."""

    def _cell(match: re.Match[str]) -> str:
        if match[1] not in row:
            raise DataError(f"{where}: {template!r} names column {not_among(match[1], list(row), ' is not there')}")
        return str(row[match[1]]).zfill(int(match[2] or 0))

    return FIELD.sub(_cell, template)
