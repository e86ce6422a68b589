"""Pictures without their metadata: the same pixels, and nothing of what lay beside them."""

from __future__ import annotations

import asyncio
import io
import struct
import zlib
from pathlib import Path

import msgspec
import numpy as np
import PIL.Image
import PIL.PngImagePlugin
import pybase64
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image
from snellen.data.images.encode import ImageDoor, without_metadata
from snellen.data.images.frames import PictureError
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import create as create_anthropic

SECRET = b"52.5200N 13.4050E home"


def make(kind: str, *, mode: str = "RGB", orientation: int = 1, **options: object) -> bytes:
    """Return a picture of some pixels that carries the secret in every place its format has for such things."""
    pixels = (np.arange(48 * 40 * 3) * 7919 % 256).astype(np.uint8).reshape(40, 48, 3)
    picture = PIL.Image.fromarray(pixels).convert(mode)
    exif = PIL.Image.Exif()
    exif[0x010E] = SECRET.decode()
    exif[0x0112] = orientation
    out = io.BytesIO()
    if kind == "PNG":
        info = PIL.PngImagePlugin.PngInfo()
        info.add_text("Comment", SECRET.decode())
        info.add_itxt("XML:com.adobe.xmp", SECRET.decode())
        picture.save(out, "PNG", pnginfo=info)
    elif kind == "GIF":
        picture.save(out, "GIF", comment=SECRET)
    else:
        picture.save(out, kind, exif=exif, comment=SECRET, **options) if kind == "JPEG" else picture.save(
            out, kind, exif=exif, xmp=SECRET, **options
        )
    return out.getvalue() + SECRET


def pixels_of(data: bytes) -> np.ndarray:
    return np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGB"))


MADE = {
    "png": ("PNG", "image/png", {}),
    "png-palette": ("PNG", "image/png", {"mode": "P"}),
    "jpeg": ("JPEG", "image/jpeg", {}),
    "jpeg-progressive": ("JPEG", "image/jpeg", {"progressive": True, "quality": 80}),
    "jpeg-grey": ("JPEG", "image/jpeg", {"mode": "L"}),
    "webp": ("WEBP", "image/webp", {"lossless": True}),
    "webp-lossy": ("WEBP", "image/webp", {}),
}


@pytest.mark.parametrize("name", MADE)
def test_the_pixels_stay_and_the_secret_goes(name: str) -> None:
    kind, mime, options = MADE[name]
    data = make(kind, **options)  # type: ignore[arg-type]
    bare = without_metadata(data, mime)
    assert bare is not None
    assert SECRET in data
    assert SECRET not in bare
    assert np.array_equal(pixels_of(bare), pixels_of(data))
    assert without_metadata(bare, mime) == bare


def test_private_and_late_png_chunks_go_too() -> None:
    data = make("PNG")
    chunk = b"prVt" + SECRET
    private = struct.pack(">I", len(SECRET)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    assert SECRET not in (without_metadata(data[:33] + private + data[33:], "image/png") or SECRET)


def test_a_preview_in_a_jfif_header_goes() -> None:
    data = make("JPEG")
    body = b"JFIF\0\x01\x01\0\0\x01\0\x01\x01\x01" + b"abc"
    with_preview = data[:2] + b"\xff\xe0" + struct.pack(">H", len(body) + 2) + body + data[2:]
    bare = without_metadata(with_preview, "image/jpeg")
    assert bare is not None
    assert b"abc" not in bare[:40]
    assert np.array_equal(pixels_of(bare), pixels_of(data))


@given(st.sampled_from(sorted(MADE)), st.data())
def test_a_file_that_is_cut_or_changed_ends_in_one_error_or_in_a_file(name: str, data: st.DataObject) -> None:
    kind, mime, options = MADE[name]
    whole = bytearray(make(kind, **options))  # type: ignore[arg-type]
    place = data.draw(st.integers(8, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    try:
        without_metadata(bytes(whole[: data.draw(st.integers(place, len(whole)))]), mime)
    except PictureError as error:
        assert str(error)


def encode(data: bytes, policy: ImagePolicy, folder: Path) -> tuple[bytes, str]:
    async def _encode() -> tuple[bytes, str]:
        door = ImageDoor()
        try:
            encoded = await door.encode(Image(str(folder / "x.img")), policy)
            return pybase64.b64decode(encoded.base64), encoded.sent.sha256
        finally:
            door.close()

    (folder / "x.img").write_bytes(data)
    return asyncio.run(_encode())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_what_leaves_the_door_is_bare_where_that_is_asked(kind: str, tmp_path: Path) -> None:
    data = make(kind)
    assert SECRET in encode(data, ImagePolicy(), tmp_path)[0]
    sent, digest = encode(data, ImagePolicy(bare=True), tmp_path)
    assert SECRET not in sent
    assert np.array_equal(pixels_of(sent), pixels_of(data))
    import hashlib

    assert digest == hashlib.sha256(sent).hexdigest()


def test_pictures_that_are_drawn_again_are_bare_too(tmp_path: Path) -> None:
    sent, _ = encode(make("JPEG", orientation=6), ImagePolicy(bare=True, max_side=20), tmp_path)
    assert SECRET not in sent
    assert PIL.Image.open(io.BytesIO(sent)).size == (16, 20)


def test_a_policy_keeps_its_limits_and_its_name_without_the_wish() -> None:
    plain, bare = (create_anthropic("m", ModelOptions(strip_metadata=wish)).identity() for wish in (False, True))
    assert plain["image_policy"] == ImagePolicy(max_side=8000, max_bytes=3_900_000)
    assert "bare" not in msgspec.to_builtins(plain["image_policy"])
    assert bare["image_policy"] == ImagePolicy(bare=True, max_side=8000, max_bytes=3_900_000)


def test_a_bare_picture_keeps_its_least_side() -> None:
    options = ModelOptions(strip_metadata=True, image_policy=ImagePolicy(min_side=28))
    assert create_anthropic("m", options).image_policy == ImagePolicy(min_side=28, bare=True)
