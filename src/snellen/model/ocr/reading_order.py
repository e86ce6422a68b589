"""Pieces of text with boxes -> lines in reading order: slant removed, columns one after the other, rows joined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

Corner = tuple[float, float]

COLUMN_ROWS = 3
"""A column has at least this many rows; fewer are a heading or a number at the margin."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text and the corners of its box, clockwise from the upper left, in px."""

    text: str
    corners: tuple[Corner, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A piece in upright coordinates."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    @property
    def height(self) -> float:
        """Return the height in px."""
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """Return the middle of the height."""
        return (self.top + self.bottom) / 2


def lines_of(pieces: Sequence[Piece]) -> list[str]:
    """Return the text line by line, as one would read it."""
    boxes = upright(pieces)
    return [" ".join(box.text for box in row) for column in columns_of(boxes) for row in rows_of(column)]


def upright(pieces: Sequence[Piece]) -> list[Box]:
    """Turn all boxes by the slant of the page, the median over its wider pieces."""
    if not pieces:
        return []
    slants = [_slant(piece) for piece in pieces if len(piece.text) > 2] or [0.0]
    angle = median(slants)
    return [_turn(piece, angle) for piece in pieces]


def _slant(piece: Piece) -> float:
    (x0, y0), (x1, y1) = piece.corners[0], piece.corners[1]
    return math.atan2(y1 - y0, x1 - x0)


def _turn(piece: Piece, angle: float) -> Box:
    """Turn the middle of the box; keep its own width and height."""
    x, y = (sum(values) / len(values) for values in zip(*piece.corners, strict=True))
    across = x * math.cos(angle) + y * math.sin(angle)
    down = -x * math.sin(angle) + y * math.cos(angle)
    corners = piece.corners
    width, height = math.dist(corners[0], corners[1]), math.dist(corners[1], corners[2])
    return Box(piece.text, across - width / 2, across + width / 2, down - height / 2, down + height / 2)


def columns_of(boxes: Sequence[Box]) -> list[list[Box]]:
    """Split where a clear gutter runs down the page with enough rows on both sides."""
    if len(boxes) < 2 * COLUMN_ROWS:
        return [list(boxes)] if boxes else []
    gutter = median(box.height for box in boxes)
    ordered = sorted(boxes, key=lambda box: box.left)
    reach, groups = ordered[0].right, [[ordered[0]]]
    for box in ordered[1:]:
        if box.left > reach + gutter:
            groups.append([])
        groups[-1].append(box)
        reach = max(reach, box.right)
    return groups if min(len(rows_of(group)) for group in groups) >= COLUMN_ROWS else [list(boxes)]


def rows_of(boxes: Sequence[Box]) -> list[list[Box]]:
    """Gather boxes whose middle lies within another's height into rows, each from left to right."""
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.middle):
        if rows and _same_row(rows[-1], box):
            rows[-1].append(box)
        else:
            rows.append([box])
    return [sorted(row, key=lambda box: box.left) for row in rows]


def _same_row(row: Sequence[Box], box: Box) -> bool:
    middle = sum(other.middle for other in row) / len(row)
    height = min(max(other.height for other in row), box.height)
    return abs(box.middle - middle) < height / 2
