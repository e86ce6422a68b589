"""Tests with answers of their own kind: counts, lines of a page, codes on many pictures, letters in a field."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw

from ..data.loaders.eyechart import font_for
from .board import Board, encode_png, lay, padded, row_ink
from .choice_plates import ink_of
from .plate import Bench, Card, Reading, Stimulus, credit, fill
from .reply_reading import answering_parts, read_number, read_row
from .row_plates import LARGEST, RowTest, random_row, varied

APART = 8.0
"""So far stand discs that are counted, at least."""
FEW = (2, 3, 4)
"""What is counted at the easiest level: always the same number could be a habit."""
RIM = 6.0
"""Rims of counted discs are 1 to so many px wide: the sum of rims over the root of all ink tells a number too."""
PAGE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LINE = 40
PITCH = 1.7
"""From line to line in heights of capitals: 12 pt for type of 10 pt."""
LARGE_PAGE = 2000
"""Larger pages (px) are drawn twice their size, others three times."""
CELLS = 5


class Counting:
    """Equal discs to be counted; right is the exact number."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def chance(self, level: float) -> float:
        """Nothing is right by chance: a near miss that happens to be exact is what is measured."""
        return 0.0

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw about as many discs as the level says."""
        usual = max(float(FEW[1]), level)
        number = draw.choice(FEW) if level <= FEW[1] else draw.randint(round(0.9 * level), round(1.1 * level))
        width, height = self.card.canvas
        # more discs are smaller ones: the ink of a level is the same however many there are
        radius = draw.uniform(10, 16) * math.sqrt(usual / number)
        board, colour, rim = Board(width, height), ink_of(draw), RIM ** draw.random()
        for spot in _scattered(number, radius, (width, height), draw):
            board.disc(spot, radius, colour, rim)
        return Stimulus((board.png(self.card.pad_bytes),), str(number), float(number), {})

    def blank(self, draw: random.Random, bench: Bench) -> Stimulus | None:
        """An empty picture has its own right answer, none."""
        return None

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for the number."""
        return self.card.wordings[wording]

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read a number."""
        number = read_number(reply)
        if number is None:
            return credit(1, 0.0)
        return Reading(float(number == float(truth)), 1, 0.0, f"{number:g}", {"count": number})


def _scattered(number: int, radius: float, size: tuple[int, int], draw: random.Random) -> list[tuple[float, float]]:
    """Return places of discs that keep their distance; begins anew where they do not fit."""
    spots: list[tuple[float, float]] = []
    tries = 0
    while len(spots) < number:
        x, y = (radius + 4 + draw.random() * (side - 2 * radius - 8) for side in size)
        if all(math.hypot(x - a, y - b) >= 2 * radius + APART for a, b in spots):
            spots.append((x, y))
        tries += 1
        if tries % (200 * number) == 0 and len(spots) < number:
            spots.clear()
    return spots


class Page:
    """A page of random characters in numbered lines, of which one is to be written down."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def chance(self, level: float) -> float:
        """Return one in the alphabet."""
        return 1.0 / len(PAGE_ALPHABET)

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw a page of about `level` characters."""
        count = max(2, round(level / LINE))
        lines = ["".join(draw.choices(PAGE_ALPHABET, k=LINE)) for _ in range(count)]
        width, height = self.card.canvas
        glyph = min(2 * bench.far, (height - 60) / (PITCH * count), (width - 60) / 46)
        asked = draw.randrange(count)
        picture = padded(typeset(lines, glyph, (width, height), draw), self.card.pad_bytes)
        beside = [lines[place] for place in (asked - 1, asked + 1) if 0 <= place < count]
        detail = {"line": asked + 1, "beside": beside, "height_px": round(glyph, 2), "lines": count}
        return Stimulus((picture,), lines[asked], float(count * LINE), detail)

    def blank(self, draw: random.Random, bench: Bench) -> Stimulus | None:
        """Pages have no blank."""
        return None

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for one line by its number."""
        words = {"line": stimulus.detail["line"], "count": LINE, "alphabet": " ".join(PAGE_ALPHABET)}
        return fill(self.card.wordings[wording], words)

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read the line by place, and say whether a neighbour was read instead."""
        return self.read_line(reply, truth, detail, PAGE_ALPHABET)

    @staticmethod
    def read_line(reply: str, truth: str, detail: Mapping[str, Any], alphabet: str) -> Reading:
        """Read one line of several in an alphabet."""
        reading = read_row(reply, truth, alphabet)
        others = [read_row(reply, other, alphabet).right for other in detail.get("beside", ())]
        slip = bool(others) and max(others) > max(reading.right, len(truth) / 4)
        return Reading(reading.right, reading.glyphs, reading.guess, reading.answer, {**reading.detail, "slip": slip})


def typeset(lines: list[str], glyph: float, size: tuple[int, int], draw: random.Random) -> bytes:
    """Return a page of numbered lines in capitals of a height, as a PNG."""
    over = 3 if max(size) <= LARGE_PAGE else 2
    sheet = PIL.Image.new("L", (size[0] * over, size[1] * over), 255)
    pen, face = PIL.ImageDraw.Draw(sheet), font_for("letters", glyph * over, None)
    dark, pitch = draw.randint(0, 24), PITCH * glyph * over
    top, left = (25 + draw.random() * 5) * over, (20 + draw.random() * 5) * over
    for number, line in enumerate(lines, 1):
        y = top + pitch * number
        pen.text((left, y), f"{number}:", font=face, fill=dark, anchor="ls")
        pen.text((left + 4.2 * glyph * over, y), line, font=face, fill=dark, anchor="ls")
    small = np.asarray(sheet.reduce(over))
    return encode_png(np.repeat(small[:, :, None], 3, 2))


class Held(Page):
    """Many pictures in one request, each with its own code: which code stood on which?"""

    CODE = 5

    def chance(self, level: float) -> float:
        """Return what a reader gets that cannot tell the pictures apart."""
        return 1.0 / max(2.0, level)

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw as many pictures as the level says, all codes different."""
        count = max(2, round(level))
        codes: list[str] = []
        while len(codes) < count:
            code = random_row("letters", self.CODE, draw)
            if code not in codes:
                codes.append(code)
        height = max(14.0, 3 * bench.far)
        pictures = tuple(self._picture(code, varied(height, 40.0, draw), draw) for code in codes)
        asked = draw.randrange(count)
        detail = {"picture": asked + 1, "codes": codes}
        return Stimulus(pictures, codes[asked], float(count), detail)

    def _picture(self, code: str, height: float, draw: random.Random) -> bytes:
        width, tall = self.card.canvas
        board = Board(width, tall)
        lay(board, row_ink(code, height), draw, ink_of(draw), (0, 0, width, tall))
        return board.png(self.card.pad_bytes)

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for the code of one picture by its number."""
        words = {"picture": stimulus.detail["picture"], "total": len(stimulus.detail["codes"])}
        return fill(self.card.wordings[wording], words)

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Right is the whole code; another picture's code is a swap."""
        guess = 1.0 / len(detail["codes"])
        told = codes_told(reply, detail["codes"])
        if len(told) > 1:
            return credit(1, guess)
        if told:
            place = detail["codes"].index(told[0]) + 1
            return Reading(float(told[0] == truth), 1, guess, told[0], {"swap": place - int(detail["picture"])})
        row = read_row(reply, truth, "CDHKNORSVZ")
        return credit(1, guess) if row.answer is None else Reading(0.0, 1, guess, row.answer)


