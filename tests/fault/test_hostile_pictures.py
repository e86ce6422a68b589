"""A picture costs its sample, never the run: what would take minutes or all memory is refused, or its process is ended."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import snellen
from snellen.core.errors import DataError
from snellen.core.protocols import EncodedImage, ImagePolicy
from snellen.core.types import Image
from snellen.data.images import decode as decoding
from snellen.data.images import drawing
from snellen.data.images.decode import decode, read_header, tiff_pages
from snellen.data.images.encode import ImageDoor

SMALL = ImagePolicy(max_side=64)


def saved(picture: PIL.Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def many_pages(count: int) -> bytes:
    """Return a TIFF whose directories are a chain of so many copies of the first."""
    out = bytearray(saved(PIL.Image.new("L", (8, 8)), "TIFF"))
    (at,) = struct.unpack_from("<I", out, 4)
    size = 2 + 12 * struct.unpack_from("<H", out, at)[0]
    page, before = bytes(out[at : at + size]), at + size
    for _ in range(count - 1):
        struct.pack_into("<I", out, before, len(out))
        before = len(out) + size
        out += page + bytes(4)
    return bytes(out)


def many_scans(side: int, count: int) -> bytes:
    """Return a progressive JPEG whose last scan comes so many times more."""
    data = saved(PIL.Image.new("L", (side, side), 128), "JPEG", progressive=True)
    return data[:-2] + data[data.rindex(b"\xff\xda") : -2] * count + b"\xff\xd9"


@pytest.fixture
def door() -> Iterator[Callable[[Path, ImagePolicy], EncodedImage]]:
    made = ImageDoor()

    def encode(path: Path, policy: ImagePolicy = SMALL) -> EncodedImage:
        return asyncio.run(made.encode(Image(str(path)), policy))

    yield encode
    made.close()


@pytest.mark.parametrize("count", [1, 2, 30_000])
def test_pages_are_counted_in_one_pass(count: int) -> None:
    data, began = many_pages(count), time.process_time()
    assert tiff_pages(data) == read_header(data, "p.tif").frames == count
    assert time.process_time() - began < 2, "14 s before"


def test_pages_are_counted_as_pillow_counts_them(tmp_path: Path) -> None:
    pages = [PIL.Image.new("RGB", (9, 9), colour) for colour in ("red", "green", "blue")]
    for options in ({"compression": "tiff_lzw"}, {"big_tiff": True}):
        data = saved(pages[0], "TIFF", save_all=True, append_images=pages[1:], **options)
        assert tiff_pages(data) == PIL.Image.open(io.BytesIO(data)).n_frames == 3  # type: ignore[attr-defined]


def test_a_loop_of_pages_ends() -> None:
    data = bytearray(many_pages(3))
    struct.pack_into("<I", data, len(data) - 4, struct.unpack_from("<I", data, 4)[0])
    assert tiff_pages(bytes(data)) == 3


def test_hostile_pictures_cost_their_samples_and_the_run_keeps_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_server: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.tif").write_bytes(many_pages(30_000))
    Path("s.jpg").write_bytes(many_scans(7000, 3000))
    Path("good.jpg").write_bytes(saved(PIL.Image.new("RGB", (99, 99), "red"), "JPEG"))
    names = [*(["p.tif", "s.jpg"] * 10), "good.jpg"]
    rows = ({"id": str(n), "image": name, "question": "Q?", "answer": "x"} for n, name in enumerate(names))
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    began = time.process_time()
    url = mock_server("--answer", "x").base_url
    result = snellen.run("t.jsonl", "openai/mock", base_url=url, image_policy=SMALL, cache=False, deadline_s=60)
    assert (result.state.done, result.state.failures) == (21, {"decode": 20}), "before, 1 of 20 in 84 s"
    assert time.process_time() - began < 8


def test_a_picture_that_takes_too_long_is_given_up_and_the_next_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: Callable[..., EncodedImage]
) -> None:
    monkeypatch.setattr(drawing, "CPU_S", 1)
    slow, good = tmp_path / "slow.jpg", tmp_path / "good.jpg"
    slow.write_bytes(many_scans(7000, decoding.MOST_SCANS - 20))
    good.write_bytes(saved(PIL.Image.new("RGB", (99, 99), "red"), "JPEG"))
    with pytest.raises(DataError, match=r"slow.jpg.*CPU"):
        door(slow)
    assert door(good).sent.width == 64


def test_a_picture_that_takes_too_much_memory_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: Callable[..., EncodedImage]
) -> None:
    monkeypatch.setattr(drawing, "MEMORY_BYTES", 500 * 2**20)
    large = tmp_path / "large.png"
    large.write_bytes(saved(PIL.Image.new("RGB", (8000, 8000)), "PNG", compress_level=1))
    with pytest.raises(DataError, match=r"large.png.*memory"):
        door(large)


def test_closing_ends_what_is_at_work(tmp_path: Path) -> None:
    (tmp_path / "slow.jpg").write_bytes(many_scans(7000, decoding.MOST_SCANS - 20))

    async def leave() -> None:
        made = ImageDoor()
        work = asyncio.create_task(made.encode(Image(str(tmp_path / "slow.jpg")), SMALL))
        while not made._drawing._busy:
            await asyncio.sleep(0.01)
        made.close()
        with pytest.raises(DataError):
            await asyncio.wait_for(work, 10)

    asyncio.run(leave())


def test_the_picture_is_the_same_whoever_draws_it(tmp_path: Path, door: Callable[..., EncodedImage]) -> None:
    from snellen.data.images.encode import encode_moving

    path = tmp_path / "a.png"
    pixels = np.random.default_rng(1).integers(0, 255, (90, 120, 3), np.uint8)
    path.write_bytes(saved(PIL.Image.fromarray(pixels), "PNG"))
    assert door(path) == encode_moving(Image(str(path)), SMALL)


def test_floats_of_0_to_1_are_scaled_and_what_has_no_white_is_refused() -> None:
    ramp = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    grey = np.asarray(decode(saved(PIL.Image.fromarray(ramp), "TIFF"), "f.tif"))
    assert abs(grey.astype(float) - ramp * 255).max() <= 1
    with pytest.raises(DataError, match=r"f.tif.*from 0 to 1000"):
        decode(saved(PIL.Image.fromarray(ramp * 1000), "TIFF"), "f.tif")
    for top in (255, 2**30):
        whole = PIL.Image.fromarray((ramp * top).astype(np.int32))
        with pytest.raises(DataError, match=r"i.tif.*32 bits"):
            decode(saved(whole, "TIFF"), "i.tif")


@pytest.mark.parametrize(("mode", "key"), [("RGB", (10, 20, 30)), ("L", 77)])
def test_a_transparent_colour_is_laid_on_white(mode: str, key: Any) -> None:
    data = saved(PIL.Image.new(mode, (4, 4), key), "PNG", transparency=key)
    assert decode(data, "t.png").convert("RGB").getpixel((1, 1)) == (255, 255, 255)


def test_of_a_phones_two_pictures_the_first_is_read() -> None:
    first, second = PIL.Image.new("RGB", (20, 10), "red"), PIL.Image.new("RGB", (20, 10), "blue")
    data = saved(first, "MPO", save_all=True, append_images=[second])
    header = read_header(data, "m.jpg")
    assert (header.mime, header.frames, header.plain) == ("image/jpeg", 1, True)
    assert decode(data, "m.jpg").getpixel((5, 5))[0] > 200  # type: ignore[index]


def test_a_packed_colour_profile_is_bounded(tmp_path: Path, door: Callable[..., EncodedImage]) -> None:
    fits, bomb = tmp_path / "fits.png", tmp_path / "bomb.png"
    for path, size in ((fits, 2**20), (bomb, 200 * 2**20)):
        path.write_bytes(saved(PIL.Image.new("RGB", (8, 8), "red"), "PNG", icc_profile=bytes(size)))
    assert door(fits, ImagePolicy()).sent.mime == "image/png"
    with pytest.raises(DataError, match=r"bomb\.png.*colour profile"):
        door(bomb, ImagePolicy())
