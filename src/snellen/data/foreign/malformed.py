"""What a harness never writes, refused in one line instead of failing somewhere inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from ...core.errors import DataError
from .damage_counts import Damage

MALFORMED: Final = (AttributeError, TypeError, ValueError, LookupError, RecursionError, OverflowError)
"""How a value of another kind than its place has shows itself: a list where an object belongs, a text for a number."""
LONGEST_REASON = 120
Item = TypeVar("Item")
Row = TypeVar("Row")


@contextmanager
def refuse_malformed(where: str) -> Iterator[None]:
    """Refuse what has another shape than its harness writes, and say where."""
    try:
        yield
    except MALFORMED as error:
        raise DataError(
            f"{where} is not as its harness writes it ({type(error).__name__}: {error}): is it whole?"
        ) from None


def each_well_formed(rows: Iterator[Item], name: str) -> Iterator[Item]:
    """Yield the rows of a reader; the one that has another shape is refused by its number."""
    number = 0
    while True:
        number += 1
        with refuse_malformed(f"{name}: row {number}"):
            row = next(rows, None)
        if row is None:
            return
        yield row


def each_readable(
    records: Iterator[tuple[int, Item]], read: Callable[[int, Item], Iterator[Row]], damage: Damage
) -> Iterator[Row]:
    """Yield the rows that `read` makes of every record; one that it cannot read is counted by its number."""
    for number, record in records:
        try:
            rows = list(read(number, record))
        except (DataError, *MALFORMED) as error:
            damage.add("bad", f"row {number}: {str(error)[:LONGEST_REASON]}")
        else:
            yield from rows
