"""Degradations by blur: Gaussian, out of focus, motion, frosted glass, zoom."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Generator = np.random.Generator
_FEW = 80
"""Up to so many kernel points shifted sums are faster than a Fourier transform (measured on an A4 page at 96 dpi)."""


def gaussian(image: Image.Image, sigma_px: float, _: Generator) -> Image.Image:
    """Blur with a Gaussian of `sigma_px`."""
    return image.filter(ImageFilter.GaussianBlur(sigma_px))


def defocus(image: Image.Image, radius_px: float, _: Generator) -> Image.Image:
    """Spread every point over a disk."""
    reach = math.ceil(radius_px)
    fine = (np.arange(-reach * 5 - 2, reach * 5 + 3) / 5.0) ** 2
    disk = (fine[:, None] + fine[None, :] <= radius_px**2).astype(np.float32)
    side = 2 * reach + 1
    return _convolved(image, disk.reshape(side, 5, side, 5).sum(axis=(1, 3)))


def motion(image: Image.Image, length_px: int, generator: Generator) -> Image.Image:
    """Smear along a line of `length_px` at a random angle."""
    angle = generator.uniform(0, math.pi)
    reach = math.ceil(length_px / 2)
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
    for step in np.linspace(-length_px / 2, length_px / 2, 4 * length_px):
        kernel[reach + round(step * math.sin(angle)), reach + round(step * math.cos(angle))] += 1
    return _convolved(image, kernel)


def glass(image: Image.Image, level: tuple[float, float, int], generator: Generator) -> Image.Image:
    """Blur, swap pixels with near ones, blur: (sigma, reach in pixels, rounds)."""
    sigma, reach, rounds = level
    values = np.asarray(image.filter(ImageFilter.GaussianBlur(sigma)))
    height, width = values.shape[:2]
    rows, columns = np.arange(height, dtype=np.int32)[:, None], np.arange(width, dtype=np.int32)[None, :]
    for _ in range(rounds):
        shares = generator.random((2, height, width), dtype=np.float32) - 0.5
        moves = np.rint(shares * np.float32(2 * reach)).astype(np.int32)
        values = values[np.clip(rows + moves[0], 0, height - 1), np.clip(columns + moves[1], 0, width - 1)]
    return Image.fromarray(values).filter(ImageFilter.GaussianBlur(sigma / 2))


def zoom(image: Image.Image, largest: float, _: Generator) -> Image.Image:
    """Average the picture with enlargements of itself, as when zooming during exposure."""
    total = np.asarray(image, np.float32).copy()
    factors = np.linspace(1.0, largest, 9)[1:]
    for factor in factors:
        margin_x, margin_y = image.width * (1 - 1 / factor) / 2, image.height * (1 - 1 / factor) / 2
        box = (margin_x, margin_y, image.width - margin_x, image.height - margin_y)
        total += np.asarray(image.resize(image.size, Image.Resampling.BILINEAR, box=box), np.float32)
    return Image.fromarray((total / (len(factors) + 1)).astype(np.uint8))


def _convolved(image: Image.Image, kernel: NDArray[np.float32]) -> Image.Image:
    kernel = kernel / kernel.sum()
    reach = kernel.shape[0] // 2
    bands = [Image.fromarray(_convolve(np.asarray(band), kernel, reach)) for band in image.split()]
    return Image.merge(image.mode, bands)


def _convolve(band: NDArray[np.uint8], kernel: NDArray[np.float32], reach: int) -> NDArray[np.uint8]:
    padded = np.pad(band, reach, mode="edge").astype(np.float32)
    height, width = band.shape
    points = np.argwhere(kernel > 0)
    if len(points) > _FEW:
        shape = (padded.shape[0] + 2 * reach, padded.shape[1] + 2 * reach)
        product = np.fft.rfft2(padded, shape) * np.fft.rfft2(kernel, shape)
        total = np.fft.irfft2(product, shape)[2 * reach : 2 * reach + height, 2 * reach : 2 * reach + width]
    else:
        total = np.zeros((height, width), np.float32)
        for row, column in points:
            total += padded[row : row + height, column : column + width] * np.float32(kernel[row, column])
    return np.asarray(np.clip(total + 0.5, 0, 255), np.uint8)
