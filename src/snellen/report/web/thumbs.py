"""Pictures to small ones: each made once and kept in memory, within a budget of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

import msgspec

from ...core.ids import sha256_hex
from ...core.types import Image
from ..pages.gallery import thumbnail

SIDE_PX = 220
MOST_BYTES = 48 * 1024 * 1024
"""Some ten thousand thumbnails."""


class Thumbs:
    """Thumbnails by what they show; a file that was changed since is drawn anew."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def small(self, image: Image) -> bytes:
        """Return a small WebP of a picture. Raises DataError where it cannot be had."""
        name = _name(image)
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        data = thumbnail(image, SIDE_PX)  # outside the lock: nobody waits for another's picture
        with self._lock:
            self._size += len(data) - len(self._kept.pop(name, b""))
            self._kept[name] = data
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
        return data


def _name(image: Image) -> str:
    """A hash, because a reference may hold the picture itself."""
    try:
        found = Path(image.ref).stat() if image.ref.startswith("/") else None
    except (OSError, ValueError):
        found = None
    stamp = f"{found.st_mtime_ns}:{found.st_size}" if found else ""
    return sha256_hex(msgspec.json.encode(image) + stamp.encode())
