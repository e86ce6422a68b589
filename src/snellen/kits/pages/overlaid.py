"""Degradations laid over a page: shadow, the other side, watermark, photocopier, low ink, moiré, covered parts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from .font_files import default_font
from .fonts import TextFont

Generator = np.random.Generator


def shadow(image: Image.Image, strength: float, generator: Generator) -> Image.Image:
    """Darken towards one side with a soft edge, as a hand over the page does; the darkest part loses grey levels."""
    angle, middle = generator.uniform(0, 2 * math.pi), generator.uniform(0.35, 0.65)
    across = np.linspace(-0.5, 0.5, image.width, dtype=np.float32)[None, :] * math.cos(angle)
    down = np.linspace(-0.5, 0.5, image.height, dtype=np.float32)[:, None] * math.sin(angle)
    light = 1 - np.float32(strength) / (1 + np.exp(-(across + down + 0.5 - middle) * 14))
    return _scaled(image, light.astype(np.float32))


def cast_shadow(image: Image.Image, level: tuple[float, float], generator: Generator) -> Image.Image:
    """Darken a share of the page towards one side by a share of the light, with a soft edge: (light lost, area)."""
    strength, area = level
    angle = generator.uniform(0, 2 * math.pi)
    across = np.linspace(-0.5, 0.5, image.width, dtype=np.float32)[None, :] * math.cos(angle)
    down = np.linspace(-0.5, 0.5, image.height, dtype=np.float32)[:, None] * math.sin(angle)
    place = across + down
    edge = np.quantile(place[:: max(1, image.height // 64), :: max(1, image.width // 64)], 1 - area)
    light = 1 - np.float32(strength) / (1 + np.exp(np.clip(-(place - np.float32(edge)) * 40, -60, 60)))
    return _scaled(image, light.astype(np.float32))


def bleed_through(image: Image.Image, alpha: float, _: Generator) -> Image.Image:
    """Show the mirrored page itself through the paper, softened."""
    back = ImageOps.mirror(ImageChops.offset(image, 7, 5)).filter(ImageFilter.GaussianBlur(0.7))
    faint = back.point([round(255 - (255 - value) * alpha) for value in range(256)] * len(back.getbands()))
    return ImageChops.multiply(image, faint)


def watermark(image: Image.Image, alpha: float, generator: Generator) -> Image.Image:
    """Print a large slanted word many times over the page."""
    return overprint(image, (alpha, 0.55), generator)


def overprint(image: Image.Image, level: tuple[float, float], generator: Generator) -> Image.Image:
    """Print a large slanted word many times: (opacity, distance of its rows in its height)."""
    alpha, spacing = level
    font = TextFont(default_font(), max(12.0, image.width / 14))
    words = ("CONFIDENTIAL", "SPECIMEN", "DO NOT COPY")[int(generator.integers(3))]
    slanted = _stamp_of(words, font).rotate(float(generator.uniform(15, 40)), expand=True)
    cover = Image.new("L", image.size)
    step_y = max(20, round(slanted.height * spacing))
    for row, y in enumerate(range(-step_y, image.height, step_y)):
        for x in range(-(slanted.width // 2) * (row % 2), image.width, slanted.width):
            cover.paste(slanted, (x, y), slanted)
    mask = cover.point([round(value * alpha) for value in range(256)])
    return Image.composite(Image.new(image.mode, image.size, "#505050"), image, mask)


def _stamp_of(words: str, font: TextFont) -> Image.Image:
    pieces = [font.glyph(character) for character in words]
    stamp = Image.new("L", (sum(piece[3] for piece in pieces) + 8, round(font.size_px * 1.4)))
    pen = 4
    for bitmap, left, top, advance in pieces:
        if bitmap.size:
            stamp.paste(Image.fromarray(bitmap), (pen + left, font.ascent_px + top))
        pen += advance
    return stamp


def photocopy(image: Image.Image, strength: float, generator: Generator) -> Image.Image:
    """A worn copier: toner specks, a dirty drum's vertical bands, patches where toner did not hold."""
    values = np.asarray(image, np.float32)
    height, width = values.shape[:2]
    coarse = Image.fromarray(generator.random((24, 18), dtype=np.float32))
    clouds = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    washed = np.clip((clouds - 0.75 + 0.45 * strength) * 3, 0, 1) * strength
    dirty = generator.random(width, dtype=np.float32) > 1 - 0.02 * strength
    bands = np.where(dirty, np.float32(110 * strength), np.float32(0))
    specks = (generator.random((height, width), dtype=np.float32) < 0.035 * strength**2) * np.float32(200)
    if values.ndim == 3:
        washed, specks = washed[:, :, None], specks[:, :, None]
    result = values + (255 - values) * washed - (bands[None, :] if values.ndim == 2 else bands[None, :, None]) - specks
    return Image.fromarray(np.clip(result, 0, 255).astype(np.uint8))


def low_ink(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """A clogged nozzle: whole rows of pixels stay white."""
    values = np.array(image)
    rows = generator.random(values.shape[0]) < share
    lost = values[rows].astype(np.int16)
    values[rows] = np.clip(lost + 190, 0, 255).astype(np.uint8)
    return Image.fromarray(values)


def moire(image: Image.Image, strength: float, generator: Generator) -> Image.Image:
    """Photograph a screen: two line gratings, slightly off, beat over the page."""
    angle, period = generator.uniform(0.05, 0.4), generator.uniform(2.6, 3.4)
    across = np.arange(image.width, dtype=np.float32)[None, :]
    down = np.arange(image.height, dtype=np.float32)[:, None]
    first = np.sin((across * math.cos(angle) + down * math.sin(angle)) * np.float32(2 * math.pi / period))
    second = np.sin((down * math.cos(angle) - across * math.sin(angle)) * np.float32(2 * math.pi / (period * 1.07)))
    light = 1 - np.float32(strength) * (0.5 + 0.25 * (first + second))
    return _scaled(image, light.astype(np.float32))


def occlude(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Cover `share` of the area with grey slips of a few words each."""
    covered = image.copy()
    draw = ImageDraw.Draw(covered)
    width, height = max(4, image.width // 9), max(4, image.height // 40)
    for _ in range(max(1, round(share * image.width * image.height / (width * height)))):
        x, y = int(generator.integers(-width // 2, image.width)), int(generator.integers(-height // 2, image.height))
        draw.rectangle((x, y, x + width, y + height), fill="#808080")
    return covered


def _scaled(image: Image.Image, light: NDArray[np.float32]) -> Image.Image:
    values = np.asarray(image)
    return Image.fromarray((values * (light if values.ndim == 2 else light[:, :, None])).astype(np.uint8))
