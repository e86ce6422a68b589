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


def write_picture(path: str | Path, data: bytes) -> None:
    """Write the file of a picture whole or not at all; its folder is made where there is none yet."""
    folder, draft = os.path.dirname(path), f"{path}.{os.getpid()}.part"  # noqa: PTH120
    try:
        try:
            _write(draft, data)
        except FileNotFoundError:  # looked for only then: thousands of pictures go into one folder
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            _write(draft, data)
        os.replace(draft, path)  # noqa: PTH105
    except OSError as error:
        raise EnvironmentProblem(f"cannot store a picture in {folder}: {error.strerror}") from None


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as stream:  # noqa: PTH123 - a Path for each costs as much as writing
        stream.write(data)


class ImageStore:
    """A folder of pictures named by their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self._prefix = str(folder / "x")[:-1]

    def put_base64(self, text: str, where: str) -> Image:
        """Store a picture given as base64 text (a `data:` URL too), wrapped in lines or not."""
        body = text.partition(",")[2] if text.startswith("data:") else text
        if len(body) > MAX_FILE_BYTES * 4 // 3:
            raise DataError(f"{where}: the picture is larger than {MAX_FILE_BYTES >> 20} MB")
        try:
            try:
                data = pybase64.b64decode(body, validate=True)
            except ValueError:
                data = pybase64.b64decode("".join(body.split()), validate=True)
        except ValueError:
            raise DataError(f"{where}: the picture is neither a file nor valid base64: {body[:24]!r}…") from None
        return self.put(data)

    def put(self, data: bytes) -> Image:
        """Store a picture's bytes once and return the reference."""
        image = self.reference(sha256_hex(data), suffix_of(data))
        if not os.path.exists(image.ref):  # noqa: PTH110
            write_picture(image.ref, data)
        return image

    def reference(self, digest: str, suffix: str) -> Image:
        """Return the reference of a stored picture."""
        return Image(f"{self._prefix}{digest}{suffix}", sha256=digest)


class Remembered:
    """Which pictures the base64 cells of a file were, in the order of the file: they are decoded once, not each time.

    Forty bytes a picture, so that a million of them can be remembered.
    """

    SIZE = 40

    def __init__(self) -> None:
        self._entries = bytearray()

    def find(self, place: int, length: int) -> tuple[str, str] | None:
        """Return digest and ending of the picture at this place, if its cell was as long as this one."""
        entry = self._entries[place * self.SIZE : (place + 1) * self.SIZE]
        if len(entry) < self.SIZE or int.from_bytes(entry[33:], "big") != length:
            return None
        return entry[:32].hex(), _ENDINGS[entry[32]]

    def keep(self, place: int, length: int, image: Image) -> None:
        """Remember the picture at this place; places come in order."""
        if place * self.SIZE != len(self._entries):
            return
        ending = _ENDINGS.index(image.ref[image.ref.rindex(".") :])
        digest = bytes.fromhex(str(image.sha256))
        self._entries += digest + bytes([ending]) + length.to_bytes(7, "big")


_ENDINGS = (*dict.fromkeys(ending for _, ending in SUFFIXES), ".img")
