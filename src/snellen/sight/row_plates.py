"""Rows of random glyphs: how small, faint, crowded, turned, blurred, noisy or compressed they may be."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageFilter
import PIL.ImageOps

from ..core.config import read_config_file
from ..data.loaders.eyechart import ALPHABETS, find_cjk_font, words
from .board import Board, Colour, Ink, encode_png, lay, padded, padded_jpeg, row_ink
from .plate import Bench, Card, Reading, Stimulus, fill
from .reply_reading import read_row

LARGEST = 30.0
"""Of this height a turned row still fits."""
INK = 24
"""Ink is any code value up to this: its darkness must not tell anything."""
STEP, STEPS, REACH = 0.02, 14, 0.48
"""Rows of one height show by the sum of their ink which letters they hold: each is drawn in a height of its own. Where
the height is the level, within so many steps of ln height, those of the grid of levels, on which learning is fast;
where it is not, within so much."""
SOFTEST = 0.006
"""Where letters are large, the rim of a row over the root of its ink tells them at any height: rims are soft by up to
so much of the height (sigma), a fortieth of what hinders reading."""
SEEN_SOFT = 0.1
"""Below this sigma (px of the large ink) nothing changes."""
ALPHABET_OF_WORDS = 4
"""A row that holds an English word of so many letters is drawn again: it could be read without being seen."""


class RowTest:
    """A row of glyphs to be written down; what makes it hard is the card's option `by`."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.script = str(card.options.get("script", "letters"))
        self.alphabet = ALPHABETS[self.script]
        self.make = WAYS[str(card.options.get("by", "height"))]

    def chance(self, level: float) -> float:
        """Return one in the alphabet."""
        return 1.0 / len(self.alphabet)

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw a row anywhere on the canvas."""
        text = random_row(self.script, self.card.glyphs, draw)
        picture, actual, height, mime = self.make(self, text, level, draw, bench)
        detail = {"alphabet": self.alphabet, "height_px": round(height, 3)}
        return Stimulus((picture,), text, actual, detail, mime)

    def blank(self, draw: random.Random, bench: Bench) -> Stimulus | None:
        """Rows have no blank: who sees nothing writes `?`."""
        return None

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for the row."""
        return fill(self.card.wordings[wording], {"count": self.card.glyphs, "alphabet": " ".join(self.alphabet)})

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read the row by place."""
        return read_row(reply, truth, str(detail["alphabet"]))

    def board(
        self,
        text: str,
        height: float,
        draw: random.Random,
        *,
        ink: float | None = None,
        gap: float = 0.5,
        soft: bool = False,
    ) -> Board:
        """Return a canvas with the row on it."""
        width, tall = self.card.canvas
        board = Board(width, tall)
        dark = float(draw.randint(0, INK)) if ink is None else ink
        row = row_ink(text, height, gap=gap, script=self.script, font=font_of(self.script))
        row = softened(row, height, draw) if soft else row
        lay(board, row, draw, grey(dark), (0, 0, width, tall))
        return board


Drawn = tuple[bytes, float, float, str]
"""A picture, its level as drawn, the height of its glyphs, and its type."""


def by_height(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is the height of capitals in px, as drawn."""
    actual = varied_level(level, test.card.easiest, draw)
    return test.board(text, actual, draw, soft=True).png(test.card.pad_bytes), actual, actual, "image/png"


