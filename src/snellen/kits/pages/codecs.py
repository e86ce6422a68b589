"""Degradations by encoding and resampling: JPEG, WebP, lower resolution, pixel blocks, dithering."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

Generator = np.random.Generator


def jpeg(image: Image.Image, quality: int, _: Generator) -> Image.Image:
    """Encode once with JPEG at a quality of 1–95."""
    return _through(image, "JPEG", quality=quality)


def jpeg_repeat(image: Image.Image, times: int, _: Generator) -> Image.Image:
    """Save again and again at falling quality, moved by a pixel each time so that the blocks never line up."""
    for index in range(times):
        shifted = Image.new(image.mode, image.size, "white")
        shifted.paste(image, (index % 2, (index // 2) % 2))
        shifted = _through(shifted, "JPEG", quality=max(8, 60 - 3 * index))
        image = Image.new(image.mode, image.size, "white")
        image.paste(shifted, (-(index % 2), -((index // 2) % 2)))
    return image


def webp(image: Image.Image, quality: int, _: Generator) -> Image.Image:
    """Encode once with lossy WebP, the fastest method."""
    return _through(image.convert("RGB"), "WEBP", quality=quality, method=0).convert(image.mode)


def jpeg_small(image: Image.Image, level: tuple[int, float], _: Generator) -> Image.Image:
    """Shrink to a share of each side, encode with JPEG at a quality, and enlarge again."""
    quality, scale = level
    sent = _through(image.resize(_scaled(image, scale), Image.Resampling.BICUBIC), "JPEG", quality=quality)
    return sent.resize(image.size, Image.Resampling.BICUBIC)


def webp_small(image: Image.Image, level: tuple[int, float], _: Generator) -> Image.Image:
    """Send it as a messenger does: shrunk to a share of each side, in lossy WebP of a quality, and enlarged again."""
    quality, scale = level
    small = image.convert("RGB").resize(_scaled(image, scale), Image.Resampling.BICUBIC)
    sent = _through(small, "WEBP", quality=quality, method=0)
    return sent.resize(image.size, Image.Resampling.BICUBIC).convert(image.mode)


def resample(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Down and up again: detail is lost, the size and so the visual tokens stay."""
    return image.resize(_scaled(image, scale), Image.Resampling.BICUBIC).resize(image.size, Image.Resampling.BICUBIC)


def shrink_nearest(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Drop whole rows and columns; the picture stays small."""
    return image.resize(_scaled(image, scale), Image.Resampling.NEAREST)


def pixelate(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Average into blocks and show the blocks."""
    return image.resize(_scaled(image, scale), Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)


def dither(image: Image.Image, scale: float, _: Generator) -> Image.Image:
    """Floyd–Steinberg to black and white at a lower resolution."""
    small = image.convert("L").resize(_scaled(image, scale), Image.Resampling.BICUBIC)
    dots = small.convert("1", dither=Image.Dither.FLOYDSTEINBERG).convert("L")
    return dots.resize(image.size, Image.Resampling.BICUBIC).convert(image.mode)


def _scaled(image: Image.Image, scale: float) -> tuple[int, int]:
    return max(1, round(image.width * scale)), max(1, round(image.height * scale))


def _through(image: Image.Image, form: str, **options: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return Image.open(buffer).convert(image.mode)
