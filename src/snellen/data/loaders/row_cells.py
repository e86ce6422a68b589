"""Cells of a row that have something in them, by what a format writes for nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...core.errors import DataError, not_among
from ..files.rows import Row

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
