"""A reply to an eye chart -> what it says of each row: glyphs right, wrong and not seen, and how often a guess counts.

Rows are found by their numbers, else in order where their count is right, else by the best pairing in order. A row of
the stated length is compared place by place, so that a guess counts exactly as often as chance says; any other length
by edit distance, whose own chance is measured on random rows of that shape.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec
import numpy as np
from msgspec import Struct
from rapidfuzz.distance import Levenshtein

from ...core.ids import rng

UNSEEN = "?"
NUMBER = re.compile(r"(?:^|(?<=[\s,;|*(\[]))(?:row|line)?\s*(\d{1,2})[*_]*\s*[:.)\]：、][*_]*", re.IGNORECASE)
SPACED_NUMBER = re.compile(r"^\W*(\d{1,2})\s+(?=\S)")
"""`3 KDHS`: only where no digits are read."""
TALK = re.compile(r"[:：]\W*$")
REMARK = re.compile(r"[(\[<][^)\]>]*[a-z]{3}[^)\]>]*[)\]>]")
"""`(too small)`, `[illegible]`: said of a row, not read in it."""
ROW_DRAWS, PAIR_DRAWS = 4000, 200
MOST_CHANCE = 0.9
MAX_REPLY = 20_000
"""Characters of a reply that are looked at; a chart has about a hundred."""
PREAMBLE = 3
"""Lines that a reply about one line may have, talk included."""


class Shape(Struct, frozen=True):
    """What a reader was told of a chart: its alphabet, and how often a guess hits a glyph."""

    alphabet: str
    chance: float

    @property
    def size(self) -> int:
        """Return how many equally likely glyphs give this chance."""
        return max(2, round(1 / self.chance))


class Row(Struct, frozen=True):
    """One row as it was read; what is neither right nor wrong was not seen: `?`, left out, or no glyph of the chart."""

    glyphs: int
    right: int
    wrong: float
    chance: float
    """How often a written guess counts as right under the rule that compared this row."""
    written: int = 0
    outside: int = 0
    """Glyphs written that are not of the alphabet."""
    by_place: bool = True
    """Whether the row has the length that was asked for."""


def read_rows(truths: Sequence[str], reply: str, shape: Shape) -> tuple[list[Row], str]:
    """Return every row as it was read, and the rule that found it in the reply."""
    lines = _lines_of(reply)
    numbered = rows_by_number(lines, len(truths), shape)
    if numbered:
        return [compare(truth, numbered.get(place, ""), shape) for place, truth in enumerate(truths, 1)], "by number"
    return _read_unnumbered(truths, lines, shape)


def _read_unnumbered(truths: Sequence[str], lines: Sequence[str], shape: Shape) -> tuple[list[Row], str]:
    """Read rows without numbers: in order where their count is right, else by the best pairing."""
    texts = _without_talk([line_glyphs(line) for line in lines], lines, len(truths))
    if len(texts) == 1 and len(truths) > 1:
        pieces = [line_glyphs(piece) for piece in lines[-1].split()]
        if len(pieces) != len(truths):
            return _in_one_line(truths, texts[0], shape), "in one line"
        texts = pieces
    if len(texts) == len(truths):
        return [compare(truth, text, shape) for truth, text in zip(truths, texts, strict=True)], "in order"
    if len(truths) == 1 and len(texts) > PREAMBLE:
        texts = ["".join(texts)]  # one row was asked for: a dump of the whole chart is no reading of it
        return [compare(truths[0], texts[0], shape)], "in order"
    return _paired(truths, texts, shape), "paired"


def _lines_of(reply: str) -> list[str]:
    return [line for line in reply[:MAX_REPLY].splitlines() if line_glyphs(line)]


def line_glyphs(text: str) -> str:
    """Return the glyphs of a line, in capitals and canonical width, with `?` for those not seen."""
    folded = unicodedata.normalize("NFKC", REMARK.sub(" ", text)).upper()
    return "".join(char for char in folded if char.isalnum() or char == UNSEEN)


def rows_by_number(lines: Sequence[str], count: int, shape: Shape) -> dict[int, str]:
    """Return number -> row where the reply numbers its rows, the last where one comes twice; else nothing."""
    rows: dict[int, str] = {}
    started = 0
    spaced = not any(char.isdigit() for char in shape.alphabet)
    for line in lines:
        numbers = _numbers_in(line, count, spaced)
        if not numbers:
            continue
        started += not line_glyphs(line[: numbers[0].start()])
        for match, following in zip(numbers, [*numbers[1:], None], strict=True):
            number = 1 if count == 1 else int(match[1])
            rows[number] = line_glyphs(line[match.end() : following.start() if following else None])
    return rows if 2 * started >= len(lines) else {}


def _numbers_in(line: str, count: int, spaced: bool) -> list[re.Match[str]]:
    """Return where a line numbers rows of a chart of `count` rows; `spaced` takes a number without a sign too."""
    numbers = [match for match in NUMBER.finditer(line) if count == 1 or 1 <= int(match[1]) <= count]
    if numbers or not spaced:
        return numbers
    alone = SPACED_NUMBER.match(line)
    return [alone] if alone and 1 <= int(alone[1]) <= count else []


def _without_talk(texts: list[str], lines: Sequence[str], count: int) -> list[str]:
    """Leave out lines that only announce ("Here it is:"), where the reply has more lines than the chart."""
    kept = [text for text, line in zip(texts, lines, strict=True) if not TALK.search(line)]
    return kept if len(texts) > count and kept else texts


def compare(truth: str, text: str, shape: Shape) -> Row:
    """Compare a row with what was written for it: place by place, or by edit distance where the length differs."""
    written = sum(char != UNSEEN for char in text)
    if not written:
        return Row(len(truth), 0, 0, shape.chance)
    outside = sum(char not in shape.alphabet for char in text if char != UNSEEN)
    if len(text) == len(truth):
        right = sum(a == b for a, b in zip(truth, text, strict=True))
        return Row(len(truth), right, written - outside - right, shape.chance, written, outside)
    right = glyphs_read(truth, text)
    wrong = min(len(truth), written) - right
    chance = chance_by_distance(shape.size, len(truth), min(len(text), 4 * len(truth)))
    return Row(len(truth), right, max(0, wrong), chance, written, outside, by_place=False)


@lru_cache(maxsize=4096)
def chance_by_distance(size: int, glyphs: int, written: int) -> float:
    """Return how often a guessed glyph counts as read by edit distance: measured on random rows, seeded."""
    draw = rng("chance by edit distance", size, glyphs, written)
    symbols = [chr(0x4E00 + place) for place in range(size)]
    read = sum(
        glyphs_read("".join(draw.choices(symbols, k=glyphs)), "".join(draw.choices(symbols, k=written)))
        for _ in range(ROW_DRAWS)
    )
    return min(MOST_CHANCE, read / ROW_DRAWS / min(glyphs, written))


def _paired(truths: Sequence[str], texts: Sequence[str], shape: Shape) -> list[Row]:
    partners = _partners(truths, texts)
    rows = [
        compare(truth, "" if place is None else texts[place], shape)
        for truth, place in zip(truths, partners, strict=True)
    ]
    lengths = tuple(min(len(text), 40) for text in texts)
    chances = chances_of_pairing(shape.size, tuple(map(len, truths)), lengths)
    return [_with_chance(row, chance) for row, chance in zip(rows, chances, strict=True)]


def _partners(truths: Sequence[str], texts: Sequence[str]) -> list[int | None]:
    return pair_in_order([[glyphs_read(truth, text) for text in texts] for truth in truths])


def _with_chance(row: Row, chance: float) -> Row:
    return msgspec.structs.replace(row, chance=max(row.chance, chance))


@lru_cache(maxsize=512)
def chances_of_pairing(size: int, glyphs: tuple[int, ...], written: tuple[int, ...]) -> tuple[float, ...]:
    """Return how often a guess counts in each row of the best pairing: random replies through that pairing.

    Only rows that found a partner count: those that did not are not seen, here as in a real reply.
    """
    draw = rng("chance of pairing", size, *glyphs, "written", *written)
    symbols = [chr(0x4E00 + place) for place in range(size)]
    shape = Shape("".join(symbols), 1 / size)
    right, tried = [0.0] * len(glyphs), [0.0] * len(glyphs)
    for _ in range(PAIR_DRAWS):
        truths = ["".join(draw.choices(symbols, k=count)) for count in glyphs]
        texts = ["".join(draw.choices(symbols, k=count)) for count in written]
        for number, place in enumerate(_partners(truths, texts)):
            row = compare(truths[number], "" if place is None else texts[place], shape)
            right[number] += row.right
            tried[number] += row.right + row.wrong
    return tuple(min(MOST_CHANCE, (a + 1 / size) / (b + 1)) for a, b in zip(right, tried, strict=True))


def _in_one_line(truths: Sequence[str], text: str, shape: Shape) -> list[Row]:
    """Read a reply that runs all rows together by the best alignment of the whole; what is missing was not seen."""
    read = read_in_one_line(truths, text)
    lengths = tuple(map(len, truths))
    written = sum(char != UNSEEN for char in text)
    unread = sum(lengths) - sum(read)
    share = min(1.0, (written - sum(read)) / unread) if unread else 0.0
    chance = _chance_in_one_line(shape.size, lengths, min(len(text), 4 * sum(lengths)))
    return [
        Row(n, right, (n - right) * share, chance, right, by_place=False)
        for n, right in zip(lengths, read, strict=True)
    ]


@lru_cache(maxsize=512)
def _chance_in_one_line(size: int, glyphs: tuple[int, ...], written: int) -> float:
    draw = rng("chance in one line", size, *glyphs, "written", written)
    symbols = [chr(0x4E00 + place) for place in range(size)]
    read = 0
    for _ in range(PAIR_DRAWS):
        truths = ["".join(draw.choices(symbols, k=count)) for count in glyphs]
        read += sum(read_in_one_line(truths, "".join(draw.choices(symbols, k=written))))
    return min(MOST_CHANCE, read / PAIR_DRAWS / min(sum(glyphs), max(1, written)))


def glyphs_of(text: str) -> str:
    """Return the letters and digits of a text, in capitals and canonical width: what counts as read."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).upper() if char.isalnum())


