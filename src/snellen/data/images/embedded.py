"""Embedded pictures to files: each content once, named by its hash, so samples stay small."""

from __future__ import annotations

import os
from pathlib import Path

import pybase64

from ...core.errors import DataError, EnvironmentProblem
from ...core.ids import sha256_hex
from ...core.types import Image
from .frames import MAX_FILE_BYTES

SUFFIXES = (
    (b"\x89PNG", ".png"), (b"\xff\xd8", ".jpg"), (b"GIF8", ".gif"), (b"RIFF", ".webp"), (b"BM", ".bmp"),
    (b"II*\0", ".tif"), (b"MM\0*", ".tif"),
)  # fmt: skip


def suffix_of(data: bytes) -> str:
    """Return the file ending by the first bytes, or `.img`."""
    return next((suffix for head, suffix in SUFFIXES if data.startswith(head)), ".img")


class ImageStore:
    """A folder of pictures named by their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = False

    def put_base64(self, text: str, where: str) -> Image:
        """Store a picture given as base64 text (a `data:` URL too)."""
        body = text.partition(",")[2] if text.startswith("data:") else text
        if len(body) > MAX_FILE_BYTES * 4 // 3:
            raise DataError(f"{where}: the picture is larger than {MAX_FILE_BYTES >> 20} MB")
        try:
            return self.put(pybase64.b64decode(body, validate=True))
        except ValueError:
            raise DataError(f"{where}: the picture is neither a file nor valid base64: {body[:24]!r}…") from None

    def put(self, data: bytes) -> Image:
        """Store a picture's bytes once and return the reference."""
        digest = sha256_hex(data)
        path = self._folder / f"{digest}{suffix_of(data)}"
        try:
            if not self._ready:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._ready = True
            if not path.exists():
                draft = path.with_suffix(f".{os.getpid()}.part")
                draft.write_bytes(data)
                draft.replace(path)
        except OSError as error:
            raise EnvironmentProblem(f"cannot store a picture in {self._folder}: {error.strerror}") from None
        return Image(str(path), sha256=digest)
