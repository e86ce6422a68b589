"""Text and a page style into placed lines: wrapping, columns and the box of every line, nothing drawn yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from .fonts import TextFont
from .page_style import PageStyle

MARK = "⏎"
_IDEOGRAPH = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_OPENING = "「『（【〈《〔［｛“‘"
_CLOSING = "、。，．：；！？」』）】〉》〕］｝”’ー々…" + MARK
_SPACE = " \\t\\x0b\\f\u3000"
_WORD = f"[^{_SPACE}{_IDEOGRAPH}{_OPENING}{_CLOSING}]+"
_UNIT = re.compile(
    f"(?P<space>[{_SPACE}]+)|[{_OPENING}]*(?:[{_IDEOGRAPH}]|{_WORD})[{_CLOSING}]*|[{_OPENING}{_CLOSING}]+"
)
"""What may not be torn apart: a word or one ideograph, with the brackets and marks that must stay beside it."""


Word: TypeAlias = tuple[str, int, int]


class Line(NamedTuple):
    """One line on a page. `words` are (text, x in the line, character offset); offsets count in the laid-out text."""

    page: int
    column: int
    x: int
    y: int
    width: int
    height: int
    start: int
    end: int
    words: tuple[Word, ...]

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom of the inked part in pixels."""
        return self.x + (self.words[0][1] if self.words else 0), self.y, self.x + self.width, self.y + self.height


class _Row(NamedTuple):
    words: list[Word]
    start: int
    end: int
    width: int
    last: bool


def normalise(text: str, newlines: str) -> str:
    """Apply a newline policy; every character keeps its place, so offsets stay true. Expects `\\n` newlines."""
    if newlines == "space":
        return text.replace("\n", " ")
    if newlines == "mark":
        return text.replace("\n", MARK)
    if newlines == "paragraph":
        return re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return text


def clean_text(text: str) -> str:
    """Return text with `\\n` newlines only and without a byte-order mark: what all offsets count in."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def lay_out(text: str, style: PageStyle, font: TextFont) -> Iterator[list[Line]]:
    """Yield the lines of one page after another; an empty text gives one empty page."""
    page_width, page_height = style.page_px
    margin, leading = style.pixels(style.margin_pt), style.pixels(style.leading_pt)
    gutter = style.pixels(style.gutter_pt) if style.columns > 1 else 0.0
    width = int((page_width - 2 * margin - gutter * (style.columns - 1)) / style.columns)
    rows = max(1, int((page_height - 2 * margin) / leading))
    page: list[Line] = []
    number = 0
    for index, row in enumerate(_rows(normalise(text, style.newlines), width, style.tab_width, font)):
        slot = index % (rows * style.columns)
        if index and slot == 0:
            yield page
            page, number = [], number + 1
        column, line = divmod(slot, rows)
        words, row_width = _aligned(row, width, style.align)
        left, top = round(margin + column * (width + gutter)), round(margin + line * leading)
        page.append(Line(number, column, left, top, row_width, round(leading), row.start, row.end, words))
    yield page


def _rows(text: str, width: int, tab_width: int, font: TextFont) -> Iterator[_Row]:
    start = 0
    for paragraph in text.split("\n"):
        yield from _wrap(paragraph, start, width, tab_width * max(1, font.advance(" ")), font)
        start += len(paragraph) + 1


def _wrap(paragraph: str, base: int, width: int, tab_px: int, font: TextFont) -> Iterator[_Row]:
    """Break one paragraph greedily. Spaces at its start are indentation; spaces at a break vanish."""
    words: list[Word] = []
    x = inked = start = end = 0
    advance = font.advance
    for match in _UNIT.finditer(paragraph):
        unit = match.group()
        if match.lastgroup == "space":
            if words or not start:
                x = _after_space(unit, x, tab_px, font)
            continue
        step = advance(unit)
        if x + step > width and words:
            yield _Row(words, base + start, base + end, inked, False)
            words, x, start = [], 0, match.start()
        offset = match.start()
        if step > width - x:
            *full, (unit, offset) = _split(unit, offset, max(1, width - x), width, font)
            for piece, at in full:
                yield _Row([(piece, x, base + at)], base + start, base + at + len(piece), x + advance(piece), False)
                words, x, start = [], 0, at + len(piece)
            step = advance(unit)
        words.append((unit, x, base + offset))
        x += step
        inked, end = x, offset + len(unit)
    yield _Row(words, base + start, base + len(paragraph), inked if words else 0, True)


def _after_space(space: str, x: int, tab_px: int, font: TextFont) -> int:
    for character in space:
        x = (x // tab_px + 1) * tab_px if character == "\t" else x + font.advance(character)
    return x


def _split(unit: str, offset: int, first_width: int, width: int, font: TextFont) -> list[tuple[str, int]]:
    """Cut a token that no line can hold into pieces of at most a line, each with its offset."""
    pieces: list[tuple[str, int]] = []
    begin = used = 0
    room = first_width
    for index, character in enumerate(unit):
        step = font.advance(character)
        if used + step > room and index > begin:
            pieces.append((unit[begin:index], offset + begin))
            begin, used, room = index, 0, width
        used += step
    return [*pieces, (unit[begin:], offset + begin)]


def _justified(row: _Row, slack: int) -> tuple[Word, ...]:
    gaps = len(row.words) - 1
    return tuple((word, x + slack * index // gaps, at) for index, (word, x, at) in enumerate(row.words))


def _aligned(row: _Row, width: int, align: str) -> tuple[tuple[Word, ...], int]:
    """Return the words where the alignment puts them, and the right edge they then reach."""
    slack = width - row.width
    ragged = align == "left" or (align == "justify" and (row.last or len(row.words) < 2))
    if ragged or not row.words or slack <= 0:
        return tuple(row.words), row.width
    if align == "justify":
        return _justified(row, slack), width
    shift = slack if align == "right" else slack // 2
    return tuple((word, x + shift, at) for word, x, at in row.words), row.width + shift
