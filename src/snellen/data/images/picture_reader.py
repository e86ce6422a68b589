"""A reference to the file behind it, checked: work that anybody may do who can read the file."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError
from ...core.types import Image
from .decode import read_bytes, read_header


class ReadPicture(Struct, frozen=True, array_like=True):
    """A picture's file and what its header says; or what is wrong with it."""

    data: bytes = b""
    mime: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""


class PictureReader:
    """Reads pictures. What is wrong with one belongs to its record, and is said there."""

    def __init__(self, settings: bytes) -> None:
        self.facts: dict[str, Any] = {}

    def __call__(self, item: bytes) -> bytes:
        """Return the files of the pictures of one record."""
        images = msgspec.msgpack.decode(item, type=list[Image])
        return msgspec.msgpack.encode([_read_picture(image) for image in images])


def _read_picture(image: Image) -> ReadPicture:
    try:
        data = read_bytes(image)
        header = read_header(data, image.ref[:80])
    except DataError as error:
        return ReadPicture(problem=str(error))
    return ReadPicture(data, header.mime, header.width, header.height)
