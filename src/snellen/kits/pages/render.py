"""Text into page images: lines drawn from a cache of word bitmaps, and the same bytes every time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from ...core.errors import UsageError
from .fonts import Bitmap, Glyph, TextFont, is_complex
from .layout import MARK, Line, Word, clean_text, lay_out
from .page_style import PageStyle

_PNG = b"\x89PNG\r\n\x1a\n"
_MARK_COLOUR = "#d00000"


class Page(NamedTuple):
    """One drawn page: pixels (H×W grey or H×W×3 colour) and its lines with their boxes."""

    number: int
    pixels: NDArray[np.uint8]
    lines: list[Line]

    def image(self) -> Image.Image:
        """Return the page as a Pillow image."""
        return Image.fromarray(self.pixels)


class Accent(NamedTuple):
    """A stretch of the text printed in its own colour (character offsets)."""

    start: int
    end: int
    colour: str


class _Job(NamedTuple):
    text: str
    style: PageStyle
    font: TextFont
    accents: Sequence[Accent]


def page_font(style: PageStyle) -> TextFont:
    """Return the style's font at its pixel size; keep it for many documents, its cache is the speed."""
    return TextFont(style.font, style.pixels(style.size_pt), style.letter_spacing_px)


def render_pages(
    text: str, style: PageStyle, font: TextFont | None = None, accents: Sequence[Accent] = ()
) -> Iterator[Page]:
    """Yield page after page; only one page is ever held. Page numbers begin at 1."""
    job = _Job(clean_text(text), style, font or page_font(style), accents)
    waiting: list[Line] | None = None
    number = 0
    for lines in lay_out(job.text, style, job.font):
        if waiting is not None:
            number += 1
            yield _page(number, waiting, job, last=False)
        waiting = lines
    yield _page(number + 1, waiting or [], job, last=True)


def span_boxes(
    lines: Sequence[Line], start: int, end: int, font: TextFont
) -> list[tuple[Line, tuple[int, int, int, int]]]:
    """Return where characters `start`–`end` stand: one box for each line they touch, in pixels."""
    found = []
    for line in lines:
        touched = [word for word in line.words if word[2] < end and word[2] + len(word[0]) > start]
        if touched:
            left, right = _extent(line, touched, start, end, font)
            found.append((line, (line.x + left, line.y, line.x + right, line.y + line.height)))
    return found


def _extent(line: Line, touched: Sequence[Word], start: int, end: int, font: TextFont) -> tuple[int, int]:
    """Return the leftmost and rightmost pixel, from the line's edge, of the touched part of its words."""
    if not line.leftward:
        (first, x0, at), (last, x1, begin) = touched[0], touched[-1]
        return x0 + font.advance(first[: max(0, start - at)]), x1 + font.advance(last[: max(0, end - begin)])
    edges = []
    turned = {line.words[place] for place in line.leftward}
    for word in touched:
        text, x, at = word
        near, far = font.advance(text[: max(0, start - at)]), font.advance(text[: max(0, end - at)])
        width = font.word(text, leftward=word in turned)[3]
        edges += [x + width - far, x + width - near] if word in turned else [x + near, x + far]
    return min(edges), max(edges)


def cropped_size(lines: Sequence[Line], style: PageStyle) -> tuple[int, int]:
    """Return the size of a page cut below its text, with `all` also beside it; never under 28 px, models' smallest."""
    margin = round(style.pixels(style.margin_pt))
    width, height = style.page_px
    bottom = max((line.y + line.height for line in lines), default=0) + margin
    right = max((line.x + line.width for line in lines), default=0) + margin if style.crop == "all" else width
    return max(28, min(right, width)), max(28, min(bottom, height))


def png_bytes(pixels: NDArray[np.uint8], dpi: float | None = None) -> bytes:
    """Encode grey or RGB pixels as PNG: unfiltered rows, fast deflate, no time stamp; text compresses well so."""
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = [(b"IHDR", header)]
    if dpi:
        per_metre = round(dpi / 0.0254)
        chunks.append((b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)))
    chunks += [(b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b"")]
    return _PNG + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _page(number: int, lines: list[Line], job: _Job, *, last: bool) -> Page:
    style = job.style
    coverage = _coverage(lines, job)
    pixels = _coloured(coverage, [*job.accents, *_newline_marks(lines, job.text, style)], lines, job)
    if style.crop == "all" or (style.crop == "last" and last):
        width, height = cropped_size(lines, style)
        pixels = np.ascontiguousarray(pixels[:height, :width])
    return Page(number, pixels, lines)


