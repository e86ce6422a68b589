"""Two pictures into how far they are apart: PSNR, SSIM, and the character error rate of what a reader saw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rapidfuzz.distance import Levenshtein

_BLOCK = 8
_STABLE = ((0.01 * 255) ** 2, (0.03 * 255) ** 2)
"""The two constants of SSIM (Wang et al. 2004, eq. 13) for 8-bit values."""


def degradation(clean: Image.Image, degraded: Image.Image) -> dict[str, float]:
    """Return `psnr_db` (99 for equal pictures) and `ssim` (1 for equal); another size is brought to the clean one's."""
    first = np.asarray(clean.convert("L"), np.float32)
    same = degraded if degraded.size == clean.size else degraded.resize(clean.size, Image.Resampling.BICUBIC)
    second = np.asarray(same.convert("L"), np.float32)
    error = float(np.mean((first - second) ** 2))
    psnr = 99.0 if error == 0 else min(99.0, 10 * np.log10(255**2 / error))
    return {"psnr_db": round(float(psnr), 2), "ssim": round(ssim(first, second), 4)}


def ssim(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the mean structural similarity over 8×8 blocks side by side.

    Blocks do not overlap: that is a sixth of the work and ranks pictures the same.
    """
    blocks_a, blocks_b = _blocks(first), _blocks(second)
    mean_a, mean_b = blocks_a.mean(axis=-1), blocks_b.mean(axis=-1)
    variance_a, variance_b = blocks_a.var(axis=-1), blocks_b.var(axis=-1)
    covariance = (blocks_a * blocks_b).mean(axis=-1) - mean_a * mean_b
    luminance = (2 * mean_a * mean_b + _STABLE[0]) / (mean_a**2 + mean_b**2 + _STABLE[0])
    structure = (2 * covariance + _STABLE[1]) / (variance_a + variance_b + _STABLE[1])
    return float((luminance * structure).mean())


def character_error_rate(reference: str, hypothesis: str) -> float:
    """Return edits per reference character, white space collapsed; can exceed 1 when much was invented."""
    reference, hypothesis = " ".join(reference.split()), " ".join(hypothesis.split())
    return Levenshtein.distance(reference, hypothesis) / max(1, len(reference))


def _blocks(values: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, columns = max(1, values.shape[0] // _BLOCK), max(1, values.shape[1] // _BLOCK)
    height, width = min(_BLOCK, values.shape[0]), min(_BLOCK, values.shape[1])
    cut = values[: rows * height, : columns * width]
    return cut.reshape(rows, height, columns, width).swapaxes(1, 2).reshape(rows, columns, height * width)
