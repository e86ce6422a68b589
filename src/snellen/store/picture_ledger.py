"""The stored trials of a run to what each picture was when it was sent: no run mixes two contents of one name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ..core.errors import RunMismatch
from ..core.types import Image, ImageSent, Turn

TOUCHED = 2_000
"""So many files at most that were touched since are looked at too."""
SAMPLED = 64
"""So many pictures of finished trials are looked at again before anything is asked."""


class _Asked(msgspec.Struct):
    messages: tuple[Turn, ...] = ()


class _Sent(msgspec.Struct):
    images: tuple[ImageSent, ...] = ()


class PictureLedger:
    """By reference, the hash of what was sent; two short hashes a picture, however long its name is."""

    def __init__(self, rows: Iterable[tuple[bytes, bytes]], since: float | None = None) -> None:
        """`since`: when the run began; files that were touched later are looked at again, beside the first few."""
        self._since = since
        self._sent: dict[bytes, bytes] = {}
        self.some: dict[Image, str] = {}
        """The first few pictures, to be looked at again."""
        asked, sent = msgspec.json.Decoder(_Asked), msgspec.json.Decoder(_Sent)
        for request, body in rows:
            if b'"images"' in body:
                images = [image for turn in asked.decode(request).messages for image in turn.images]
                self._keep(images, sent.decode(body).images)

    def _keep(self, images: Sequence[Image], sent: Sequence[ImageSent]) -> None:
        if len(images) != len(sent):  # the vote of a document's parts: which part it was of is not known
            return
        for image, record in zip(images, sent, strict=True):
            name = _name(image)
            if name in self._sent:
                continue
            self._sent[name] = bytes.fromhex(record.sha256)[:16]
            if not image.ref.startswith("data:") and (len(self.some) < SAMPLED or self._was_touched(image)):
                self.some[image] = record.sha256

    def _was_touched(self, image: Image) -> bool:
        """Tell whether a file was touched after the run began, within a bound: a copied dataset has only such."""
        if self._since is None or len(self.some) >= TOUCHED:
            return False
        try:
            found = Path(image.ref).stat()
        except (OSError, ValueError):
            return False
        return max(found.st_mtime, found.st_ctime) >= self._since

    def check_sent(self, pictures: Iterable[tuple[Image, ImageSent]]) -> None:
        """Refuse, by name, a picture that is not what it was."""
        for image, sent in pictures:
            before = self._sent.get(_name(image))
            if before is not None and before != bytes.fromhex(sent.sha256)[:16]:
                name = image.ref if not image.ref.startswith("data:") else "of a data: URL"
                change = f"picture {name} changed since this run began (sha256 {before.hex()[:12]}… was sent"
                fix = "put it back, choose another -o, or ask all of it again with --fresh"
                raise RunMismatch(f"{change}, now {sent.sha256[:12]}…): its questions would mix two pictures; {fix}")

    def __len__(self) -> int:
        return len(self._sent)


def _name(image: Image) -> bytes:
    frame = () if image.frame is None else (repr(image.frame),)  # one file, many pictures
    told = "\0".join((image.ref, str(image.page), *image.edits, *frame))
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).digest()
