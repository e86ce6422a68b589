"""Degradations by noise: Gaussian, shot, speckle, salt and pepper; the same on all channels, as scanners make it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Generator = np.random.Generator


def gaussian(image: Image.Image, sigma: float, generator: Generator) -> Image.Image:
    """Add normal noise; `sigma` in units of full white."""
    values = np.asarray(image, np.float32)
    return _picture(values + _field(values, generator) * np.float32(255 * sigma))


def shot(image: Image.Image, photons: float, generator: Generator) -> Image.Image:
    """Count photons: white is `photons` on average."""
    values = np.asarray(image, np.float32)
    expected = values * np.float32(photons / 255)
    many = photons >= 10  # a normal law then stands in for Poisson's at a third of the time
    counted = np.rint(expected + np.sqrt(expected) * _field(values, generator)) if many else generator.poisson(expected)
    return _picture(counted * np.float32(255 / photons))


def speckle(image: Image.Image, sigma: float, generator: Generator) -> Image.Image:
    """Multiply by noise: bright paper suffers, ink does not."""
    values = np.asarray(image, np.float32)
    return _picture(values * (1 + _field(values, generator) * np.float32(sigma)))


def salt_pepper(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    """Turn a share of the pixels black or white."""
    values = np.array(image)
    dice = generator.random(values.shape[:2], dtype=np.float32)
    values[dice < share / 2] = 0
    values[dice > 1 - share / 2] = 255
    return Image.fromarray(values)


def _field(values: NDArray[np.float32], generator: Generator) -> NDArray[np.float32]:
    noise = generator.standard_normal(values.shape[:2], dtype=np.float32)
    return noise if values.ndim == 2 else noise[:, :, None]


def _picture(values: NDArray[np.generic]) -> Image.Image:
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
