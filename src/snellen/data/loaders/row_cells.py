"""Cells of a row that have something in them, by what a format writes for nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.errors import DataError
from ..files.rows import Row


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
