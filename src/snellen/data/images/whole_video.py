"""A whole video file for a server that takes videos: its own bytes, within a limit."""

from __future__ import annotations

from pathlib import Path

import pybase64

from ...core.errors import DataError
from ...core.ids import sha256_hex
from ...core.protocols import EncodedImage, ImagePolicy
from ...core.types import Image, ImageSent

MOST_BYTES = 256 * 2**20
"""More than this in one request no server takes."""


def is_whole_video(image: Image) -> bool:
    """Tell whether a reference means a video as a whole, not one of its frames."""
    return image.frame is None and image.mime is not None and image.mime.startswith("video/")


def encode_video(image: Image, policy: ImagePolicy) -> EncodedImage:
    """Return the file as it is; one that is too large is refused, never cut."""
    most = min(MOST_BYTES, policy.max_bytes or MOST_BYTES)
    try:
        file = Path(image.ref)
        size_bytes = file.stat().st_size
        data = file.read_bytes() if size_bytes <= most else b""
    except OSError as error:
        raise DataError(f"video {image.ref!r} cannot be read: {error.strerror}") from None
    if size_bytes > most:
        sizes = f"{size_bytes / 2**20:.1f} MB; as a file the model takes {most / 2**20:.1f} MB"
        raise DataError(f"video {image.ref!r} has {sizes}: use -p prompt.video.route=frames")
    sent = ImageSent(sha256_hex(data), image.mime or "video/mp4", image.width or 0, image.height or 0, size_bytes)
    return EncodedImage(pybase64.b64encode(data), sent)
