"""Degradations of light and stroke: grey levels, contrast, brightness, gamma, faded ink, thin and bold strokes, fog."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Generator = np.random.Generator


def bit_depth(image: Image.Image, levels: int, _: Generator) -> Image.Image:
    """Keep only `levels` evenly spaced values of each channel."""
    return _mapped(image, np.round(np.arange(256) / 255 * (levels - 1)) * 255 / (levels - 1))


def binarise(image: Image.Image, threshold: int, _: Generator) -> Image.Image:
    """Black below the threshold, white from it on; a low threshold eats thin strokes."""
    return _mapped(image.convert("L"), np.where(np.arange(256) < threshold, 0.0, 255.0)).convert(image.mode)


def contrast(image: Image.Image, factor: float, _: Generator) -> Image.Image:
    """Squeeze all values towards middle grey."""
    return _mapped(image, 128 + (np.arange(256) - 128) * factor)


def mean_contrast(image: Image.Image, factor: float, _: Generator) -> Image.Image:
    """Squeeze all values towards the picture's own mean."""
    mean = float(np.asarray(image.convert("L")).mean())
    return _mapped(image, mean + (np.arange(256) - mean) * factor)


def brightness(image: Image.Image, darkening: float, _: Generator) -> Image.Image:
    """Underexpose: white becomes `1 - darkening`, rounded to whole grey levels as a camera would."""
    return _mapped(image, np.round(np.arange(256) * (1 - darkening)))


def add_brightness(image: Image.Image, amount: float, _: Generator) -> Image.Image:
    """Overexpose by a constant."""
    return _mapped(image, np.arange(256) + 255 * amount)


def gamma(image: Image.Image, exponent: float, _: Generator) -> Image.Image:
    """Wash out: values to the power of `exponent` below 1, ink lifted as stray light does."""
    return _mapped(image, 255 * ((np.arange(256) / 255 + 0.02) / 1.02) ** exponent)


def ink_fade(image: Image.Image, ratio: float, _: Generator) -> Image.Image:
    """Print in grey on white with a contrast ratio as the web guidelines count it ((1.05) / (ink + 0.05))."""
    luminance = 1.05 / ratio - 0.05
    ink = 255 * (1.055 * luminance ** (1 / 2.4) - 0.055)
    return _mapped(image, ink + (255 - ink) * np.arange(256) / 255)


def thin(image: Image.Image, amount: float, _: Generator) -> Image.Image:
    """Eat strokes from their edges: a mix with the picture whose dark parts shrank by a pixel."""
    return Image.blend(image, image.filter(ImageFilter.MaxFilter(3)), amount)


def erode(image: Image.Image, share: float, _: Generator) -> Image.Image:
    """Eat strokes from their edges: only where at least `share` of the ink around a point is left does it stay."""
    soft = 255 - np.asarray(image.filter(ImageFilter.GaussianBlur(0.5)), np.float32)
    kept = np.clip((soft / 255 - share) / (1 - share), 0, 1) ** 0.5
    return Image.fromarray(np.asarray(255 - 255 * kept + 0.5, np.uint8))


def coarse(image: Image.Image, level: tuple[int, float], generator: Generator) -> Image.Image:
    """Keep `levels` values of grey, after noise of a share of their distance: what a coarse converter makes of it."""
    levels, share = level
    step = 255 / (levels - 1)
    values = np.asarray(image, np.float32)
    noise = generator.standard_normal(values.shape[:2], dtype=np.float32) * np.float32(share * step)
    rounded = np.round((values + (noise if values.ndim == 2 else noise[:, :, None])) / step) * step
    return Image.fromarray(np.clip(rounded, 0, 255).astype(np.uint8))


def bold(image: Image.Image, amount_px: float, _: Generator) -> Image.Image:
    """Swell strokes until letters close up."""
    grown = image
    while amount_px >= 1:
        grown = grown.filter(ImageFilter.MinFilter(3))
        amount_px -= 1
    return Image.blend(grown, grown.filter(ImageFilter.MinFilter(3)), amount_px) if amount_px > 0 else grown


def fog(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    """Lay bright clouds of several sizes over the picture and squeeze the rest beneath."""
    cloud = np.zeros((image.height, image.width), np.float32)
    for octave in range(2, 8):
        cells = generator.random((2**octave, 2**octave), dtype=np.float32)
        layer = Image.fromarray(cells).resize(image.size, Image.Resampling.BILINEAR)
        cloud += np.asarray(layer) / 2 ** (octave - 2)
    cloud = (cloud - cloud.min()) / max(1e-6, float(cloud.max() - cloud.min()))
    values = np.asarray(image, np.float32) / 255
    peak = float(values.max())
    veil = amount * (cloud if values.ndim == 2 else cloud[:, :, None])
    return Image.fromarray(np.clip((values + veil) * peak / (peak + amount) * 255, 0, 255).astype(np.uint8))


def _mapped(image: Image.Image, table: NDArray[np.floating[Any]]) -> Image.Image:
    values = np.clip(np.round(table), 0, 255).astype(int).tolist()
    return image.point(values * len(image.getbands()))
