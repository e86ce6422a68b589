"""Shapes to a picture: drawn much larger, averaged down to coverage, so that parts of a pixel count."""

from __future__ import annotations

import io
import math
import random
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import PIL.Image
import PIL.ImageDraw
from numpy.typing import NDArray

from ..core.errors import ConfigError
from ..data.loaders.eyechart import Font, font_for
from ..stats.intervals import Floats

WHITE = np.array([0.95047, 1.0, 1.08883])
TO_RGB = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
TO_XYZ = np.linalg.inv(TO_RGB)
KNEE = 6 / 29


def lab_to_rgb(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    """Return the nearest code values of a colour."""
    middle = (lightness + 16) / 116
    parts = np.array([middle + a / 500, middle, middle - b / 200])
    xyz = WHITE * np.where(parts > KNEE, parts**3, 3 * KNEE**2 * (parts - 4 / 29))
    linear = np.clip(TO_RGB @ xyz, 0.0, 1.0)
    values = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    red, green, blue = np.rint(255 * values)
    return float(red), float(green), float(blue)


def chroma_of(colours: Floats) -> Floats:
    """Return (a*, b*) of code values, a row a colour."""
    values = np.asarray(colours) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    share = (linear @ TO_XYZ.T) / WHITE
    parts = np.where(share > KNEE**3, np.cbrt(share), share / (3 * KNEE**2) + 4 / 29)
    return np.stack([500 * (parts[:, 0] - parts[:, 1]), 200 * (parts[:, 1] - parts[:, 2])], 1)


OVER = 8
"""How much larger shapes are drawn before they are averaged down."""
LEVEL = 1
"""Compression of every picture: the same for all."""
DATA = b"IDAT"
HEAD = 8 + 25
"""Bytes before the pixels of a PNG that says nothing else: its signature and its first part."""
PAD = b"snPd"
"""A private chunk that decoders skip: pictures of one test all get the same size on disk."""

JFIF, APP15 = b"\xff\xe0", b"\xff\xef"
"""The first segment of a JPEG, and one that no decoder has a use for."""

Coverage = NDArray[np.float32]
Point = tuple[float, float]
Colour = tuple[float, float, float]
Box = tuple[float, float, float, float]


class Paper:
    """Large paper under a small part of a board; `pen` draws on it in places that `spots` gives."""

    def __init__(self, box: Box) -> None:
        self.left, self.top = math.floor(box[0]) - 1, math.floor(box[1]) - 1
        size = (math.ceil(box[2]) + 1 - self.left) * OVER, (math.ceil(box[3]) + 1 - self.top) * OVER
        self._image = PIL.Image.new("L", size, 0)
        self.pen = PIL.ImageDraw.Draw(self._image)

    def spots(self, *points: Point) -> list[Point]:
        """Return where points of the board (px) lie on the paper."""
        return [((x - self.left) * OVER - 0.5, (y - self.top) * OVER - 0.5) for x, y in points]

    def coverage(self) -> Coverage:
        """Return how much of each pixel of the board is covered."""
        return np.asarray(self._image.reduce(OVER), np.float32) / np.float32(255.0)


class Board:
    """A picture in the making: three channels of code values."""

    def __init__(self, width: int, height: int, paper: int = 255) -> None:
        self.pixels = np.full((height, width, 3), paper, np.uint8)

    def stamp(self, ink: Coverage, left: int, top: int, colour: Colour) -> None:
        """Lay ink of a colour over the board; what lies outside is lost."""
        height, width = self.pixels.shape[:2]
        x0, y0, x1, y1 = max(0, left), max(0, top), min(width, left + ink.shape[1]), min(height, top + ink.shape[0])
        if x0 >= x1 or y0 >= y1:
            return
        part = ink[y0 - top : y1 - top, x0 - left : x1 - left, None]
        under = self.pixels[y0:y1, x0:x1].astype(np.float32)
        self.pixels[y0:y1, x0:x1] = np.rint(under + part * (np.asarray(colour, np.float32) - under))

    def paint(self, box: Box, colour: Colour, draw: Callable[[Paper], None]) -> None:
        """Draw a shape within `box` (px) on paper that is OVER times larger."""
        paper = Paper(box)
        draw(paper)
        self.stamp(paper.coverage(), paper.left, paper.top, colour)

    def disc(self, centre: Point, radius: float, colour: Colour, rim: float = 1.0) -> None:
        """Draw a filled disc that fades over a rim of so many px; one of 1 px covers pixels by how far it reaches."""
        (x, y), reach = centre, radius + rim / 2
        left, top, size = math.floor(x - reach) - 1, math.floor(y - reach) - 1, math.ceil(2 * reach) + 3
        across, down = np.arange(size) + 0.5 + left - x, np.arange(size) + 0.5 + top - y
        ink = np.clip((reach - np.hypot(across, down[:, None])) / rim, 0.0, 1.0)
        self.stamp(np.asarray(ink, np.float32), left, top, colour)

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """Draw a filled polygon."""
        across, down = [x for x, _ in points], [y for _, y in points]
        box = (min(across), min(down), max(across), max(down))
        self.paint(box, colour, lambda paper: paper.pen.polygon(paper.spots(*points), fill=255))

    def stroke(self, start: Point, end: Point, width: float, colour: Colour) -> None:
        """Draw a straight stroke with square ends."""
        length = math.hypot(end[0] - start[0], end[1] - start[1]) or 1.0
        x, y = -(end[1] - start[1]) / length * width / 2, (end[0] - start[0]) / length * width / 2
        corners = ((start[0] + x, start[1] + y), (end[0] + x, end[1] + y), (end[0] - x, end[1] - y))
        self.polygon([*corners, (start[0] - x, start[1] - y)], colour)

    def png(self, pad_to: int = 0) -> bytes:
        """Return a PNG without metadata, filled up to the next multiple of `pad_to` bytes."""
        return padded(encode_png(self.pixels), pad_to)


def encode_png(pixels: NDArray[np.uint8], level: int = LEVEL) -> bytes:
    """Return code values as a PNG without metadata."""
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "PNG", compress_level=level)
    return file.getvalue()


