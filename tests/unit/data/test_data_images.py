"""The image door: limits before decoding, colour modes by rule, own bytes where they can be sent."""

from __future__ import annotations

import asyncio
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageFile
import pytest

from snellen.core.errors import DataError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image, Likelihood, Request, TrialKey, Turn
from snellen.data.images import encode as encode_module
from snellen.data.images.decode import decode, open_image, read_bytes, read_header, read_stamped
from snellen.data.images.encode import ImageDoor


def save(picture: PIL.Image.Image, kind: str = "PNG", **options: object) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def noise(size: tuple[int, int] = (32, 24), mode: str = "RGB") -> PIL.Image.Image:
    data = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return PIL.Image.fromarray(data).convert(mode)


def write(path: Path, data: bytes) -> Image:
    path.write_bytes(data)
    return Image(str(path))


def encode(image: Image, policy: ImagePolicy | None = None) -> encode_module.EncodedImage:
    return asyncio.run(ImageDoor().encode(image, policy or ImagePolicy()))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_sendable_file_leaves_as_its_own_bytes(tmp_path: Path, kind: str) -> None:
    import pybase64

    data = save(noise(), kind)
    sent = encode(write(tmp_path / "a.bin", data))
    assert pybase64.b64decode(sent.base64) == data
    assert (sent.sent.width, sent.sent.height, sent.sent.size_bytes) == (32, 24, len(data))


@pytest.mark.parametrize("mode", ["CMYK", "I;16", "LA", "RGBA", "P", "1", "L", "YCbCr"])
def test_every_colour_mode_becomes_rgb_or_grey(mode: str) -> None:
    if mode == "I;16":
        picture = PIL.Image.fromarray(np.linspace(0, 65535, 64, dtype=np.uint16).reshape(8, 8))
    else:
        picture = noise(mode="RGB").convert(mode)
    kind = "TIFF" if mode in ("CMYK", "YCbCr") else "PNG"
    got = decode(save(picture, kind), "x")
    assert got.mode in ("RGB", "L")
    if mode == "I;16":
        assert (got.getpixel((0, 0)), got.getpixel((7, 7))) == (0, 255)


def test_transparency_is_laid_on_white() -> None:
    assert decode(save(PIL.Image.new("RGBA", (2, 2), (0, 0, 0, 0))), "x").getpixel((0, 0)) == (255, 255, 255)


