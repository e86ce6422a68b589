"""What all tests with a few answers share: the answers' words, how they are asked for, and how one is read."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

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
