"""A console that cuts no name and no number: lines stay whole, tables fold words and grow rather than shorten."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

FOLDED_TO = 14
"""A column of words is folded to so many characters at least."""
UNLIMITED = 100_000


class WholeConsole(Console):
    """Prints to a terminal as it is wide, to a pipe or file as wide as the text needs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; a table takes the width it needs, a text is left to the wrapping of the terminal itself."""
        if len(objects) != 1 or not isinstance(objects[0], Table):
            super().print(*objects, **{"soft_wrap": True, **options})
            return
        given = self.width
        self.width = _fit(objects[0], self)
        super().print(*objects, **options, crop=False)
        self.width = given

    def on_broken_pipe(self) -> None:
        """Pass it on: whoever read our output has seen enough, which is no failure (rich would exit with 1)."""
        raise BrokenPipeError


def _fit(table: Table, console: Console) -> int:
    """Fold the widest columns of words until the table fits, and return the width it then needs."""
    for column in table.columns:
        column.no_wrap = column.no_wrap or column.justify == "right"
        column.overflow = "fold"
    needed = _width(table, console)
    if not console.is_terminal:
        return needed
    excess = needed - console.width
    words = [
        (max(map(_longest, (column.header, *column.cells))), column) for column in table.columns if not column.no_wrap
    ]
    for longest, column in sorted(words, key=lambda pair: -pair[0]):
        folded = min(excess, longest - FOLDED_TO)
        if folded > 0:
            column.max_width = longest - folded
            excess -= folded
    return max(min(needed, console.width), _width(table, console))


def _width(table: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(max_width=UNLIMITED), table).maximum


def _longest(cell: Any) -> int:
    return max((cell_len(line) for line in str(cell).splitlines()), default=0)
