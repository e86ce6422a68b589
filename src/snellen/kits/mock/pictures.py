"""Image bytes to the little a simulated reader needs of them: a thumbnail, the JPEG quality, the width."""

from __future__ import annotations

from PIL.Image import Resampling

from ...core.errors import DataError
from ...core.ids import sha256_hex
from ...core.types import Image
from ...data.images.decode import decode, read_bytes, read_header

THUMBNAIL_SIDE = 32
LOW_FREQUENCIES = 8
STANDARD_SUM = 105
"""Sum of the first eight entries of the JPEG standard's luminance table (Annex K, zigzag): quality 50."""
QUANTISATION = b"\xff\xdb"


def file_bytes(image: Image) -> tuple[str, bytes]:
    """Return (sha256, bytes) of an image file as it lies on disk."""
    data = read_bytes(image)
    return sha256_hex(data), data


def thumbnail(data: bytes) -> bytes | None:
    """Return a 32 × 32 grey copy as raw bytes, or None if the data are no picture."""
    try:
        picture = decode(data, "received image")
    except DataError:
        return None
    return picture.convert("L").resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Resampling.BOX).tobytes()


def width_px(data: bytes) -> int | None:
    """Return the width from the header, or None if the data are no picture."""
    try:
        return read_header(data, "received image").width
    except DataError:
        return None


def jpeg_quality(data: bytes) -> float:
    """Estimate the quality a JPEG was saved with from its first quantisation table; 100 for other formats."""
    start = data.find(QUANTISATION) + 5 if data.startswith(b"\xff\xd8") else 0
    table = data[start : start + LOW_FREQUENCIES]
    if start < 5 or len(table) < LOW_FREQUENCIES:
        return 100.0
    scale = 100.0 * sum(table) / STANDARD_SUM
    return max(1.0, (200.0 - scale) / 2.0 if scale <= 100.0 else 5000.0 / scale)
