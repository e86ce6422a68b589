"""A corpus of damaged, hostile and merely odd inputs, made by script: each has one expected outcome, and none is a crash."""

from __future__ import annotations

import asyncio
import io
import json
import random
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pybase64
import pytest

import snellen
from snellen.core.errors import DataError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image
from snellen.data.images.decode import decode, open_image, read_header
from snellen.data.images.drawing import Drawing
from snellen.data.images.encode import ImageDoor


def save(picture: PIL.Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def noise(mode: str = "RGB", size: tuple[int, int] = (32, 24)) -> PIL.Image.Image:
    data = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return PIL.Image.fromarray(data).convert(mode)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, pixels: bytes, *more: bytes) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def rotated(value: int) -> PIL.Image.Exif:
    exif = PIL.Image.Exif()
    exif[0x0112] = value
    return exif


PNG, JPEG, WEBP = save(noise()), save(noise(), "JPEG"), save(noise(), "WEBP")
TIFF = save(noise(), "TIFF")
GIF = save(noise("P"), "GIF", save_all=True, append_images=[noise("P").rotate(90)])
DEEP = PIL.Image.fromarray(np.linspace(0, 65535, 64, dtype=np.uint16).reshape(8, 8))

SIZE_AS_SENT = {
    "cmyk.jpg": (save(noise("CMYK"), "JPEG"), (32, 24)),
    "deep.png": (save(DEEP), (8, 8)),
    "deep.tif": (save(DEEP, "TIFF"), (8, 8)),
    "float.tif": (save(PIL.Image.new("F", (8, 8), 0.5), "TIFF"), (8, 8)),
    "lab.tif": (save(PIL.Image.new("LAB", (8, 8)), "TIFF"), (8, 8)),
    "palette_alpha.png": (save(noise("P"), transparency=0), (32, 24)),
    "grey_alpha.png": (save(noise("LA")), (32, 24)),
    "one_bit.png": (save(noise("1")), (32, 24)),
    "rotated.jpg": (save(noise(), "JPEG", exif=rotated(6)), (24, 32)),
    "mirrored.webp": (save(noise(), "WEBP", exif=rotated(2).tobytes()), (32, 24)),
    "dot.png": (save(noise(size=(1, 1))), (1, 1)),
    "thread.png": (save(noise(size=(1, 20_000))), (1, 20_000)),
    "wrong_name.gif": (PNG, (32, 24)),
    "tail.jpg": (JPEG + b"\0" * 100, (32, 24)),
}
REFUSED = {
    "empty.png": b"",
    "text.png": b"hello, I am no picture",
    "html.jpg": b"<html><body>404</body></html>",
    "svg.png": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "script.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "paper.pdf": b"%PDF-1.7\n1 0 obj\n",
    "stars.fits": b"SIMPLE  =                    T" + b" " * 3000,
    "half.png": PNG[: len(PNG) // 2],
    "half.jpg": JPEG[: len(JPEG) // 2],
    "half.webp": WEBP[: len(WEBP) // 2],
    "half.tif": TIFF[: len(TIFF) // 2],
    "half.gif": GIF[:60],
    "bit.png": PNG[:60] + bytes([PNG[60] ^ 1]) + PNG[61:],
    "endless.png": PNG[:-12],
    "nothing_wide.png": png(0, 10, b""),
    "animated.gif": GIF,
    "animated.png": save(noise(), save_all=True, append_images=[noise().rotate(90)]),
    "bomb.png": png(30_000, 30_000, zlib.compress(b"\0" * 10**6)),
    "wide_bomb.png": png(2**31 - 1, 1, b""),
    "bomb.gif": b"GIF89a" + struct.pack("<HH", 65535, 65535) + GIF[10:],
}


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], Image]:
    def write(name: str, data: bytes) -> Image:
        (tmp_path / name).write_bytes(data)
        return Image(str(tmp_path / name))

    return write


@pytest.mark.parametrize("name", SIZE_AS_SENT)
def test_odd_but_whole_pictures_are_read_by_rule(put: Callable[[str, bytes], Image], name: str) -> None:
    data, size = SIZE_AS_SENT[name]
    image = put(name, data)
    sent = asyncio.run(ImageDoor().encode(image, ImagePolicy())).sent
    assert (sent.width, sent.height) == size
    assert sent.mime in ImagePolicy().formats
    pixels = open_image(image)
    assert (pixels.mode in ("RGB", "L"), pixels.size) == (True, size)


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_and_hostile_pictures_are_refused_at_once_by_name(
    put: Callable[[str, bytes], Image], name: str
) -> None:
    image = put(name, REFUSED[name])
    started = time.process_time()  # work, not waiting: what others do on this machine does not count
    with pytest.raises(DataError, match=name):
        asyncio.run(ImageDoor().encode(image, ImagePolicy(max_side=16)))
    assert time.process_time() - started < 2.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_flip_of_bytes_makes_more_than_a_data_error() -> None:
    draw = random.Random(20)
    exif = save(noise(), "WEBP", exif=rotated(6).tobytes())
    for data in (
        JPEG,
        exif,
        GIF,
        TIFF,
        save(noise(), "TIFF", compression="tiff_lzw"),
        save(noise(), "BMP"),
        save(DEEP, "TIFF"),
    ):
        for _ in range(120):
            broken = bytearray(data)
            for _ in range(draw.randint(1, 6)):
                broken[draw.randrange(min(len(broken), 400))] = draw.choice((0, 255, draw.randrange(256)))
            try:
                read_header(bytes(broken), "x")
                decode(bytes(broken), "x")
            except DataError as error:
                assert len(str(error)) < 500


def test_a_picture_with_right_sums_and_wrong_pixels_is_corrupt_when_opened(put: Callable[[str, bytes], Image]) -> None:
    for pixels in (b"", b"not zlib at all", zlib.compress(b"\0" * 3)):
        with pytest.raises(DataError, match="corrupt"):
            open_image(put("x.png", png(32, 24, pixels)))


def test_names_that_are_no_names(tmp_path: Path) -> None:
    base64 = pybase64.b64encode(PNG * 3).decode()
    for ref in (
        f"{tmp_path}/{base64}",
        f"{tmp_path}/nul\0name.png",
        "data:image/png;base64," + pybase64.b64encode(b"x" * 10**6).decode(),
    ):
        with pytest.raises(DataError) as error:
            asyncio.run(ImageDoor().encode(Image(ref), ImagePolicy()))
        assert len(str(error.value)) < 500


def test_those_who_wait_for_a_picture_hear_when_it_is_given_up(
    put: Callable[[str, bytes], Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*_: object) -> None:
        await asyncio.sleep(0)  # the others come meanwhile
        raise ZeroDivisionError

    monkeypatch.setattr(Drawing, "prepare", break_down)
    image = put("a.png", PNG)

    async def both() -> list[object]:
        door = ImageDoor()
        asked = (door.encode(image, ImagePolicy(max_side=8)) for _ in range(3))
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5)

    assert [type(each) for each in asyncio.run(both())] == [ZeroDivisionError, DataError, DataError]


def test_the_whole_corpus_in_one_run_costs_only_the_damaged_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty-four files, one run: whole ones are scored, damaged ones fail by themselves, and the counts add up."""
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    files = {**{name: data for name, (data, _) in SIZE_AS_SENT.items()}, **REFUSED}
    rows = []
    for name, data in sorted(files.items(), key=lambda pair: pair[0] in REFUSED):  # the damaged ones stand in a row
        (tmp_path / name).write_bytes(data)
        rows.append({"id": name, "image": name, "question": "What is it?", "options": ["cat", "dog"], "answer": "A"})
    rows += [
        {"id": f"missing{n}", "image": f"missing{n}.png", "question": "?", "options": ["cat", "dog"], "answer": "A"}
        for n in range(40)
    ]
    data_file = tmp_path / "corpus.jsonl"
    data_file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="40 images missing"):
        snellen.run(str(data_file), "blind/first", output_dir=tmp_path / "run")
    result = snellen.run(str(data_file), "blind/first", output_dir=tmp_path / "run", allow_missing_images=True)
    found = result.results["tasks"]["corpus"]["metrics"]["accuracy"]
    assert (found["n"], found["unscored"], found["failed"]) == (len(SIZE_AS_SENT), 0, len(REFUSED) + 40)
    records = {
        record["sample"]: record
        for record in map(json.loads, (tmp_path / "run" / "records.jsonl").read_text().splitlines())
    }
    assert {name for name, record in records.items() if record["outcome"] == "scored"} == set(SIZE_AS_SENT)
    assert all(name in records[name]["error"]["message"] for name in REFUSED)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("deep.jsonl", b"[" * 200_000, "not valid JSON"),
        ("deep.json", b"[" * 200_000, "not valid JSON"),
        ("list.jsonl", b"[1, 2]\n", "not an object"),
        ("nul.jsonl", b"\x00\x00", "not valid JSON"),
        ("latin.csv", b"id,question\n1,caf\xe9\n", "cannot be read"),
        ("wide.csv", b"id,question\n1,a,b\n", "more cells"),
        ("open.csv", b'id,question\n1,"never closed\n', "cannot be read"),
        ("empty.jsonl", b"\n\n", "no samples"),
        ("surrogate.jsonl", b'{"id": "\\ud800", "question": "?"}', "not valid JSON"),
        (
            "twins.jsonl",
            '{"id": "caf\u00e9", "question": "a"}\n{"id": "cafe\u0301", "question": "b"}\n'.encode(),
            "repeat an id",
        ),
        (
            "square.jsonl",
            '{"id": 1, "question": "?", "options": ["a", "b", "c"], "answer": "²"}'.encode(),
            "not among the options",
        ),
        ("bracket.jsonl", b'{"id": 1, "question": "?", "image": "[a.png"}', "1 image missing"),
        ("parquet.parquet", b"PAR1 no it is not", "not valid Parquet"),
    ],
)
def test_damaged_data_files_are_one_line(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words) as error:
        snellen.run(str(tmp_path / name), "blind/first", output_dir=tmp_path / "run")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600
    assert not (tmp_path / "run").exists()


def test_base64_that_is_no_picture_fails_its_trial_by_name(tmp_path: Path) -> None:
    row = {"id": 1, "question": "?", "image": "iVBOR" * 400, "answer": "x"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    result = snellen.run(str(tmp_path / "rows.jsonl"), "blind/first", output_dir=tmp_path / "run")
    accuracy = result.results["tasks"]["rows"]["metrics"]["accuracy"]
    assert (accuracy["n"], accuracy["unscored"], accuracy["failed"]) == (0, 0, 1)
    (record,) = map(json.loads, (tmp_path / "run" / "records.jsonl").read_text().splitlines())
    assert "not a picture" in json.dumps(record) and "decode" in json.dumps(record)
