"""A Chart as data -> its picture: glyphs of exact height, drawn large and averaged down; no hinting moves an edge."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from msgspec import Struct
from PIL import Image as Pillow
from PIL import ImageChops, ImageDraw, ImageFilter, ImageFont

from ...core.errors import EnvironmentProblem
from ...core.ids import rng

OVERSAMPLE = 6
"""Drawn this many times larger, then averaged: antialiasing by coverage, the same for every glyph."""
PAPER = 255
REFERENCE = {"letters": "H", "digits": "7", "words": "H", "cjk": "田"}
"""The flat glyph whose ink height is the glyph height of a script."""
WORD_GAP = 0.7
"""Width of a space, in glyph heights beyond the gap between glyphs."""

Font = ImageFont.FreeTypeFont


class Line(Struct, frozen=True):
    """One line of a chart; contrast 1 is black on white, 0 is nothing."""

    text: str
    height_px: float
    contrast: float = 1.0


class Chart(Struct, frozen=True):
    """Everything that decides the pixels of one chart. Lengths in px unless they say otherwise."""

    lines: tuple[Line, ...]
    script: str = "letters"
    width: int = 640
    height: int = 640
    spacing: float = 0.5
    """Gap between glyphs, in glyph heights."""
    blur_px: float = 0.0
    """Standard deviation of a Gaussian blur."""
    rotation_deg: float = 0.0
    clutter: float = 0.0
    """Density of strokes behind the glyphs: 0 none, 1 crowded."""
    position: str = "centre"
    """Where the block of lines stands: centre, top-left, top-right, bottom-left or bottom-right."""
    font: str | None = None
    """A font file; None is the font that comes with Pillow."""
    seed: int = 0
    """Of the clutter."""


def draw(chart: Chart) -> Pillow.Image:
    """Return the picture of a chart in grey."""
    ink = ink_layer(chart)
    page = draw_clutter(chart) if chart.clutter else Pillow.new("L", (chart.width, chart.height), PAPER)
    page = ImageChops.multiply(page, ImageChops.invert(ink))
    return page.filter(ImageFilter.GaussianBlur(chart.blur_px)) if chart.blur_px else page


def ink_layer(chart: Chart) -> Pillow.Image:
    """Return how much ink lies on each pixel of the page, 0 to 255."""
    block = block_of_lines(chart)
    if chart.rotation_deg:
        block = block.rotate(chart.rotation_deg, Pillow.Resampling.BICUBIC, expand=True)
    block = block.reduce(OVERSAMPLE)
    page = Pillow.new("L", (chart.width, chart.height), 0)
    page.paste(block, place_block(chart, block.size))
    return page


def place_block(chart: Chart, size: tuple[int, int]) -> tuple[int, int]:
    """Return the upper left corner of the block; refuse a block that does not fit."""
    free_x, free_y = chart.width - size[0], chart.height - size[1]
    if free_x < 0 or free_y < 0:
        raise EnvironmentProblem(
            f"a chart of {size[0]}×{size[1]} px does not fit a canvas of {chart.width}×{chart.height} px: "
            "raise dataset.size or lower dataset.largest_px"
        )
    vertical, _, horizontal = chart.position.partition("-")
    shares = {"top": 0.04, "bottom": 0.96, "left": 0.04, "right": 0.96}
    return round(free_x * shares.get(horizontal, 0.5)), round(free_y * shares.get(vertical, 0.5))


def block_of_lines(chart: Chart) -> Pillow.Image:
    """Return all lines, centred under each other, as ink at OVERSAMPLE times their size."""
    strips = [line_strip(line, chart) for line in chart.lines]
    gaps = [line_gap(line.height_px) * OVERSAMPLE for line in chart.lines]
    width = _whole(max(strip.width for strip in strips))
    block = Pillow.new("L", (width, sum(strip.height for strip in strips) + sum(gaps)), 0)
    y = gaps[-1] // 2 // OVERSAMPLE * OVERSAMPLE
    for strip, gap in zip(strips, gaps, strict=True):
        block.paste(strip, ((width - strip.width) // 2 // OVERSAMPLE * OVERSAMPLE, y))
        y += strip.height + gap
    return block


def line_gap(height_px: float) -> int:
    """Return the space below a line in px: seven tenths of its height, but never so little that lines run together."""
    return max(12, round(0.7 * height_px))


def _whole(length: float) -> int:
    return -(-round(length) // OVERSAMPLE) * OVERSAMPLE


def line_strip(line: Line, chart: Chart) -> Pillow.Image:
    """Return one line as ink at OVERSAMPLE times its size; the flat glyphs begin at row `overhang`."""
    font = font_for(chart.script, line.height_px * OVERSAMPLE, chart.font)
    gap = chart.spacing * line.height_px * OVERSAMPLE
    boxes = [font.getbbox(char, anchor="ls") for char in line.text]
    space = gap * WORD_GAP + gap
    widths = [space if char == " " else box[2] - box[0] for char, box in zip(line.text, boxes, strict=True)]
    total = sum(widths) + gap * (len(widths) - 1)
    above, below = max(-box[1] for box in boxes), max(box[3] for box in boxes)
    above, below = _whole(above), _whole(max(0, below))
    strip = Pillow.new("L", (_whole(total) + 2 * OVERSAMPLE, above + below), 0)
    pen, x = ImageDraw.Draw(strip), float(OVERSAMPLE)
    for char, box, width in zip(line.text, boxes, widths, strict=True):
        pen.text((x - box[0], above), char, font=font, fill=round(255 * line.contrast), anchor="ls")
        x += width + gap
    return strip


def draw_clutter(chart: Chart) -> Pillow.Image:
    """Return a page of grey strokes and arcs, as many as `clutter` says."""
    page = Pillow.new("L", (chart.width * 2, chart.height * 2), PAPER)
    pen, draw_from = ImageDraw.Draw(page), rng(chart.seed, "clutter")
    for _ in range(round(chart.clutter * chart.width * chart.height / 900)):
        x, y = draw_from.uniform(0, page.width), draw_from.uniform(0, page.height)
        reach = draw_from.uniform(10, 60)
        grey, thickness = draw_from.randint(90, 215), draw_from.randint(2, 5)
        if draw_from.random() < 0.5:
            box, start = (x - reach, y - reach, x + reach, y + reach), draw_from.uniform(0, 360)
            pen.arc(box, start, start + draw_from.uniform(40, 200), fill=grey, width=thickness)
        else:
            end = x + draw_from.uniform(-reach, reach), y + draw_from.uniform(-reach, reach)
            pen.line((x, y, *end), fill=grey, width=thickness)
    return page.reduce(2)


@lru_cache(maxsize=256)
def font_for(script: str, height: float, file: str | None) -> Font:
    """Return the font whose reference glyph is `height` tall."""
    return _load(file, height / height_ratio(script, file))


@lru_cache(maxsize=32)
def height_ratio(script: str, file: str | None) -> float:
    """Return the ink height of a script's reference glyph per unit of font size, measured on a large rendering."""
    box = _load(file, 2000.0).getmask(REFERENCE[script], mode="1").getbbox()
    if box is None:
        glyph = f"no glyph for {REFERENCE[script]!r}"
        raise EnvironmentProblem(f"font {file!r} has {glyph}: name another with dataset.font")
    return float(box[3] - box[1]) / 2000.0


def _load(file: str | None, size: float) -> Font:
    try:
        return ImageFont.truetype(file, size) if file else cast("Font", ImageFont.load_default(size))
    except OSError as error:
        fix = "name a .ttf or .otf file with dataset.font"
        raise EnvironmentProblem(f"font {file!r} cannot be opened: {error}; {fix}") from None


def has_glyphs(file: str, text: str) -> bool:
    """Say whether a font file draws these characters, rather than the box for a missing one."""
    font = _load(file, 64)
    missing = bytes(font.getmask("\U000fffff"))
    return all(bytes(font.getmask(char)) != missing for char in text)
