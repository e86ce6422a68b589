"""A picture file to the same pixels without what travels beside them: EXIF, texts, previews, bytes after its end."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .frames import PNG_SIGNATURE, PictureError

PNG_KEPT = {
    *(b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS"),
    *(b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"cICP", b"mDCV", b"cLLI"),
}
"""The pixels, and what they look like."""
WEBP_KEPT = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ICCP", b"ANIM", b"ANMF"}
WEBP_TOLD = 0b1100
"""The bits of VP8X that tell of EXIF and XMP."""
EOI, SOS, COM, PADDING = 0xD9, 0xDA, 0xFE, 0xFF
JFIF_BYTES = 14
"""A JFIF header without its preview."""


def without_metadata(data: bytes, mime: str) -> bytes | None:
    """Return the file with nothing but its pixels and their colours; None for a kind that must be drawn again.

    A file that is not laid out as its kind says raises PictureError.
    """
    if mime == "image/png":
        return b"".join([PNG_SIGNATURE, *_png_chunks(data)])
    if mime == "image/jpeg":
        return b"".join(_jpeg_segments(data))
    if mime == "image/webp":
        body = b"".join(_webp_chunks(data))
        return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
    return None


def _png_chunks(data: bytes) -> Iterator[bytes]:
    at = len(PNG_SIGNATURE)
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if kind in PNG_KEPT:
            yield data[at:end]
        if kind == b"IEND":
            return
        at = end
    raise PictureError("is cut off: the PNG end chunk is missing")


def _webp_chunks(data: bytes) -> Iterator[bytes]:
    end = min(len(data), 8 + int.from_bytes(data[4:8], "little"))
    at = 12
    while at + 8 <= end:
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        kind, body = data[at : at + 4], data[at + 8 : at + 8 + size]
        if kind == b"VP8X" and body:
            body = bytes([body[0] & ~WEBP_TOLD & 0xFF]) + body[1:]
        if kind in WEBP_KEPT:
            yield kind + struct.pack("<I", size) + body + b"\0" * (size % 2)
        at += 8 + size + size % 2


def _jpeg_segments(data: bytes) -> Iterator[bytes]:
    yield data[:2]
    at = 2
    while (marker := _marker_at(data, at)) != EOI:
        if marker == PADDING:
            at += 1
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        yield _kept_segment(marker, data[at:end])
        at = end
        if marker == SOS:
            end = _scan_end(data, at)
            yield data[at:end]
            at = end
    yield data[at : at + 2]


def _marker_at(data: bytes, at: int) -> int:
    if at + 2 > len(data) or data[at] != PADDING:
        raise PictureError("is cut off: the JPEG end is missing")
    return data[at + 1]


def _kept_segment(marker: int, segment: bytes) -> bytes:
    """Return a segment that the picture needs; of a JFIF header all but its preview; nothing of the others."""
    if marker == 0xE0:
        jfif = segment[4:9] == b"JFIF\0"
        return b"\xff\xe0" + struct.pack(">H", JFIF_BYTES + 2) + segment[4:16] + b"\0\0" if jfif else b""
    profile = marker == 0xE2 and segment[4:16] == b"ICC_PROFILE\0"
    adobe = marker == 0xEE and segment[4:9] == b"Adobe"
    return segment if profile or adobe or not (0xE0 <= marker <= 0xEF or marker == COM) else b""


def _scan_end(data: bytes, at: int) -> int:
    """Return where the coded pixels from `at` on end: at a marker that is neither a stuffed byte nor a restart."""
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 1 >= len(data):
            raise PictureError("is cut off: the JPEG end is missing")
        if data[at + 1] == 0 or 0xD0 <= data[at + 1] <= 0xD7:
            at += 2
        else:
            return at
