"""Tests with a few answers: single marks, four panels of which one differs, and what all of them share."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..stats.intervals import Floats
from .board import Board, Colour, Paper, Point, chroma_of, encode_png, lab_to_rgb
from .plate import Bench, Card, Reading, Stimulus, fill, rotated
from .reply_reading import read_choice

QUADRANTS = {"top left": (0, 0), "top right": (1, 0), "bottom left": (0, 1), "bottom right": (1, 1)}
INK = 24
STEP = 0.02
"""Sizes vary by one step of the levels either way, so that the area of ink tells nothing; the trial stores its own."""


class ChoiceTest:
    """A test whose answer is one of the words of its card. What it shows is drawn by `show`."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def chance(self, level: float) -> float:
        """Return one in the answers."""
        return 1.0 / len(self.card.answers)

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Return a picture, its level as drawn, and what is stored of it; without an answer, without a target."""
        raise NotImplementedError

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw the stimulus for an answer."""
        picture, actual, detail = self.show(level, answer, draw, bench)
        return Stimulus((picture,), answer, actual, detail)

    def blank(self, draw: random.Random, bench: Bench) -> Stimulus | None:
        """Draw the picture without its target."""
        picture, actual, detail = self.show(self.card.easiest, None, draw, bench)
        return Stimulus((picture,), "", actual, detail)

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for one of the answers, in an order that begins anywhere."""
        return fill(self.card.wordings[wording], {"answers": rotated(self.card.answers, draw)})

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read one of the words."""
        return read_choice(reply, truth, self.card.answers)

    def jittered(self, level: float, draw: random.Random) -> float:
        """Return the level or one of its neighbours, within the axis."""
        low, high = sorted((self.card.hardest, self.card.easiest))
        return min(high, max(low, level * math.exp(STEP * draw.choice((-1, 0, 1)))))


def ink_of(draw: random.Random) -> tuple[float, float, float]:
    """Return a dark grey."""
    value = float(draw.randint(0, INK))
    return value, value, value


DISCS, PITCH = 5, 44.0
LIGHTNESS, LIGHTNESS_SPREAD = 62.0, 6.0
GREY = 128
SPREAD = 0.5
"""Colours are asked for this far (ln) around the level that is best over all hues: each hue has its own threshold."""
STROKE = 4.0
RED, BLUE = (205.0, 40.0, 40.0), (40.0, 70.0, 205.0)


