"""Reading where it is not a clean page: letters on signs in drawn scenes, and lists as a picture or as plain text."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFilter
from numpy.typing import NDArray

from ..data.loaders.eyechart import font_for
from ..stats.intervals import Floats
from .board import encode_png, padded, row_ink
from .plate import Bench, Stimulus, fill
from .row_plates import RowTest, random_row, varied_level
from .scenes import PITCH, Held

NOISE_SD, SOFT_PX = 5.0, 0.45
"""Noise of the sensor in code values, and blur of the lens in px (sigma)."""
LEAN = 7.0
"""Signs are turned by up to so many degrees, and sheared as much."""
APART = 110.0
"""Letters and sign differ at least so much in lightness (code values)."""


class SceneRow(RowTest):
    """A row on a sign in a scene: sky, houses, ground, light from a side, blur and noise of a camera."""

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw the scene; the level is the height of capitals before the sign is turned."""
        text = random_row(self.script, self.card.glyphs, draw)
        actual = varied_level(level, self.card.easiest, draw)
        wide, tall = self.card.canvas
        scene = _scene((wide, tall), draw)
        _hang_sign(scene, text, actual, draw)
        noise = np.random.default_rng(draw.getrandbits(64)).standard_normal((tall, wide, 3))
        taken = np.asarray(scene.filter(PIL.ImageFilter.GaussianBlur(SOFT_PX)), np.float64)
        pixels = np.clip(np.rint(taken * _light((wide, tall), draw)[:, :, None] + NOISE_SD * noise), 0, 255)
        detail = {"alphabet": self.alphabet, "height_px": round(actual, 3)}
        # not compressed: what packs well would tell by the size of the file
        return Stimulus((encode_png(pixels.astype(np.uint8), level=0),), text, actual, detail)


def _scene(size: tuple[int, int], draw: random.Random) -> PIL.Image.Image:
    """Return a street: a sky that fades, houses with windows, a ground with texture."""
    wide, tall = size
    horizon = tall * draw.uniform(0.55, 0.75)
    sky = np.linspace(0, 1, tall)[:, None, None] * np.array([60, 40, 10]) + np.array([120, 160, 215])
    pixels = np.broadcast_to(sky, (tall, wide, 3)) + 22 * _clouds(size, draw)[:, :, None]
    scene = PIL.Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    pen, x = PIL.ImageDraw.Draw(scene), -draw.uniform(0, 60)
    while x < wide:
        house, roof = draw.uniform(70, 170), horizon - draw.uniform(120, 0.9 * horizon)
        tone = tuple(draw.randint(70, 190) for _ in range(3))
        pen.rectangle((x, roof, x + house, horizon), fill=tone)
        glass = tuple(max(0, part - draw.randint(30, 60)) for part in tone)
        for left in np.arange(x + 12, x + house - 22, 30):
            for top in np.arange(roof + 14, horizon - 30, 36):
                pen.rectangle((left, top, left + 15, top + 20), fill=glass)
        x += house
    earth = draw.randint(80, 130)
    pen.rectangle((0, horizon, wide, tall), fill=(earth, earth, earth - 12))
    grain = 14 * _clouds(size, draw)[:, :, None]
    grain[: round(horizon)] *= 0.4
    return PIL.Image.fromarray(np.clip(np.asarray(scene, np.float64) + grain, 0, 255).astype(np.uint8))


def _clouds(size: tuple[int, int], draw: random.Random) -> Floats:
    """Return noise whose strength falls with its frequency, as that of photographs does; standard deviation 1."""
    wide, tall = size
    field = np.fft.rfft2(np.random.default_rng(draw.getrandbits(64)).standard_normal((tall, wide)))
    distance = np.hypot(np.fft.fftfreq(tall)[:, None], np.fft.rfftfreq(wide)[None])
    distance[0, 0] = 1.0
    cloud = np.fft.irfft2(field / distance, (tall, wide))
    return np.asarray((cloud - cloud.mean()) / cloud.std())


def _light(size: tuple[int, int], draw: random.Random) -> Floats:
    """Return light that falls off towards a side."""
    wide, tall = size
    turn, depth = draw.uniform(0, 2 * math.pi), draw.uniform(0.05, 0.25)
    along = np.linspace(-1, 1, wide)[None] * math.cos(turn) + np.linspace(-1, 1, tall)[:, None] * math.sin(turn)
    return np.asarray(1.0 - depth * (along + 1) / 2)