def by_contrast(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is how much of the range from paper to black the ink takes, in whole code values."""
    height = varied(max(16.0, 3 * bench.half), 50.0, draw)
    steps = min(255, max(1, round(255 * level)))
    return test.board(text, height, draw, ink=255.0 - steps).png(test.card.pad_bytes), steps / 255, height, "image/png"


def by_gap(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is the space between glyphs in heights."""
    height = varied(max(12.0, 2 * bench.far), 30.0, draw)
    return test.board(text, height, draw, gap=level).png(test.card.pad_bytes), level, height, "image/png"


def by_rotation(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is the angle in degrees, either way."""
    height = varied(legible(bench), LARGEST, draw)
    width, tall = test.card.canvas
    board = Board(width, tall)
    ink = row_ink(text, height, script=test.script, font=font_of(test.script))
    angle = level * draw.choice((-1, 1))
    turned = ink._replace(image=ink.image.rotate(angle, PIL.Image.Resampling.BICUBIC, expand=True))
    lay(board, turned, draw, grey(draw.randint(0, INK)), (0, 0, width, tall))
    return board.png(test.card.pad_bytes), level, height, "image/png"


def by_blur(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is the standard deviation of a Gaussian in heights."""
    height = varied(legible(bench), LARGEST, draw)
    page = PIL.Image.fromarray(test.board(text, height, draw).pixels)
    left, top, right, bottom = PIL.ImageOps.invert(page).getbbox() or (0, 0, 1, 1)
    reach = round(4 * level * height) + 2  # beyond it there is only paper
    box = max(0, left - reach), max(0, top - reach), min(page.width, right + reach), min(page.height, bottom + reach)
    page.paste(page.crop(box).filter(PIL.ImageFilter.GaussianBlur(level * height)), box[:2])
    return padded(encode_png(np.asarray(page)), test.card.pad_bytes), level, height, "image/png"


def by_noise(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is the standard deviation of noise in code values, for every pixel and channel."""
    height = varied(legible(bench), 26.0, draw)
    board = test.board(text, height, draw)
    noise = np.random.default_rng(draw.getrandbits(64)).standard_normal(board.pixels.shape, np.float32)
    board.pixels = np.clip(np.rint(board.pixels + np.float32(level) * noise), 0, 255).astype(np.uint8)
    return board.png(test.card.pad_bytes), level, height, "image/png"


def by_jpeg(test: RowTest, text: str, level: float, draw: random.Random, bench: Bench) -> Drawn:
    """The level is the scale of the quantiser in percent; sent as JPEG, colours at full resolution."""
    height = varied(legible(bench), LARGEST, draw)
    quality = jpeg_quality_of(level)
    file = io.BytesIO()
    page = PIL.Image.fromarray(test.board(text, height, draw).pixels)
    page.save(file, "JPEG", quality=quality, subsampling=0)
    return padded_jpeg(file.getvalue(), test.card.pad_bytes), jpeg_scale_of(quality), height, "image/jpeg"


WAYS: dict[str, Callable[[RowTest, str, float, random.Random, Bench], Drawn]] = {
    "height": by_height,
    "contrast": by_contrast,
    "gap": by_gap,
    "rotation": by_rotation,
    "blur": by_blur,
    "noise": by_noise,
    "jpeg": by_jpeg,
}


def jpeg_quality_of(scale: float) -> int:
    """Return the quality whose quantiser is scaled by so many percent."""
    return min(98, max(1, round(100 - scale / 2 if scale <= 100 else 5000 / scale)))


def jpeg_quality_at_least(scale: float) -> int:
    """Return the lowest quality whose quantiser is scaled by no more than so many percent."""
    near = jpeg_quality_of(scale)
    return near if jpeg_scale_of(near) <= scale + 1e-9 else min(98, near + 1)


def jpeg_scale_of(quality: float) -> float:
    """Return the scale of the quantiser in percent."""
    return 200.0 - 2.0 * quality if quality >= 50 else 5000.0 / max(1.0, quality)


def legible(bench: Bench) -> float:
    """Return a height that is read with room to spare, and still fits a row."""
    return min(LARGEST, max(10.0, 3 * bench.half))


def varied(height: float, most: float, draw: random.Random) -> float:
    """Return a height about this one, and at most `most`."""
    return min(most, height * math.exp(REACH / 2)) * math.exp(-REACH * draw.random())


def varied_level(level: float, easiest: float, draw: random.Random) -> float:
    """Return a level some steps away, not above the easiest."""
    most = STEPS // 2 if level * math.exp(STEP * STEPS / 2) <= easiest else 0
    return level * math.exp(STEP * draw.randint(most - STEPS, most))


def softened(ink: Ink, height: float, draw: random.Random) -> Ink:
    """Return a row whose rims are softer by a chance that has nothing to do with its letters."""
    sigma = SOFTEST * height * ink.over * draw.random()
    if sigma < SEEN_SOFT:
        return ink
    sheet = PIL.ImageOps.expand(ink.image, math.ceil(3 * sigma))
    return ink._replace(image=sheet.filter(PIL.ImageFilter.GaussianBlur(sigma)))


def grey(value: float) -> Colour:
    """Return a grey."""
    return (float(value), float(value), float(value))


def font_of(script: str) -> str | None:
    """Return the font of a script; the built-in one has no Chinese characters."""
    return find_cjk_font() if script == "cjk" else None


def random_row(script: str, glyphs: int, draw: random.Random) -> str:
    """Return glyphs drawn one by one, so that chance is exact; a row that spells a word is drawn again."""
    while True:
        text = "".join(draw.choice(ALPHABETS[script]) for _ in range(glyphs))
        if script != "letters" or not any(word in text for word in _spelt()):
            return text


FIVE = 5


@lru_cache(maxsize=1)
def _talk() -> frozenset[str]:
    return frozenset(read_config_file(str(files("snellen") / "catalog/exam/talk.toml"))["words"])


@lru_cache(maxsize=1)
def _spelt() -> tuple[str, ...]:
    letters = set(ALPHABETS["letters"])
    return tuple(word for word in words() if len(word) >= ALPHABET_OF_WORDS and set(word) <= letters)


class WordTest(RowTest):
    """One English word of five letters: what a language helps with. Right is the whole word."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.script = "words"
        self.alphabet = ""
        self._words = tuple(word for word in words() if len(word) == 5)

    def chance(self, level: float) -> float:
        """Return one in the list of words."""
        return 1.0 / len(self._words)

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw one word anywhere on the canvas."""
        text, height = draw.choice(self._words), varied_level(level, self.card.easiest, draw)
        picture = self.board(text, height, draw, gap=0.12, soft=True).png(self.card.pad_bytes)
        return Stimulus((picture,), text, height, {"height_px": round(height, 3)})

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for the word."""
        return self.card.wordings[wording]

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read the one word of five letters, in capitals where other words are not; several, or none, are no answer."""
        found = self._named(reply)
        guess = self.chance(1.0)
        if len(found) != 1:
            return Reading(guess, 1, guess, None)
        answer = found.pop()
        return Reading(float(answer == truth), 1, guess, answer)

    def _named(self, reply: str) -> set[str]:
        """Return the words of five letters that may be meant; `I think` is talk, and letters may stand apart."""
        pieces = "".join(c if c.isalpha() else " " for c in reply).split()
        if len(pieces) == FIVE and all(len(piece) == 1 for piece in pieces):
            return {"".join(pieces).upper()}
        said = [word for word in pieces if len(word) == FIVE]
        loud = {word for word in said if word.isupper()}
        return loud or {word.upper() for word in said} - (_talk() - set(self._words))