def codes_told(reply: str, codes: Sequence[str]) -> list[str]:
    """Return the codes that a reply names: of several, the one that it ends with where it says so."""
    parts = ["".join(text.upper().split()).replace("0", "O") for text in answering_parts(reply)]
    found = [[code for code in codes if code in part] for part in parts]
    return next((told for told in found if len(told) == 1), found[0])


class FieldTest(RowTest):
    """Four letters in one of five by five cells of a large canvas, at a size that is neither easy nor hopeless."""

    EASE = (0.6, 0.85)

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw the group in the cell that `answer` numbers, at one of two heights of the acuity curve."""
        cell = int(answer or 0) % (CELLS * CELLS)
        ease = draw.choice(self.EASE)
        height = varied(bench.half * math.exp(math.log(ease / (1 - ease)) / bench.slope), LARGEST, draw)
        width, tall = self.card.canvas
        text = random_row("letters", self.card.glyphs, draw)
        board = Board(width, tall)
        column, row = cell % CELLS, cell // CELLS
        box = (column * width / CELLS, row * tall / CELLS, (column + 1) * width / CELLS, (row + 1) * tall / CELLS)
        lay(board, row_ink(text, height), draw, ink_of(draw), box)
        detail = {"alphabet": self.alphabet, "height_px": round(height, 3), "column": column, "row": row}
        return Stimulus((board.png(self.card.pad_bytes),), text, height, detail)
