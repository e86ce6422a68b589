"""CIELAB (D65) to code values of sRGB and back: the standard's formulas (IEC 61966-2-1, CIE 15)."""

from __future__ import annotations

import numpy as np

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
