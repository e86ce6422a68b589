"""Letters on the places of a picture: over what stands there, or beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import PIL.Image
from PIL import ImageDraw, ImageFont

INK, GROUND, FRAME = "black", "white", (200, 0, 0)
SMALLEST_PX, LARGEST_PX = 8, 100


class LetteredPlace(NamedTuple):
    """A letter and the box it names, in pixels: left, top, right, bottom."""

    letter: str
    box: tuple[int, int, int, int]


def draw_letters(picture: PIL.Image.Image, places: Sequence[LetteredPlace], *, covered: bool) -> PIL.Image.Image:
    """Return the picture with every letter: in a white box over its place, or beside its place, which is framed."""
    drawn = picture.convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for place in places:
        (_cover if covered else _frame)(pen, place, drawn.width)
    return drawn


def _cover(pen: ImageDraw.ImageDraw, place: LetteredPlace, width: int) -> None:
    left, top, right, bottom = place.box
    pen.rectangle(place.box, fill=GROUND)
    size = min(LARGEST_PX, bottom - top, (right - left) * 2 // max(1, len(place.letter)))
    pen.text(((left + right) / 2, (top + bottom) / 2), place.letter, INK, _letters(size), anchor="mm")


def _frame(pen: ImageDraw.ImageDraw, place: LetteredPlace, width: int) -> None:
    left, top, right, bottom = place.box
    pen.rectangle(place.box, outline=FRAME)
    font = _letters(min(LARGEST_PX, bottom - top))
    needed = pen.textlength(place.letter, font) + 4
    across = left - needed if left >= needed or right + needed > width else right + 4
    at = (max(0, across), (top + bottom) / 2)
    pen.text(at, place.letter, FRAME, font, anchor="lm", stroke_width=2, stroke_fill=GROUND)


def _letters(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(max(SMALLEST_PX, size_px))
