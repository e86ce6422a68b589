"""Text and a page style into placed lines: wrapping, columns and the box of every line, nothing drawn yet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from .bidi import base_level, bidi_levels, is_right_to_left, visual_order
from .fonts import TextFont, clusters
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
    """One line on a page. `words` are (text, x in the line, character offset); offsets count in the laid-out text.

    Words stand in the order of the text; `leftward` names those (by place) that run from right to left.
    """

    page: int
    column: int
    x: int
    y: int
    width: int
    height: int
    start: int
    end: int
    words: tuple[Word, ...]
    leftward: frozenset[int] = frozenset()

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom of the inked part in pixels."""
        left = min((x for _, x, _ in self.words), default=0)
        return self.x + left, self.y, self.x + self.width, self.y + self.height


class _Row(NamedTuple):
    words: list[Word]
    start: int
    end: int
    width: int
    last: bool
    leftward: frozenset[int] = frozenset()
    begins: str = ""
    """The side where lines of its paragraph begin, if the order of its words was turned."""


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
        page.append(Line(number, column, left, top, row_width, round(leading), row.start, row.end, words, row.leftward))
    yield page


def _rows(text: str, width: int, tab_width: int, font: TextFont) -> Iterator[_Row]:
    start = 0
    for paragraph in text.split("\n"):
        rows = _wrap(paragraph, start, width, tab_width * max(1, font.advance(" ")), font)
        yield from _turned(rows, paragraph, start, font) if is_right_to_left(paragraph) else rows
        start += len(paragraph) + 1


def _turned(rows: Iterable[_Row], paragraph: str, base: int, font: TextFont) -> Iterator[_Row]:
    """Put the words of each row where the eye looks for them, in a paragraph with right-to-left text."""
    side = base_level(paragraph)
    levels = bidi_levels(paragraph, side)
    for row in rows:
        turned = _reordered(row, paragraph, levels, base, font) if row.words else row
        yield turned._replace(begins="right" if side else "left")


def _reordered(row: _Row, paragraph: str, levels: Sequence[int], base: int, font: TextFont) -> _Row:
    begin, end = row.words[0][2] - base, row.words[-1][2] - base + len(row.words[-1][0])
    pieces = list(_pieces(paragraph, levels, begin, end))
    odd = [levels[start] % 2 == 1 for start, _ in pieces]
    texts = [paragraph[start:stop] for start, stop in pieces]
    widths = [_width(text, turn, font) for text, turn in zip(texts, odd, strict=True)]
    x, places = row.words[0][1], [0] * len(pieces)
    for piece in visual_order([levels[start] for start, _ in pieces]):
        places[piece] = x
        x += widths[piece]
    inked = [piece for piece, text in enumerate(texts) if not text.isspace()]
    words = [(texts[piece], places[piece], base + pieces[piece][0]) for piece in inked]
    leftward = frozenset(place for place, piece in enumerate(inked) if odd[piece])
    return row._replace(words=words, width=x, leftward=leftward)


def _width(text: str, leftward: bool, font: TextFont) -> int:
    """Return the width of a piece as it will be drawn: only what runs leftward or needs shaping is shaped."""
    if text.isspace():
        return len(text) * font.advance(" ")
    return font.word(text, leftward=True)[3] if leftward else font.advance(text)


def _pieces(paragraph: str, levels: Sequence[int], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a row that are of one level, words and spaces apart."""
    start = begin
    for place in range(begin + 1, end + 1):
        turns = place == end or levels[place] != levels[start]
        if turns or paragraph[place].isspace() != paragraph[start].isspace():
            yield start, place
            start = place


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
    begin = used = index = 0
    room = first_width
    for cluster in clusters(unit):
        step = font.advance(cluster)
        if used + step > room and index > begin:
            pieces.append((unit[begin:index], offset + begin))
            begin, used, room = index, 0, width
        used += step
        index += len(cluster)
    return [*pieces, (unit[begin:], offset + begin)]


_GIVEN = re.compile(f"[^{_SPACE}\n]+")


def words_given(text: str, newlines: str) -> int:
    """Count what spaces and newlines part in a text, as a newline policy leaves it."""
    return sum(1 for _ in _GIVEN.finditer(normalise(text, newlines)))


def words_apart(lines: Iterable[Line], text: str, font: TextFont) -> int:
    """Count the words that are drawn with room before them; `text` is the laid-out one. A torn word counts once."""
    room = max(1.0, 0.5 * font.advance(" "))
    count = 0
    for line in lines:
        reached, begin, end = -math.inf, -1, -1
        for place in sorted(range(len(line.words)), key=lambda place: line.words[place][1]):
            word, x, at = line.words[place]
            joined = at == end or at + len(word) == begin  # ideographs and their marks have room, and are no words
            count += not joined and x - reached >= room
            reached = max(reached, x + font.ink_width(word, leftward=place in line.leftward))
            begin, end = at, at + len(word)
        if line.words:
            first = min(at for _, _, at in line.words)
            count -= first > 0 and not text[first - 1].isspace()
    return count


def _justified(row: _Row, slack: int) -> tuple[Word, ...]:
    gaps = len(row.words) - 1
    return tuple((word, x + slack * index // gaps, at) for index, (word, x, at) in enumerate(row.words))


def _side(row: _Row, align: str) -> str:
    """A paragraph begins where its script does, unless it is told otherwise."""
    return row.begins if row.begins and align in ("left", "justify") else align


def _aligned(row: _Row, width: int, align: str) -> tuple[tuple[Word, ...], int]:
    """Return the words where the alignment puts them, and the right edge they then reach."""
    slack = width - row.width
    align = _side(row, align)
    ragged = align == "left" or (align == "justify" and (row.last or len(row.words) < 2))
    if ragged or not row.words or slack <= 0:
        return tuple(row.words), row.width
    if align == "justify":
        return _justified(row, slack), width
    shift = slack if align == "right" else slack // 2
    return tuple((word, x + shift, at) for word, x, at in row.words), row.width + shift
