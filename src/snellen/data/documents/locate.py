"""Planted documents and a page style into positions: page, line, box, row and column of every needle, and marks to draw."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence

from msgspec import Struct

from ...core.ids import rng
from .fonts import TextFont
from .layout import Line, lay_out
from .needles import COLOURS, Needle, Statement
from .overlays import Box, Overlay, overlay_size
from .plant import Planted
from .render import Accent, span_boxes
from .style import PageStyle

_TRIES = 200


class Located(Struct):
    """What the renderer adds to a document's plain text."""

    accents: list[Accent]
    overlays: dict[int, list[Overlay]]
    """By page number, from 1."""
    pages: int


def locate(planted: Planted, style: PageStyle, font: TextFont) -> Located:
    """Lay the document out, write every position into its statements, and choose places for visual marks."""
    pages = list(lay_out(planted.text, style, font))
    starts = [page[0].start if page else 0 for page in pages]
    located = Located([], {}, len(pages))
    blocked: dict[int, list[Box]] = {}
    for needle in planted.needles:
        for statement in needle.statements:
            if statement.text:
                _locate_text(statement, pages, starts, style, font, blocked)
                if statement.kind == "colour":
                    located.accents.append(_accent(needle, statement))
    for needle in planted.needles:
        for statement in needle.statements:
            if not statement.text:
                _place_mark(planted, needle, statement, located, blocked, style, font)
        _fill_question(needle)
    return located


def _locate_text(
    statement: Statement, pages: Sequence[Sequence[Line]], starts: list[int], style: PageStyle, font: TextFont, blocked: dict[int, list[Box]]
) -> None:
    start, end = statement.char_start or 0, statement.char_end or 0
    first = max(0, bisect.bisect_right(starts, start) - 1)
    for number in range(first, min(first + 2, len(pages))):
        for line, box in span_boxes(pages[number], start, end, font):
            blocked.setdefault(number + 1, []).append(box)
            if statement.page is None:
                statement.page, statement.line, statement.bbox = number + 1, pages[number].index(line) + 1, box
                _set_place(statement, box, style)


def _set_place(statement: Statement, box: Box, style: PageStyle) -> None:
    width, height = style.page_px
    statement.row = round((box[1] + box[3]) / 2 / height, 4)
    statement.column = round((box[0] + box[2]) / 2 / width, 4)


def _accent(needle: Needle, statement: Statement) -> Accent:
    start = (statement.char_start or 0) + statement.text.index(statement.value)
    return Accent(start, start + len(statement.value), COLOURS[needle.fields["colour"]])


def _place_mark(
    planted: Planted, needle: Needle, statement: Statement, located: Located, blocked: dict[int, list[Box]], style: PageStyle, font: TextFont
) -> None:
    page = min(located.pages, int(statement.depth * located.pages) + 1)
    page = _page_without(statement.kind, page, located)
    box = _free_box(statement.kind, blocked.setdefault(page, []), style, font, rng(planted.seed, planted.id, statement.id, "mark"))
    blocked[page].append(box)
    labels = (needle.fields.get("row", ""), needle.fields.get("column", ""))
    located.overlays.setdefault(page, []).append(Overlay(statement.kind, statement.value, box, labels))
    statement.page, statement.bbox = page, box
    statement.char_depth = statement.token_depth = round((page - 0.5) / located.pages, 4)
    needle.fields["page"] = str(page)
    _set_place(statement, box, style)


def _page_without(kind: str, wanted: int, located: Located) -> int:
    """Return the page nearest the wanted one that has no mark of this kind yet: "the stamp on page 3" must be one."""
    taken = {number for number, marks in located.overlays.items() if any(mark.kind == kind for mark in marks)}
    free = [number for number in range(1, located.pages + 1) if number not in taken]
    return min(free, key=lambda number: (abs(number - wanted), number)) if free else wanted


def _free_box(kind: str, blocked: Sequence[Box], style: PageStyle, font: TextFont, generator: random.Random) -> Box:
    """Find a place that covers no planted sentence; margin marks stand at the bottom edge, sideways ones at the right."""
    page_width, page_height = style.page_px
    width, height = overlay_size(kind, font)
    width, height = min(width, page_width), min(height, page_height)
    box = (0, 0, width, height)
    for _ in range(_TRIES):
        x, y = generator.randint(0, page_width - width), generator.randint(0, page_height - height)
        if kind == "margin":
            y = page_height - height
        if kind == "rotated":
            x = page_width - width
        box = (x, y, x + width, y + height)
        if not any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in blocked):
            return box
    return box


def _fill_question(needle: Needle) -> None:
    for name, value in needle.fields.items():
        needle.query.question = needle.query.question.replace(f"{{{name}}}", value)
