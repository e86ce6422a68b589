"""Names and cells to the tables of a page: heads, rows, and the frame in which a wide one scrolls."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.markup import Child, Html, tag

DRAWN = tag("span", "drawn", class_="hidden")
"""The head of a column of drawings: there for who listens, not for who looks."""


def head(*names: Child | tuple[Child, str]) -> Html:
    """Return the head of a table; a pair is a name and the class of its column."""
    pairs = [name if isinstance(name, tuple) else (name, None) for name in names]
    return tag("thead", tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in pairs)))


def numbers(cells: Iterable[Child]) -> list[Html]:
    """Return cells set as numbers."""
    return [tag("td", cell, class_="n") for cell in cells]


def row(name: Child, *cells: Child, class_: str | None = None, name_class: str | None = None) -> Html:
    """Return a row that is named by its first cell."""
    return tag("tr", tag("th", name, scope="row", class_=name_class), *cells, class_=class_)


def scrolled(label: str, *table: Child, class_: str = "scroll") -> Html:
    """Return a table in a frame that scrolls by keyboard too; `label` names it for who cannot see it."""
    return tag("div", tag("table", *table), class_=class_, tabindex=0, role="region", aria_label=label)