def padded(png: bytes, pad_to: int) -> bytes:
    """Return a PNG of a size that is a multiple of `pad_to` bytes: neither size nor parts of a file tell its answer."""
    if not pad_to:
        return png
    png = _in_one_part(png)
    return png[:-12] + _part(PAD + bytes(-(len(png) + 12) % pad_to)) + png[-12:]


def _in_one_part(png: bytes) -> bytes:
    """Return a PNG whose packed pixels are one part: how many an encoder makes of them follows the ink."""
    at, pixels = HEAD, b""
    while png[at + 4 : at + 8] == DATA:
        length = int.from_bytes(png[at : at + 4], "big")
        pixels += png[at + 8 : at + 8 + length]
        at += 12 + length
    return png[:HEAD] + _part(DATA + pixels) + png[at:]


def _part(body: bytes) -> bytes:
    """Return one part of a PNG: a name and its content, with length and checksum."""
    return (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def padded_jpeg(jpeg: bytes, pad_to: int) -> bytes:
    """Return a JPEG whose size is a multiple of `pad_to` (at most 65,000) bytes, by a segment that decoders skip."""
    if not pad_to:
        return jpeg
    length = -(len(jpeg) + 4) % pad_to
    after = 4 + int.from_bytes(jpeg[4:6], "big") if jpeg[2:4] == JFIF else 2
    return jpeg[:after] + APP15 + (length + 2).to_bytes(2, "big") + bytes(length) + jpeg[after:]


class Ink(NamedTuple):
    """Large ink, and how much larger than it will be."""

    image: PIL.Image.Image
    over: int


def over_for(height: float) -> int:
    """Return how much larger glyphs of a height are drawn: enough for the smallest, not more for the largest."""
    return OVER if height <= 24 else 4 if height <= 90 else 2


def row_ink(text: str, height: float, *, gap: float = 0.5, script: str = "letters", font: str | None = None) -> Ink:
    """Return a row of glyphs as ink, some times its size: capitals `height` px tall, `gap` apart."""
    over = over_for(height)
    face: Font = font_for(script, height * over, font)
    boxes = [face.getbbox(char, anchor="ls") for char in text]
    space = gap * height * over
    widths = [box[2] - box[0] for box in boxes]
    above, below = max(-box[1] for box in boxes), max(0, *(box[3] for box in boxes))
    total = math.ceil(sum(widths) + space * (len(text) - 1)) + 2
    strip = PIL.Image.new("L", (total, math.ceil(above + below) + 2), 0)
    pen, x = PIL.ImageDraw.Draw(strip), 1.0
    for char, box, width in zip(text, boxes, widths, strict=True):
        pen.text((x - box[0], above + 1), char, font=face, fill=255, anchor="ls")
        x += width + space
    return Ink(strip, over)


def lay(board: Board, ink: Ink, draw: random.Random, colour: Colour, box: Box) -> None:
    """Lay large ink down anywhere within a box, at any fraction of a pixel."""
    sheet_of, over = ink
    wide, tall = sheet_of.width / over, sheet_of.height / over
    if wide + 1 > box[2] - box[0] or tall + 1 > box[3] - box[1]:
        room = f"{box[2] - box[0]:.0f} x {box[3] - box[1]:.0f}"
        raise ConfigError(
            f"a stimulus of {wide:.0f} x {tall:.0f} px does not fit into {room} px: lower its easiest level"
        )
    left = box[0] + draw.random() * max(0.0, box[2] - box[0] - wide - 1)
    top = box[1] + draw.random() * max(0.0, box[3] - box[1] - tall - 1)
    right, down = round(left % 1 * over), round(top % 1 * over)
    sheet = PIL.Image.new(
        "L", (-(-(sheet_of.width + right) // over) * over, -(-(sheet_of.height + down) // over) * over), 0
    )
    sheet.paste(sheet_of, (right, down))
    coverage = np.asarray(sheet.reduce(over), np.float32) / np.float32(255.0)
    board.stamp(coverage, math.floor(left), math.floor(top), colour)