class Mosaics(ChoiceTest):
    """Four mosaics of discs of many lightnesses; one has another colour, in one of eight hue directions."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the mosaics; without an answer all are grey. The level is as the rounded colours have it."""
        width, height = self.card.canvas
        board, hue = Board(width, height, GREY), draw.randrange(8) * 45
        if level < self.card.easiest * 0.98:  # the easiest level stays easy
            level = min(self.card.easiest, level * math.exp(draw.uniform(-SPREAD, SPREAD)))
        shown: dict[bool, list[Colour]] = {True: [], False: []}
        for name, (column, row) in QUADRANTS.items():
            here = name == answer
            chroma = level if here else 0.0
            left, top = (width * (1 + 2 * column) / 4, height * (1 + 2 * row) / 4)
            for number in range(DISCS * DISCS):
                light = LIGHTNESS + draw.uniform(-LIGHTNESS_SPREAD, LIGHTNESS_SPREAD)
                colour = lab_to_rgb(light, chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue)))
                x = left + (number % DISCS - 2 + draw.uniform(-0.08, 0.08)) * PITCH
                y = top + (number // DISCS - 2 + draw.uniform(-0.08, 0.08)) * PITCH
                board.disc((x, y), draw.uniform(13, 17), colour)
                shown[here].append(colour)
        actual = _apart(shown[True], shown[False]) if answer else level
        return board.png(self.card.pad_bytes), actual, {"hue": hue}


def _apart(one: list[Colour], other: list[Colour]) -> float:
    """Return the distance of the mean colours of two sets of discs in the a*b* plane."""
    first, second = chroma_of(np.array(one)).mean(0), chroma_of(np.array(other)).mean(0)
    return max(0.1, float(np.hypot(*(first - second))))


class Junctions(ChoiceTest):
    """In each panel a red and a blue stroke; in all but one they touch, as a crossing or as a T."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the panels; without an answer all pairs touch."""
        gap = self.jittered(level, draw)
        width, height = self.card.canvas
        board = Board(width, height)
        for name, (column, row) in QUADRANTS.items():
            x = width * (1 + 2 * column) / 4 + draw.uniform(-20, 20)
            y = height * (1 + 2 * row) / 4 + draw.uniform(-20, 20)
            _pair(board, (x, y), gap if name == answer else None, draw)
        return board.png(self.card.pad_bytes), gap, {}


def _pair(board: Board, spot: tuple[float, float], gap: float | None, draw: random.Random) -> None:
    turn, lean = draw.uniform(0, 2 * math.pi), draw.uniform(math.radians(45), math.radians(135))
    red, blue = draw.uniform(90, 140), draw.uniform(60, 100)
    along = (math.cos(turn), math.sin(turn))
    shift = draw.uniform(-0.25, 0.25) * red
    start = tuple(spot[axis] - along[axis] * (red / 2 + shift) for axis in (0, 1))
    end = tuple(spot[axis] + along[axis] * (red / 2 - shift) for axis in (0, 1))
    way = (math.cos(turn + lean), math.sin(turn + lean))
    if gap is None:
        begin = -draw.choice((draw.uniform(0, 2), draw.uniform(10, 50)))
    else:  # so that the nearest corner of the blue end is `gap` from the red edge
        begin = (gap + STROKE / 2 + STROKE / 2 * abs(math.cos(lean))) / math.sin(lean)
    near = tuple(spot[axis] + way[axis] * begin for axis in (0, 1))
    far = tuple(spot[axis] + way[axis] * (max(0.0, begin) + blue) for axis in (0, 1))
    board.stroke((start[0], start[1]), (end[0], end[1]), STROKE, RED)
    board.stroke((near[0], near[1]), (far[0], far[1]), STROKE, BLUE)


class Discs(ChoiceTest):
    """Four discs; one is larger by a share of its diameter."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the discs, each anywhere in its quarter; without an answer all are equal."""
        share, base = self.jittered(level, draw), draw.uniform(60, 110)
        width, height = self.card.canvas
        board, colour = Board(width, height), ink_of(draw)
        for name, (column, row) in QUADRANTS.items():
            size = base * (1 + share) if name == answer else base
            room = width / 4 - size / 2 - 4
            x = width * (1 + 2 * column) / 4 + draw.uniform(-room, room)
            y = height * (1 + 2 * row) / 4 + draw.uniform(-room, room)
            board.disc((x, y), size / 2, colour)
        return board.png(self.card.pad_bytes), share, {}


class Bars(ChoiceTest):
    """Four bars on a common line, as in a chart; one is taller by a share of its height."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the bars; without an answer all are equal."""
        share, base = self.jittered(level, draw), draw.uniform(150, 300)
        width, height = self.card.canvas
        board, colour = Board(width, height), ink_of(draw)
        floor, left = height - 40 - draw.uniform(0, 40), 60 + draw.uniform(0, 40)
        for number, name in enumerate(self.card.answers):
            tall = base * (1 + share) if name == answer else base
            x = left + number * 130
            board.polygon([(x, floor), (x + 70, floor), (x + 70, floor - tall), (x, floor - tall)], colour)
        board.polygon([(30, floor), (width - 30, floor), (width - 30, floor + 3), (30, floor + 3)], colour)
        return board.png(self.card.pad_bytes), share, {}


class Grating(ChoiceTest):
    """A patch of stripes of one period, turned one of four ways; contrasts below one code value by dithering."""

    SIGMA = 44.0
    TURNS = {"vertical": 0.0, "rising": 45.0, "horizontal": 90.0, "falling": 135.0}  # noqa: RUF012

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the patch anywhere; without an answer there is only the grey."""
        contrast = self.jittered(level, draw)
        width, height = self.card.canvas
        reach = 3 * self.SIGMA
        x, y = (reach + draw.random() * (side - 2 * reach) for side in (width, height))
        values = np.full((height, width), 127.5)
        if answer is not None:
            values += 127.5 * contrast * self._stripes(answer, (x, y), draw)
        dither = np.random.default_rng(draw.getrandbits(64)).random((height, width))
        whole = np.floor(values + dither)
        board = Board(width, height)
        board.pixels[:] = whole[:, :, None]
        # not compressed: stripes along the rows pack better, and into how many parts shows it even in a padded file
        picture = encode_png(board.pixels, level=0)
        return picture, contrast, {"period_px": self.card.options["period"]}

    def _stripes(self, answer: str, spot: tuple[float, float], draw: random.Random) -> Floats:
        width, height = self.card.canvas
        across, down = np.arange(width) + 0.5 - spot[0], (np.arange(height) + 0.5 - spot[1])[:, None]
        angle = math.radians(self.TURNS[answer])
        along = across * math.cos(angle) + down * math.sin(angle)
        wave = np.cos(2 * math.pi * along / float(self.card.options["period"]) + draw.uniform(0, 2 * math.pi))
        return np.asarray(wave * np.exp(-(across**2 + down**2) / (2 * self.SIGMA**2)))


ANGLES = {"top": -90, "top right": -45, "right": 0, "bottom right": 45, "bottom": 90, "bottom left": 135, "left": 180}
ANGLES["top left"] = -135
MIRRORED = {"left": "right", "right": "left", "top left": "top right", "top right": "top left"}
MIRRORED |= {"bottom left": "bottom right", "bottom right": "bottom left"}
WAYS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
BAR_LENGTH, BAR_WIDTH, BAR_GAP = 64.0, 4.0, 80.0


class Landolt(ChoiceTest):
    """A ring whose stroke and gap are a fifth of its diameter; the gap points one of eight ways."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the ring anywhere; without an answer it is closed."""
        size = self.jittered(level, draw)
        board, (x, y) = self._placed(size, draw)
        radius = size / 2

        def _ring(paper: Paper) -> None:
            for part, ink in ((radius, 255), (0.6 * radius, 0)):
                paper.pen.ellipse(paper.spots((x - part, y - part), (x + part, y + part)), fill=ink)
            if answer is not None:
                paper.pen.polygon(paper.spots(*_slot((x, y), radius, math.radians(ANGLES[answer]))), fill=0)

        board.paint((x - radius, y - radius, x + radius, y + radius), ink_of(draw), _ring)
        return board.png(self.card.pad_bytes), size, {"gap_px": round(size / 5, 3)}

    def _placed(self, size: float, draw: random.Random) -> tuple[Board, Point]:
        width, height = self.card.canvas
        spot = tuple(size / 2 + 2 + draw.random() * (side - size - 4) for side in (width, height))
        return Board(width, height), (spot[0], spot[1])


def _slot(centre: Point, radius: float, angle: float) -> list[Point]:
    along, across = (math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))
    half = radius / 5
    corners = ((0.3 * radius, -half), (1.1 * radius, -half), (1.1 * radius, half), (0.3 * radius, half))
    return [(centre[0] + a * along[0] + b * across[0], centre[1] + a * along[1] + b * across[1]) for a, b in corners]