def glyphs_read(truth: str, line: str) -> int:
    """Return the number of glyphs read, never below 0."""
    return max(0, len(truth) - Levenshtein.distance(truth, line))


def pair_in_order(gains: Sequence[Sequence[int]]) -> list[int | None]:
    """Return for each chart line the place of its reply line in the best pairing that keeps the order, or None."""
    rows, columns = len(gains), len(gains[0]) if gains else 0
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row, gained in enumerate(gains, 1):
        above, here = best[row - 1], best[row]
        for column, gain in enumerate(gained, 1):
            here[column] = max(above[column - 1] + gain, above[column], here[column - 1])
    partners: list[int | None] = [None] * rows
    column = columns
    for row in range(rows, 0, -1):
        while column and best[row][column] == best[row][column - 1]:
            column -= 1
        if column and best[row][column] != best[row - 1][column]:
            column -= 1
            partners[row - 1] = column
    return partners


def read_in_one_line(truths: Sequence[str], reply: str) -> list[int]:
    """Count glyphs read when the reply runs all lines together: the best alignment of the whole chart."""
    whole = "".join(truths)
    kept = [False] * len(whole)
    for block in Levenshtein.opcodes(whole, reply):
        if block.tag == "equal":
            kept[block.src_start : block.src_end] = [True] * (block.src_end - block.src_start)
    ends = np.cumsum([0, *map(len, truths)])
    return [sum(kept[start:end]) for start, end in pairwise(ends)]
