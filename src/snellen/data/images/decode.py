"""The only door from bytes to pixels: checks a picture before decoding it, and prepares it for a model once.

Formats are allow-listed, size and pixel limits hold before any pixel is decoded, and a file that is already
in a sendable format and size leaves as its own bytes.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from typing import Any

import PIL.Image
import PIL.ImageOps
import pybase64
from msgspec import Struct

from ...core.errors import DataError
from ...core.types import Image
from .edits import apply_edits
from .frames import MAX_FILE_BYTES, MAX_PIXELS, PNG_SIGNATURE, PictureError, check_pixels, read_png, read_regular

FORMATS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}
"""Pillow plug-ins we let near a file; everything else (EPS, PDF, FITS…) is never reached."""

CHANGED = "changed:"
"""Stands before the reference of a picture whose file is no longer what was sent: it is never opened."""
NAME_LIMIT = 200
"""A reference longer than this is pixels, not a name."""
EXIF_ORIENTATION = 0x0112
SCAN, MOST_SCANS = b"\xff\xda", 200
"""Begins a scan of a JPEG. Encoders write about ten; each more costs a pass over all pixels."""
BIG_TIFF = 43
MOST_PAGES = 100_000
COUNTED_BYTES = 2**20

WRONG_OFFSETS = (TypeError, LookupError, EOFError, ArithmeticError, zlib.error, struct.error)
PILLOW_ERRORS = (OSError, ValueError, SyntaxError, *WRONG_OFFSETS)
"""What Pillow's readers raise on damaged files: their own errors, and whatever a wrong length or offset leads to."""

# Our own limit is lower than the one Pillow warns at, and it raises.
warnings.filterwarnings("ignore", category=PIL.Image.DecompressionBombWarning)
# What it says of damaged files, our errors say by name.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


class Header(Struct, frozen=True):
    """What can be known without decoding: size in pixels as shown, type, and whether it must be redrawn."""

    mime: str
    width: int
    height: int
    mode: str
    plain: bool
    """True when the file can be sent as it is: no EXIF rotation, a colour mode every server reads, one frame."""
    frames: int = 1


def read_bytes(image: Image) -> bytes:
    """Return the file behind a reference, within the size limit."""
    return read_stamped(image)[0]


def read_stamped(image: Image) -> tuple[bytes, int]:
    """Return the file behind a reference and when it was last changed (0 for a data: URL, or a frame of a video)."""
    from ..video.squeezed import read_film_frame

    if image.frame is not None and not image.frame.still:
        return read_film_frame(image.ref, image.frame), 0
    if image.ref.startswith("data:"):
        return _read_data_url(image.ref), 0
    if image.ref.startswith(CHANGED):
        name = short_name(image.ref.removeprefix(CHANGED))
        raise DataError(f"image {name!r} is not what the model saw: it changed since it was sent, and no copy was kept")
    if "://" in image.ref:
        raise DataError(f"image {image.ref!r} is a URL: download it and name the file (URLs are never fetched)")
    try:
        return read_regular(image.ref)
    except FileNotFoundError:
        raise DataError(f"image {image.ref!r} does not exist") from None
    except PictureError as error:
        raise DataError(f"image {short_name(image.ref)!r} {error}") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"image {short_name(image.ref)!r} cannot be read: {reason}") from None


def short_name(ref: str) -> str:
    """Return a reference as an error may show it: the pixels of a data: URL are left out."""
    return ref if len(ref) <= NAME_LIMIT else ref[: NAME_LIMIT - 1] + "…"


def read_header(data: bytes, name: str) -> Header:
    """Check type, size limits and completeness of an encoded picture without decoding its pixels."""
    name = short_name(name)
    try:
        if data.startswith(PNG_SIGNATURE):
            return Header("image/png", *read_png(data))
        return _read_opened(_open(data, name), data, name)
    except PictureError as error:
        raise DataError(f"image {name!r} {error}") from None
    except PILLOW_ERRORS as error:
        raise DataError(f"image {name!r} is corrupt: {error}") from None


def _read_opened(picture: PIL.Image.Image, data: bytes, name: str) -> Header:
    width, height = picture.size
    check_pixels(width, height)
    kind = "JPEG" if picture.format == "MPO" else str(picture.format)  # a phone's: the first picture is the one meant
    check_complete(data, kind, name)
    if kind == "JPEG" and data.count(SCAN) > MOST_SCANS:
        raise PictureError(f"has {data.count(SCAN):,} scans; at most {MOST_SCANS} are decoded")
    if kind == "TIFF" and picture.mode == "I":
        raise PictureError("has 32 bits a pixel, and nothing says which value is white: save it with 8 or 16")
    orientation = picture.getexif().get(EXIF_ORIENTATION, 1) if kind in ("JPEG", "TIFF", "WEBP") else 1
    frames = count_frames(picture, data)
    if orientation in (5, 6, 7, 8):
        width, height = height, width
    plain = orientation == 1 and frames == 1 and picture.mode in ("RGB", "L", "P", "1", "RGBA", "LA")
    return Header(FORMATS[kind], width, height, picture.mode, plain, frames)


def count_frames(picture: PIL.Image.Image, data: bytes) -> int:
    """Return how many pages or frames a file has, without looking at each again and again."""
    if picture.format == "TIFF":
        return tiff_pages(data)
    if picture.format not in ("GIF", "WEBP"):
        return 1
    if picture.format == "GIF" and len(data) > COUNTED_BYTES:  # to count its frames is to read all of them
        return 2 if getattr(picture, "is_animated", False) else 1
    return int(getattr(picture, "n_frames", 1))


