"""Image bytes -> the little a simulated reader needs of them: a thumbnail, the JPEG quality, the width."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image as Pillow
from PIL import JpegImagePlugin

from ..core.ids import sha256_hex
from ..core.types import Image

THUMBNAIL_SIDE = 32
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
STANDARD_TABLE_SUM = 3685
"""Sum of the luminance quantisation table of the JPEG standard (Annex K) at quality 50."""


def file_bytes(image: Image) -> tuple[str, bytes]:
    """Return (sha256, bytes) of an image file as it lies on disk."""
    data = Path(image.ref).read_bytes()
    return sha256_hex(data), data


def _open(data: bytes) -> Pillow.Image | None:
    try:
        return Pillow.open(io.BytesIO(data), formats=FORMATS)
    except (OSError, ValueError, Pillow.DecompressionBombError):
        return None


def thumbnail(data: bytes) -> bytes | None:
    """Return a 32 × 32 grey copy as raw bytes, or None if the data are no picture."""
    picture = _open(data)
    if picture is None:
        return None
    try:
        return picture.convert("L").resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Pillow.Resampling.BOX).tobytes()
    except OSError:
        return None


def width_px(data: bytes) -> int | None:
    """Return the width from the header, or None if the data are no picture."""
    picture = _open(data)
    return None if picture is None else picture.width


def jpeg_quality(data: bytes) -> float:
    """Estimate the quality a JPEG was saved with from its quantisation table; 100 for other formats."""
    picture = _open(data)
    if not isinstance(picture, JpegImagePlugin.JpegImageFile) or not picture.quantization:
        return 100.0
    scale = 100.0 * sum(picture.quantization[0]) / STANDARD_TABLE_SUM
    return max(1.0, (200.0 - scale) / 2.0 if scale <= 100.0 else 5000.0 / scale)
