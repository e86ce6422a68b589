"""A script and a moment to a picture."""

from __future__ import annotations

import math
from functools import lru_cache

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from ...core.ids import rng
from .script import Script, Thing

SCENERY = 6
INK = "#111111"


def _tip(number: int) -> tuple[float, float]:
    reach, turn = (1.1, 0.45)[number % 2], number * math.pi / 5
    return reach * math.sin(turn), -reach * math.cos(turn)


POINTS = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "triangle": [(0.0, -1.0), (1.0, 0.9), (-1.0, 0.9)],
    "star": [_tip(n) for n in range(10)],
    "cross": [
        *((-0.35, -1.0), (0.35, -1.0), (0.35, -0.35), (1.0, -0.35), (1.0, 0.35), (0.35, 0.35)),
        *((0.35, 1.0), (-0.35, 1.0), (-0.35, 0.35), (-1.0, 0.35), (-1.0, -0.35), (-0.35, -0.35)),
    ],
}  # fmt: skip


def paint(script: Script, second: float) -> PIL.Image.Image:
    """Return what is seen at a moment."""
    picture = PIL.Image.new("RGB", (script.width, script.height), _shade(script, second))
    pen = PIL.ImageDraw.Draw(picture)
    if script.scenery:
        _draw_scenery(pen, script, second)
    for thing in script.things:
        if thing.start <= second + 1e-9 and second < thing.end - 1e-9:
            _draw(pen, script, thing, second)
    return picture


def _shade(script: Script, second: float) -> tuple[int, int, int]:
    """Return the colour of the background: a slow walk through pale ones."""
    turn = rng(script.seed, "shade").uniform(0, 2 * math.pi) + second / 7
    return tuple(round(205 + 25 * math.sin(turn + part)) for part in (0.0, 2.1, 4.2))  # type: ignore[return-value]


@lru_cache(maxsize=64)
def _wanderers(seed: int) -> tuple[tuple[float, ...], ...]:
    draw = rng(seed, "scenery")
    return tuple(tuple(draw.random() for _ in range(6)) for _ in range(SCENERY))


def _draw_scenery(pen: PIL.ImageDraw.ImageDraw, script: Script, second: float) -> None:
    """Draw shapes that drift and mean nothing, in greys: no question is about them."""
    for x, y, speed_x, speed_y, size, grey in _wanderers(script.seed):
        place = ((x + (speed_x - 0.5) * second / 8) % 1.0, (y + (speed_y - 0.5) * second / 8) % 1.0)
        level = round(150 + 50 * grey)
        colour = f"#{level:02x}{level:02x}{level:02x}"
        _shape(pen, script, Thing("square", 0, 1, place, colour=colour, size=0.04 + 0.08 * size), second)


def _draw(pen: PIL.ImageDraw.ImageDraw, script: Script, thing: Thing, second: float) -> None:
    if thing.what == "veil":
        pen.rectangle((0, 0, script.width, script.height), fill=thing.colour)
    elif thing.what == "card":
        _card(pen, script, thing)
    else:
        _shape(pen, script, thing, second)


def _shape(pen: PIL.ImageDraw.ImageDraw, script: Script, thing: Thing, second: float) -> None:
    place = thing.at(second)
    x, y, reach = place[0] * script.width, place[1] * script.height, thing.size * script.height
    if thing.what == "disc":
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=thing.colour)
    else:
        pen.polygon([(x + a * reach, y + b * reach) for a, b in POINTS[thing.what]], fill=thing.colour)


def _card(pen: PIL.ImageDraw.ImageDraw, script: Script, thing: Thing) -> None:
    font = _font(round(script.height * 0.095))
    left, top, right, bottom = pen.textbbox((0, 0), thing.text, font=font)
    width, height = right - left, bottom - top
    x = min(max(thing.place[0] * script.width - width / 2, 12), script.width - width - 12)
    y = min(max(thing.place[1] * script.height - height / 2, 12), script.height - height - 12)
    pen.rectangle((x - 10, y - 8, x + width + 10, y + height + 8), fill="white")
    pen.text((x - left, y - top), thing.text, fill=INK, font=font)


@lru_cache(maxsize=8)
def _font(size: int) -> PIL.ImageFont.FreeTypeFont | PIL.ImageFont.ImageFont:
    return PIL.ImageFont.load_default(size)