class TumblingE(Landolt):
    """A square E of five by five parts whose bars point one of four ways."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the E anywhere; without an answer it is a filled square."""
        size = self.jittered(level, draw)
        board, (x, y) = self._placed(size, draw)
        turn = {"right": 0, "down": 90, "left": 180, "up": 270}.get(answer or "", 0)
        parts = [(-0.5, -0.5, 0.5, 0.5)] if answer is None else [(-0.5, -0.5, -0.3, 0.5)]
        if answer is not None:
            parts += [(-0.5, top, 0.5, top + 0.2) for top in (-0.5, -0.1, 0.3)]
        cos, sin = round(math.cos(math.radians(turn))), round(math.sin(math.radians(turn)))

        def _letter(paper: Paper) -> None:
            for left, top, right, bottom in parts:
                corners = ((left, top), (right, top), (right, bottom), (left, bottom))
                turned = [(x + size * (a * cos - b * sin), y + size * (a * sin + b * cos)) for a, b in corners]
                paper.pen.polygon(paper.spots(*turned), fill=255)

        half = size / 2
        board.paint((x - half, y - half, x + half, y + half), ink_of(draw), _letter)
        return board.png(self.card.pad_bytes), size, {"gap_px": round(size / 5, 3)}


class Vernier(ChoiceTest):
    """A plus of four bars; one of them is pushed sideways, either way."""

    def show(
        self, level: float, answer: str | None, draw: random.Random, bench: Bench
    ) -> tuple[bytes, float, dict[str, Any]]:
        """Draw the plus anywhere; without an answer all bars are in line."""
        offset = self.jittered(level, draw)
        width, height = self.card.canvas
        reach = BAR_GAP / 2 + BAR_LENGTH + self.card.easiest + 4
        x, y = (reach + draw.random() * (side - 2 * reach) for side in (width, height))
        board, colour = Board(width, height), ink_of(draw)
        for way, (right, down) in WAYS.items():
            push = offset * draw.choice((-1, 1)) if way == answer else 0.0
            near, far = BAR_GAP / 2, BAR_GAP / 2 + BAR_LENGTH
            aside = (x - push * down, y + push * right)
            start = (aside[0] + near * right, aside[1] + near * down)
            board.stroke(start, (aside[0] + far * right, aside[1] + far * down), BAR_WIDTH, colour)
        return board.png(self.card.pad_bytes), offset, {}