def test_exif_rotation_is_applied_and_the_file_redrawn(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    image = write(tmp_path / "r.jpg", save(noise((40, 20)), "JPEG", exif=exif))
    assert open_image(image).size == (20, 40)
    sent = encode(image)
    assert (sent.sent.width, sent.sent.height) == (20, 40)


def bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


PNG = save(noise())
JPEG = save(noise(), "JPEG")
BROKEN = {
    "empty": b"",
    "text": b"not a picture at all",
    "cut png": PNG[: len(PNG) // 2],
    "flipped png": PNG[:60] + bytes([PNG[60] ^ 1]) + PNG[61:],
    "cut jpeg": JPEG[: len(JPEG) // 2],
    "cut webp": save(noise(), "WEBP")[:-20],
    "bomb": bomb(30_000, 30_000),
    "too many pixels": bomb(10_000, 9_000),
    "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
    "pdf": b"%PDF-1.7\n",
    "header only": PNG[:20],
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_and_hostile_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    image = write(tmp_path / "victim.png", BROKEN[name])
    with pytest.raises(DataError, match="victim"):
        encode(image)
    with pytest.raises(DataError, match="victim"):
        open_image(image)


def test_missing_folder_url_and_device() -> None:
    for ref in (
        "/no/such/file.png",
        "/",
        "https://example.org/a.png",
        "/dev/zero",
        "data:image/png;base64,%%%",
        "data:text,abc",
    ):
        with pytest.raises(DataError):
            read_bytes(Image(ref))


def test_data_urls_are_read() -> None:
    import pybase64

    assert read_bytes(Image("data:image/png;base64," + pybase64.b64encode(PNG).decode())) == PNG


@pytest.mark.parametrize(
    ("policy", "size"),
    [
        (ImagePolicy(max_side=16), (16, 12)),
        (ImagePolicy(max_pixels=192), (16, 12)),
        (ImagePolicy(max_side=64), (32, 24)),
    ],
)
def test_policies_on_size_keep_the_aspect_and_are_recorded(
    tmp_path: Path, policy: ImagePolicy, size: tuple[int, int]
) -> None:
    sent = encode(write(tmp_path / "a.png", PNG), policy).sent
    assert (sent.width, sent.height) == size
    assert sent.original == ((32, 24) if size != (32, 24) else None)


def test_byte_limit_compresses_and_then_refuses(tmp_path: Path) -> None:
    image = write(tmp_path / "a.png", save(noise((200, 200))))
    assert encode(image, ImagePolicy(max_bytes=30_000)).sent.mime == "image/jpeg"
    with pytest.raises(DataError, match="does not fit"):
        encode(image, ImagePolicy(max_bytes=50))


def test_format_not_accepted_is_converted(tmp_path: Path) -> None:
    assert encode(write(tmp_path / "a.bmp", save(noise(), "BMP"))).sent.mime == "image/png"
    assert (
        encode(write(tmp_path / "a.gif", save(noise(), "GIF")), ImagePolicy(formats=("image/jpeg",))).sent.mime
        == "image/jpeg"
    )


def test_each_picture_is_read_once_also_when_many_want_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, reads = write(tmp_path / "a.png", PNG), []
    monkeypatch.setattr(encode_module, "read_stamped", lambda each: reads.append(each) or read_stamped(each))

    async def many() -> None:
        door = ImageDoor()
        policy = ImagePolicy(max_side=8)
        await asyncio.gather(*(door.encode(image, policy) for _ in range(20)))
        await door.encode(image, policy)

    asyncio.run(many())
    assert len(reads) == 1


def test_what_is_kept_stays_within_its_bytes_and_is_what_was_asked_for_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = [write(tmp_path / f"{number}.png", save(noise((32, 24 + number)))) for number in range(6)]
    reads: list[Image] = []
    monkeypatch.setattr(encode_module, "read_stamped", lambda image: reads.append(image) or read_stamped(image))

    async def ask() -> ImageDoor:
        door = ImageDoor(kept_bytes=8_000)
        for image in (*images, images[-1], images[-2], images[0]):  # the last two are still there, the first is not
            await door.encode(image, ImagePolicy())
        return door

    door = asyncio.run(ask())
    assert reads == [*images, images[0]]
    assert 0 < door._kept.used_bytes <= 8_000
    assert door._kept.used_bytes == sum(len(encoded.base64) for encoded in door._kept._images.values())


def test_all_images_of_a_request_are_encoded_also_those_of_its_baseline(tmp_path: Path) -> None:
    first, second, grey = (write(tmp_path / f"{name}.png", save(noise())) for name in "abc")
    likelihood = Likelihood(baseline=(Turn("user", "N/A", (grey,)),))
    messages = (Turn("user", "?", (first, second)), Turn("user", "and?", (first,)))
    request = Request(TrialKey("t", "s"), messages, likelihood=likelihood)
    images = asyncio.run(ImageDoor().encode_all(request, ImagePolicy()))
    assert list(images) == [first, second, grey]


def test_edits_box_crop_and_unknown(tmp_path: Path) -> None:
    white = PIL.Image.new("RGB", (100, 50), "white")
    path = write(tmp_path / "w.png", save(white)).ref
    boxed = open_image(Image(path, edits=("box:0.1,0.2,0.5,0.8",)))
    assert boxed.getpixel((10, 10)) == (0xE8, 0x22, 0x2E)
    assert boxed.getpixel((30, 25)) == (255, 255, 255)
    assert open_image(Image(path, edits=("box:0,0,1,1,#0000ff",))).getpixel((0, 0)) == (0, 0, 255)
    assert open_image(Image(path, edits=("crop:0.25,0,0.75,1",))).size == (50, 50)
    for bad in ("crop:0.5,0,0.5,1", "crop:1,2", "blurr:3", "box:a,b,c,d"):
        with pytest.raises(DataError):
            open_image(Image(path, edits=(bad,)))


def test_the_header_of_a_large_file_costs_few_bytes_and_no_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    class Counted(io.BytesIO):
        """A file that counts what is read of it."""

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            taken.append(len(data))
            return data

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pixel was decoded")

    big = noise((1600, 1200))
    files = {kind: save(big, kind) for kind in ("PNG", "JPEG", "BMP", "TIFF")}
    monkeypatch.setattr("snellen.data.images.decode.io.BytesIO", Counted)
    monkeypatch.setattr(PIL.ImageFile.ImageFile, "load", refuse)
    monkeypatch.setattr(zlib, "decompress", refuse)
    monkeypatch.setattr(zlib, "decompressobj", refuse)
    for kind, data in files.items():
        taken.clear()
        header = read_header(data, "x")
        assert (header.width, header.height, header.plain) == (1600, 1200, True), kind
        assert sum(taken) < len(data) / 50, f"{sum(taken)} of {len(data)} bytes of {kind} were read for its header"
    with pytest.raises(DataError, match="million"):
        read_header(bomb(30_000, 30_000), "x")
