"""Visual needles onto a drawn page: stamps, slips with tiny digits, sideways and margin words, tables, shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from .font_files import font_file
from .fonts import TextFont

Box = tuple[int, int, int, int]
INK = "#202020"
STAMP = "#b01030"
_SIZES_EM = {"stamp": (12, 4), "tiny": (6, 2), "rotated": (1.6, 9), "margin": (9, 1.2), "table-cell": (26, 7)}
_SIZES_EM["shape"] = (5, 5)
"""Kind -> width and height in font sizes."""


class Overlay(NamedTuple):
    """Something drawn over the text: what it shows and where it stands, in pixels."""

    kind: str
    value: str
    box: Box
    labels: tuple[str, str] = ("", "")
    """Row and column of a table's cell."""


def overlay_size(kind: str, font: TextFont) -> tuple[int, int]:
    """Return width and height in pixels that a mark of this kind needs on a page with this text font."""
    width, height = _SIZES_EM[kind]
    return round(width * font.size_px), round(height * font.size_px)


def draw_overlays(pixels: NDArray[np.uint8], overlays: Sequence[Overlay], font: TextFont) -> NDArray[np.uint8]:
    """Return the page with all marks drawn; a page without any comes back as it is."""
    if not overlays:
        return pixels
    page = Image.fromarray(pixels).convert("RGB")
    for overlay in overlays:
        width, height = overlay.box[2] - overlay.box[0], overlay.box[3] - overlay.box[1]
        slip = Image.new("RGB", (width, height), "white")
        _DRAWERS[overlay.kind](slip, overlay, font)
        page.paste(slip, overlay.box[:2])
    return np.asarray(page)


def _letters(font: TextFont, size_px: float) -> ImageFont.FreeTypeFont:
    file = font_file(font.name)
    if file is None:
        loaded = ImageFont.load_default(size=size_px)
        return loaded if isinstance(loaded, ImageFont.FreeTypeFont) else ImageFont.truetype(font.name, size_px)
    return ImageFont.truetype(str(file), size_px, layout_engine=ImageFont.Layout.BASIC)


def _centred(slip: Image.Image, text: str, font: TextFont, scale: float, colour: str = "black") -> None:
    """Write a text in the middle, at `scale` times the page's font size."""
    letters = _letters(font, font.size_px * scale)
    ImageDraw.Draw(slip).text((slip.width / 2, slip.height / 2), text, colour, letters, anchor="mm")


def _stamp(slip: Image.Image, overlay: Overlay, font: TextFont) -> None:
    draw = ImageDraw.Draw(slip)
    draw.rectangle((2, 2, slip.width - 3, slip.height - 3), outline=STAMP, width=3)
    _centred(slip, overlay.value.upper(), font, 1.5, STAMP)


def _tiny(slip: Image.Image, overlay: Overlay, font: TextFont) -> None:
    draw = ImageDraw.Draw(slip)
    draw.rectangle((0, 0, slip.width - 1, slip.height - 1), outline=INK)
    _centred(slip, overlay.value, font, 0.6)


def _sideways(slip: Image.Image, overlay: Overlay, font: TextFont) -> None:
    upright = Image.new("RGB", (slip.height, slip.width), "white")
    _centred(upright, overlay.value, font, 1.0)
    slip.paste(upright.transpose(Image.Transpose.ROTATE_90))


def _margin(slip: Image.Image, overlay: Overlay, font: TextFont) -> None:
    letters = _letters(font, min(font.size_px, slip.height))
    ImageDraw.Draw(slip).text((2, slip.height / 2), overlay.value, "black", letters, anchor="lm")


def _table(slip: Image.Image, overlay: Overlay, font: TextFont) -> None:
    """Three rows by two columns with the answer in the named cell and neighbours made of its own digits."""
    row, column = overlay.labels
    turned = [overlay.value[shift:] + overlay.value[:shift] for shift in range(1, 6)]
    other_rows, other_column = (row[::-1], column[::-1] + row[:1]), column[::-1]
    cells = [
        ["", other_column, column],
        [other_rows[0], turned[0], turned[1]],
        [row, turned[2], overlay.value],
        [other_rows[1], turned[3], turned[4]],
    ]
    draw, letters = ImageDraw.Draw(slip), _letters(font, font.size_px)
    width, height = (slip.width - 1) / 3, (slip.height - 1) / 4
    for index in range(5):
        draw.line((0, index * height, slip.width, index * height), INK)
        if index < 4:
            draw.line((index * width, 0, index * width, slip.height), INK)
    for down, line in enumerate(cells):
        for across, text in enumerate(line):
            draw.text(((across + 0.5) * width, (down + 0.5) * height), text, "black", letters, anchor="mm")


def _shape(slip: Image.Image, overlay: Overlay, font: TextFont) -> None:
    draw = ImageDraw.Draw(slip)
    side = min(slip.size)
    low, high, middle = side * 0.1, side * 0.9, side / 2
    if overlay.value == "circle":
        draw.ellipse((low, low, high, high), fill="#1060c0")
        return
    near, far = side * 0.38, side * 0.62
    outlines = {
        "square": [(low, low), (high, low), (high, high), (low, high)],
        "triangle": [(middle, low), (high, high), (low, high)],
        "star": [_star_point(index, middle, side) for index in range(10)],
        "cross": [
            (near, low), (far, low), (far, near), (high, near), (high, far), (far, far),
            (far, high), (near, high), (near, far), (low, far), (low, near), (near, near),
        ],
    }  # fmt: skip
    draw.polygon(outlines[overlay.value], fill="#1060c0")


def _star_point(index: int, middle: float, side: float) -> tuple[float, float]:
    radius = side * (0.42 if index % 2 == 0 else 0.17)
    angle = math.pi * index / 5 - math.pi / 2
    return middle + radius * math.cos(angle), middle + radius * math.sin(angle)


_DRAWERS: dict[str, Callable[[Image.Image, Overlay, TextFont], None]] = {
    "stamp": _stamp, "tiny": _tiny, "rotated": _sideways, "margin": _margin, "table-cell": _table, "shape": _shape,
}  # fmt: skip
