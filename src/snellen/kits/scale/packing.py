"""The driver's side of a lease: requests and pictures to what is sent, each content once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec
import pybase64

from ...core.errors import DataError, FailureKind, ModelError
from ...core.ids import sha256_hex
from ...core.protocols import EncodedImage, EncodedImages, ImagePolicy
from ...core.types import Image, Request
from ...data.images.decode import read_bytes
from ...data.images.encode import ImageCache
from .lease_format import Lease, LeasedPicture, write_lease
from .leases import Waiting

KEPT_BYTES = 64 * 2**20
"""So much of files is kept for the next question on them."""


class Contents:
    """The contents of one lease in the order they were first needed."""

    def __init__(self) -> None:
        self.pictures: list[EncodedImage] = []
        self._places: dict[str, int] = {}

    def place(self, encoded: EncodedImage) -> int:
        """Return which of the contents a picture is, adding it if it is new."""
        found = self._places.setdefault(encoded.sent.sha256, len(self.pictures))
        if found == len(self.pictures):
            self.pictures.append(encoded)
        return found


def pack_lease(lease: Sequence[Waiting]) -> tuple[bytes, list[EncodedImage]]:
    """Return a lease as bytes and the contents that go with it: each picture as sent, and its file where it travels."""
    contents = Contents()
    pictures: dict[Image, LeasedPicture] = {}
    requests: list[tuple[int, Request]] = []
    for waiting in lease:
        for image, encoded in waiting.images.items():
            if image not in pictures:
                original = waiting.originals.get(image) if waiting.originals else None
                where = None if original is None else contents.place(original)
                pictures[image] = LeasedPicture(image, encoded.sent, contents.place(encoded), where)
        requests.append((waiting.number, waiting.request))
    return write_lease(Lease(tuple(requests), tuple(pictures.values()))), contents.pictures


class FileCache:
    """The files behind pictures, as content: read once while they stay in the budget."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept = ImageCache(kept_bytes)

    async def files_of(self, images: EncodedImages) -> dict[Image, EncodedImage]:
        """Return the file of every picture that has one; a picture that is its own content needs none."""
        return {image: await self._file(image, sent) for image, sent in _with_files(images)}

    async def _file(self, image: Image, encoded: EncodedImage) -> EncodedImage:
        key = (msgspec.structs.replace(image, edits=()), ImagePolicy())
        kept = self._kept.get(key)
        if kept is None:
            try:
                kept = await asyncio.to_thread(read_whole_file, image, encoded)
            except DataError as error:
                raise ModelError(FailureKind.DECODE, str(error)) from None
            self._kept.put(key, kept)
        return kept


def _with_files(images: EncodedImages) -> Iterable[tuple[Image, EncodedImage]]:
    return ((image, encoded) for image, encoded in images.items() if not image.ref.startswith("data:"))


def read_whole_file(image: Image, encoded: EncodedImage) -> EncodedImage:
    """Return the file behind a picture, as content: the sent one itself where it left as its own bytes."""
    data = read_bytes(image)
    sha256 = sha256_hex(data)
    if sha256 == encoded.sent.sha256:
        return encoded
    record = msgspec.structs.replace(encoded.sent, sha256=sha256, size_bytes=len(data))
    return EncodedImage(pybase64.b64encode(data), record)
