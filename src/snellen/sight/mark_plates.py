"""Single marks: a ring with a gap, a turned E, and a bar pushed out of line."""

from __future__ import annotations

import math
import random
from typing import Any

from .board import Board, Paper, Point
from .choice_plates import ChoiceTest, ink_of
from .plate import Bench

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
            for part, fill in ((radius, 255), (0.6 * radius, 0)):
                paper.pen.ellipse(paper.spots((x - part, y - part), (x + part, y + part)), fill=fill)
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