def _hang_sign(scene: PIL.Image.Image, text: str, height: float, draw: random.Random) -> None:
    """Paste a sign with the row anywhere into the scene, turned and sheared a little."""
    ink = row_ink(text, height, gap=0.3)
    over, rim = ink.over, 0.6 * height
    size = (ink.image.width + round(2 * rim * over), ink.image.height + round(2 * rim * over))
    dark, light = draw.randint(10, 70), draw.randint(180, 245)
    tint = [draw.randint(-25, 25) for _ in range(3)]
    paper, letters = (light, dark) if draw.random() < 0.5 else (dark, light)
    sign = PIL.Image.new("RGB", size, tuple(min(255, max(0, paper + part)) for part in tint))
    spot = round(rim * over), round(rim * over)
    sign.paste((letters,) * 3, spot, ink.image)
    board = PIL.Image.new("L", size, 255)
    turn, shear = draw.uniform(-LEAN, LEAN), math.tan(math.radians(draw.uniform(-LEAN, LEAN)))
    both = [_leant(part, turn, shear) for part in (sign, board)]
    small = max(1, both[0].width // over), max(1, both[0].height // over)
    sign, board = (part.resize(small, PIL.Image.Resampling.BOX) for part in both)
    left = draw.randint(0, max(0, scene.width - small[0]))
    top = draw.randint(0, max(0, scene.height - small[1]))
    scene.paste(sign, (left, top), board)


def _leant(image: PIL.Image.Image, turn: float, shear: float) -> PIL.Image.Image:
    bicubic = PIL.Image.Resampling.BICUBIC
    wider = image.width + math.ceil(abs(shear) * image.height)
    move = (1.0, shear, -max(0.0, shear) * image.height, 0.0, 1.0, 0.0)
    leant = image.transform((wider, image.height), PIL.Image.Transform.AFFINE, move, bicubic)
    return leant.rotate(turn, bicubic, expand=True)


class Lookup(Held):
    """A list of numbers with a code each, of which one is asked for: a picture, or written into the question."""

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw a list of about `level` entries; the number that is asked for is any of them."""
        count = max(2, round(level))
        numbers, codes = draw.sample(range(100, 1000), count), list[str]()
        while len(codes) < count:
            code = random_row("letters", self.CODE, draw)
            if code not in codes:
                codes.append(code)
        asked = draw.randrange(count)
        detail: dict[str, Any] = {"picture": asked + 1, "number": numbers[asked], "codes": codes}
        entries = [f"{number} {code}" for number, code in zip(numbers, codes, strict=True)]
        if self.card.options.get("as") == "text":
            return Stimulus((), codes[asked], float(count), detail | {"list": "\n".join(entries)})
        picture, glyph = typeset_list(entries, 2 * bench.far, self.card.canvas, draw)
        return Stimulus(
            (padded(picture, self.card.pad_bytes),), codes[asked], float(count), detail | {"height_px": glyph}
        )

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for the code of a number; a list that is no picture comes first."""
        asked = fill(self.card.wordings[wording], {"number": stimulus.detail["number"]})
        return f"{stimulus.detail['list']}\n\n{asked}" if "list" in stimulus.detail else asked


ENTRY = 11.0
"""Width of an entry in heights of its capitals, the space to the next column included."""


def typeset_list(
    entries: Sequence[str], wanted: float, size: tuple[int, int], draw: random.Random
) -> tuple[bytes, float]:
    """Return entries in columns as a PNG, and the height of their capitals: as wanted, or what fits."""
    wide, tall = size[0] - 60, size[1] - 60

    def fits(columns: int) -> float:
        return min(wide / (ENTRY * columns), tall / (PITCH * math.ceil(len(entries) / columns)))

    columns = max(range(1, 13), key=fits)
    glyph, rows, over = min(wanted, fits(columns)), math.ceil(len(entries) / columns), 3
    sheet = PIL.Image.new("L", (size[0] * over, size[1] * over), 255)
    pen, face, dark = PIL.ImageDraw.Draw(sheet), font_for("letters", glyph * over, None), draw.randint(0, 24)
    left, top = 25 + draw.random() * 10, 25 + draw.random() * 10
    for place, entry in enumerate(entries):
        x, y = left + ENTRY * glyph * (place // rows), top + PITCH * glyph * (place % rows + 0.8)
        pen.text((x * over, y * over), entry, font=face, fill=dark, anchor="ls")
    small: NDArray[np.uint8] = np.asarray(sheet.reduce(over))
    return encode_png(np.repeat(small[:, :, None], 3, 2)), round(glyph, 2)