def _coverage(lines: Sequence[Line], job: _Job) -> Bitmap:
    """Draw all lines of a page at once; a frame around it takes what hangs over the edge."""
    font = job.font
    width, height = job.style.page_px
    frame = int(3 * font.size_px) + 2
    canvas = np.zeros((height + 2 * frame, width + 2 * frame), np.uint8)
    simple: list[tuple[str, int, int]] = []
    for line in lines:
        baseline = line.y + font.ascent_px + frame
        for place, (word, x, _) in enumerate(line.words):
            if is_complex(word) or place in line.leftward:
                _blit(canvas, font.word(word, leftward=place in line.leftward), line.x + x + frame, baseline)
            else:
                simple.append((word, line.x + x + frame, baseline))
    if simple:
        _stamp(canvas, simple, font)
    return np.ascontiguousarray(canvas[frame:-frame, frame:-frame])


def _stamp(canvas: Bitmap, words: Sequence[tuple[str, int, int]], font: TextFont) -> None:
    """Draw words glyph by glyph: every place of one character in a single numpy step."""
    codes = np.frombuffer("".join(word for word, _, _ in words).encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.array([len(word) for word, _, _ in words])
    characters, which = np.unique(codes, return_inverse=True)
    inks = [font.ink(chr(code)) for code in characters]
    advances = np.array([ink[3] for ink in inks])[which]
    pen = np.cumsum(advances) - advances
    pen -= np.repeat(pen[np.cumsum(lengths) - lengths], lengths)
    width = canvas.shape[1]
    places = np.repeat([y * width + x for _, x, y in words], lengths) + pen
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))
    flat = canvas.reshape(-1)
    for (rows, columns, values, _), group in zip(inks, np.split(places[order], ends[:-1]), strict=True):
        index = group[:, None] + (rows * width + columns)[None, :]
        flat[index] = np.maximum(flat[index], values)


def _blit(canvas: Bitmap, glyph: Glyph, x: int, baseline: int) -> None:
    bitmap, left, top, _ = glyph
    x, y = max(0, x + left), max(0, baseline + top)
    target = canvas[y : y + bitmap.shape[0], x : x + bitmap.shape[1]]
    np.maximum(target, bitmap[: target.shape[0], : target.shape[1]], out=target)


def _newline_marks(lines: Sequence[Line], text: str, style: PageStyle) -> list[Accent]:
    if style.newlines != "mark" or not lines:
        return []
    begin, end = lines[0].start, lines[-1].end
    places = [at for at, character in enumerate(text[begin:end], begin) if character in ("\n", MARK)]
    return [Accent(at, at + 1, _MARK_COLOUR) for at in places]


def _coloured(coverage: Bitmap, accents: Sequence[Accent], lines: list[Line], job: _Job) -> NDArray[np.uint8]:
    ink, paper = _rgb(job.style.ink), _rgb(job.style.paper)
    spans = ((accent.colour, span_boxes(lines, accent.start, accent.end, job.font)) for accent in accents)
    boxes = [(box, _rgb(colour)) for colour, touched in spans for _, box in touched]
    if not boxes and ink == (0, 0, 0) and paper == (255, 255, 255):
        return 255 - coverage
    if not boxes and len(set(ink)) == len(set(paper)) == 1:
        return _blend(coverage, ink[0], paper[0])
    pixels = _blend_colours(coverage, ink, paper)
    for (x0, y0, x1, y1), colour in boxes:
        pixels[y0:y1, x0:x1] = _blend_colours(coverage[y0:y1, x0:x1], colour, paper)
    return pixels


def _blend_colours(coverage: Bitmap, ink: tuple[int, ...], paper: tuple[int, ...]) -> NDArray[np.uint8]:
    return np.stack([_blend(coverage, ink[channel], paper[channel]) for channel in range(3)], axis=-1)


def _blend(coverage: Bitmap, ink: int, paper: int) -> NDArray[np.uint8]:
    table = np.round(paper + (ink - paper) * np.arange(256) / 255).astype(np.uint8)
    return table[coverage]


def _rgb(colour: str) -> tuple[int, int, int]:
    try:
        return ImageColor.getrgb(colour)[:3]
    except ValueError:
        raise UsageError(f"{colour!r} is not a colour: write #rrggbb or a CSS name") from None
