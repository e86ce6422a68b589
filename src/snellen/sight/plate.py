"""What a test of the exam is: a card of words and levels, and how to draw, ask, read and judge one stimulus."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from ..core.errors import ConfigError


class Axis(NamedTuple):
    """The levels of a test, hardest and easiest in its own unit; x = ±ln(level) grows as it gets easier."""

    hardest: float
    easiest: float

    @property
    def sign(self) -> float:
        """Return 1 where a larger level is easier, else -1."""
        return 1.0 if self.easiest > self.hardest else -1.0

    def x(self, level: float) -> float:
        """Return the place of a level on the axis."""
        return self.sign * math.log(level)

    def level(self, x: float) -> float:
        """Return the level at a place."""
        return math.exp(self.sign * x)


class Card(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `catalog/exam/tests.toml` says of a test."""

    title: str
    unit: str
    hardest: float
    easiest: float
    plate: str
    """Which module draws it: the name it is registered under."""
    wordings: tuple[str, ...]
    modes: tuple[str, ...] = ("quick", "standard", "fine")
    answers: tuple[str, ...] = ()
    glyphs: int = 1
    canvas: tuple[int, int] = (672, 672)
    pad_bytes: int = 0
    needs: tuple[str, ...] = ()
    """Tests whose threshold this one is drawn by."""
    axis_name: str = ""
    options: dict[str, Any] = {}
    """What only its plate understands."""
    max_tokens: int = 64
    about: str = ""

    @property
    def axis(self) -> Axis:
        """Return the levels."""
        return Axis(self.hardest, self.easiest)


class Bench(NamedTuple):
    """What is known when a test begins: the height at which half is read, at which 95 % is, and the curve's slope."""

    half: float = 8.0
    far: float = 16.0
    slope: float = 5.5
    lapse: float = 0.02


class Stimulus(NamedTuple):
    """One drawn picture (or several), what is right, and the level as drawn."""

    pictures: tuple[bytes, ...]
    truth: str
    level: float
    detail: Mapping[str, Any]
    """What reading the reply and the fits need besides: alphabets, places, other codes. Stored with the trial."""
    mime: str = "image/png"


class Reading(Struct, frozen=True):
    """What a reply says: how many glyphs are right of how many, and how often a guess would be."""

    right: float
    glyphs: int
    guess: float
    answer: str | None
    """None: no answer was given, and chance is credited."""
    detail: dict[str, Any] = {}


class EyeTest(Protocol):
    """A test of the exam. Everything it does depends on its arguments alone.

    Example:
        >>> from snellen.sight.cards import eye_test
        >>> eye_test("orientation").chance(20.0)
        0.125
    """

    card: Card

    def chance(self, level: float) -> float:
        """Return how often a guess at one glyph (or one trial) is right."""
        ...

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw a new stimulus; `answer` is one of the card's answers, balanced by the exam, or empty."""
        ...

    def blank(self, draw: random.Random, bench: Bench) -> Stimulus | None:
        """Draw the picture without its target, or None where there is nothing to leave out."""
        ...

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Return the question; the same for all levels."""
        ...

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read a reply; `reply` is its text after any thinking."""
        ...


def fill(template: str, words: Mapping[str, Any]) -> str:
    """Put words into a template of a card; a name it does not have is refused by name."""
    try:
        return template.format(**words)
    except (KeyError, IndexError, ValueError) as error:
        raise ConfigError(f"catalog/exam: {template!r} asks for {error}, known: {', '.join(sorted(words))}") from None


def rotated(words: Sequence[str], draw: random.Random) -> str:
    """Return words as a list that begins anywhere: no answer always stands first."""
    start = draw.randrange(len(words))
    turned = [*words[start:], *words[:start]]
    return f"{', '.join(turned[:-1])} or {turned[-1]}"


def credit(glyphs: int, guess: float) -> Reading:
    """Return the reading of a reply without an answer: what chance would have given."""
    return Reading(glyphs * guess, glyphs, guess, None)


def encode_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return detail as it will be read from the store."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(detail)))
    return plain