def tiff_pages(data: bytes) -> int:
    """Return how many pages a TIFF has by the chain of its directories; a loop ends where it began."""
    order = "<" if data[:2] == b"II" else ">"
    big = struct.unpack_from(f"{order}H", data, 2)[0] == BIG_TIFF
    count, offset, entry, start = ("Q", "Q", 20, 8) if big else ("H", "I", 12, 4)
    (at,) = struct.unpack_from(order + offset, data, start)
    seen: set[int] = set()
    while at and at not in seen and len(seen) < MOST_PAGES:
        seen.add(at)
        (entries,) = struct.unpack_from(order + count, data, at)
        following = at + struct.calcsize(count) + entries * entry
        if following + struct.calcsize(offset) > len(data):
            break
        (at,) = struct.unpack_from(order + offset, data, following)
    return max(1, len(seen))


def decode(data: bytes, name: str, preview_px: int | None = None) -> PIL.Image.Image:
    """Return the pixels, upright, as RGB or L; transparency is laid on white, 16-bit is scaled down.

    For a preview of so many pixels a JPEG may be decoded at a fraction of its size, never below twice the preview.
    """
    name = short_name(name)
    read_header(data, name)
    picture = _open(data, name)
    try:
        if preview_px is not None:
            picture.draft(None, (2 * preview_px, 2 * preview_px))
        picture.load()
        if picture.mode == "F":
            picture = _from_floats(picture)
        return to_plain_mode(PIL.ImageOps.exif_transpose(picture))
    except PictureError as error:
        raise DataError(f"image {name!r} {error}") from None
    except PILLOW_ERRORS as error:
        raise DataError(f"image {name!r} is corrupt: {error}") from None


def open_image(image: Image, preview_px: int | None = None) -> PIL.Image.Image:
    """Return the pixels of a reference with its edits applied; `preview_px` as for `decode`, where there are none."""
    return apply_edits(decode(read_bytes(image), image.ref, None if image.edits else preview_px), image.edits)


def _from_floats(picture: PIL.Image.Image) -> PIL.Image.Image:
    """Return a picture of floating-point pixels, of which 1 is white; other ranges say not which value is."""
    low, high = picture.getextrema()
    if not (isinstance(low, float) and isinstance(high, float) and -0.001 <= low <= high <= 1.001):
        raise PictureError(f"holds numbers from {low:.6g} to {high:.6g}, and only 0 to 1 is known: save it with 8 bits")
    return picture.point(lambda value: value * 255 + 0.5).convert("L")


def mask_runs(data: bytes, name: str) -> str:
    """Return a mask as text: its size, then how many pixels are out, in, out … row by row, out below half of white."""
    import numpy as np

    picture = decode(data, name).convert("L")
    inside = (np.asarray(picture).ravel() >= 128).astype(np.int8)
    edges = np.flatnonzero(np.diff(inside, prepend=0, append=1 - inside[-1])) if inside.size else np.empty(0, int)
    runs = np.diff(edges, prepend=0)
    return f"mask {picture.width}x{picture.height}: {' '.join(map(str, runs.tolist()))}"


def to_plain_mode(picture: PIL.Image.Image) -> PIL.Image.Image:
    """Convert any colour mode to RGB or L by rule."""
    if picture.mode in ("RGB", "L") and "transparency" not in picture.info:
        return picture
    if picture.mode in ("I;16", "I;16B", "I;16L", "I"):
        return picture.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if picture.mode == "1":
        return picture.convert("L")
    if "A" in picture.getbands() or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        page = PIL.Image.new("RGBA", layer.size, "white")
        return PIL.Image.alpha_composite(page, layer).convert("RGB")
    return picture.convert("RGB")


def check_complete(data: bytes, kind: str, name: str) -> None:
    """Refuse a cut file by its structure: JPEG end mark, WebP length."""
    if kind == "JPEG" and b"\xff\xd9" not in data[-65536:]:
        raise DataError(f"image {name!r} is cut off: the JPEG end mark is missing")
    if kind == "WEBP" and len(data) < int.from_bytes(data[4:8], "little") + 8:
        raise DataError(f"image {name!r} is cut off: {len(data)} bytes where its header says more")


def _open(data: bytes, name: str) -> PIL.Image.Image:
    if not data:
        raise DataError(f"image {name!r} is empty (0 bytes)")
    try:
        return PIL.Image.open(io.BytesIO(data), formats=list(FORMATS))
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning) as error:
        raise DataError(f"image {name!r}: {error}; the limit is {MAX_PIXELS // 10**6} million pixels") from None
    except PILLOW_ERRORS as error:
        known = ", ".join(FORMATS)
        reason = "not a picture" if isinstance(error, PIL.UnidentifiedImageError) else str(error)
        raise DataError(f"image {name!r}: {reason}; accepted: {known}") from None


def _read_data_url(url: str) -> bytes:
    head, comma, body = url.partition(",")
    if not comma or not head.endswith(";base64"):
        raise DataError("a data: image must be base64 (data:image/png;base64,…)")
    if len(body) > MAX_FILE_BYTES * 4 // 3:
        raise DataError(f"a data: image is larger than {MAX_FILE_BYTES // 2**20} MB")
    try:
        return pybase64.b64decode(body, validate=True)
    except ValueError:
        raise DataError(f"a data: image is not valid base64: {body[:20]!r}…") from None


def encode_png(picture: PIL.Image.Image, **options: Any) -> bytes:
    """Encode pixels as PNG with fixed settings, so equal pixels have equal bytes."""
    out = io.BytesIO()
    picture.save(out, "PNG", **({"compress_level": 6} | options))
    return out.getvalue()
