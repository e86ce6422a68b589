"""Pictures to thumbnails, each made once while the viewer runs: kept in memory, within a budget of bytes."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable

import msgspec

from ...core.ids import sha256_hex
from ...core.types import Image
from ..pages.gallery import thumbnail

SIDE_PX = 220
MOST_BYTES = 48 * 1024 * 1024
"""Some ten thousand thumbnails."""
MOST_PLACES = 20_000
"""So many addresses of thumbnails are remembered."""


class _Known:
    """A picture by what it shows: the hash of its record, and its file where it has one."""

    __slots__ = ("_hash", "_path")

    def __init__(self, image: Image) -> None:
        self._hash = sha256_hex(msgspec.json.encode(image))  # a hash, because a reference may hold the picture itself
        self._path = image.ref if image.ref.startswith("/") else ""

    def name(self) -> str:
        """Return what changes with the picture, its file as it is now included."""
        try:
            found = os.stat(self._path) if self._path else None  # noqa: PTH116 - hundreds a page
        except (OSError, ValueError):
            found = None
        return f"{self._hash}:{found.st_mtime_ns}:{found.st_size}" if found else self._hash


class Thumbs:
    """Thumbnails by what they show; a file that was changed since is drawn anew."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._places: OrderedDict[Hashable, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def small(self, image: Image, place: Hashable = None) -> bytes:
        """Return a small WebP of a picture, to be found at a `place` again. Raises DataError where it cannot be had."""
        known = _Known(image)
        name = known.name()
        data = self._find(name) or thumbnail(image, SIDE_PX)  # outside the lock: nobody waits for another's picture
        with self._lock:
            self._size += len(data) - len(self._kept.pop(name, b""))
            self._kept[name] = data
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
            if place is not None:
                self._places[place] = known
                while len(self._places) > MOST_PLACES:
                    self._places.popitem(last=False)
        return data

    def again(self, place: Hashable) -> bytes | None:
        """Return the thumbnail that was drawn for a place, if it is at hand and its picture is as it was."""
        known = self._places.get(place)
        return self._find(known.name()) if known is not None else None

    def _find(self, name: str) -> bytes | None:
        with self._lock:
            data = self._kept.get(name)
            if data is not None:
                self._kept.move_to_end(name)
            return data
