"""Pictures examined by a process of its own: the same facts, and when it is gone, the same pictures all the same."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import PIL.Image
import pytest

from snellen.core.errors import DataError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image
from snellen.data.images import encode as encode_module
from snellen.data.images import encode as examiner_module
from snellen.data.images.encode import EncodedImage, Examiner, ImageDoor
from snellen.data.images.frames import Facts, PngFrame, png_size, read_facts, write_facts

T = TypeVar("T")
POLICY = ImagePolicy()


def pictures(folder: Path, count: int = 12) -> list[Image]:
    for number in range(count):
        PIL.Image.new("RGB", (8 + number, 5), (number, 0, 0)).save(
            folder / f"{number}.{'jpg' if number % 3 == 2 else 'png'}"
        )
    return [Image(str(path)) for path in sorted(folder.iterdir())]


def with_examiner(use: Callable[[Examiner], Awaitable[T]]) -> T:
    async def main() -> T:
        examiner = await Examiner.start()
        assert examiner is not None
        try:
            return await use(examiner)
        finally:
            examiner.close()
            assert examiner._process.returncode is not None

    return asyncio.run(asyncio.wait_for(main(), 30))


def test_the_process_finds_what_we_would(tmp_path: Path) -> None:
    images = pictures(tmp_path)
    for name in ("ä 日本 ' \" $.png", "..odd.png", "two\nlines.png"):
        (tmp_path / name).write_bytes(Path(images[0].ref).read_bytes())
    (tmp_path / "cut.png").write_bytes(Path(images[0].ref).read_bytes()[:-9])
    (tmp_path / "empty.png").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    paths = [*map(str, sorted(tmp_path.iterdir())), str(tmp_path / "missing.png"), "", "a\0b", "\ud800.png"]

    async def use(examiner: Examiner) -> list[Facts | None]:
        return list(await asyncio.gather(*map(examiner.examine, paths)))

    found = with_examiner(use)
    odd = [not path.isprintable() or not path for path in paths]
    here = [None if odd[at] else read_facts(write_facts(path.encode()).strip(b"\n")) for at, path in enumerate(paths)]
    assert found == here
    assert sum(facts is not None for facts in found) == 12 + 2 + 1  # the pictures, two copies and the empty file
    assert found[0] is not None
    assert found[0].frame == PngFrame(8, 5, "RGB", True)


def test_thousands_of_questions_at_once_are_answered_in_order(tmp_path: Path) -> None:
    images = pictures(tmp_path)
    paths = [images[number % len(images)].ref for number in range(5_000)]

    async def use(examiner: Examiner) -> list[Facts | None]:
        return list(await asyncio.gather(*map(examiner.examine, paths)))

    found = with_examiner(use)
    assert found == [found[number % len(images)] for number in range(5_000)]
    assert len(set(found)) == len(images)


def encode_all(
    images: list[Image], monkeypatch: pytest.MonkeyPatch, *, few: int, kill_at: int | None = None
) -> list[EncodedImage]:
    monkeypatch.setattr(examiner_module, "FEW_FILES", few)

    async def main() -> list[EncodedImage]:
        door, encoded = ImageDoor(), []
        try:
            for number, image in enumerate(images):
                if number == kill_at:
                    assert door._examination._examiner is not None
                    process = (await door._examination._examiner)._process  # type: ignore[union-attr]
                    os.kill(process.pid, signal.SIGKILL)
                encoded.append(await door.encode(image, POLICY))
                if door._examination._examiner is not None:
                    await (
                        door._examination._examiner
                    )  # in earnest nobody waits; here its start must not depend on the machine
            assert (door._examination._examiner is not None) == (few < len(images))
        finally:
            door.close()
        return encoded

    return asyncio.run(asyncio.wait_for(main(), 30))


def test_a_door_sends_the_same_pictures_with_and_without_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = pictures(tmp_path)
    alone = encode_all(images, monkeypatch, few=10**6)
    assert encode_all(images, monkeypatch, few=2) == alone
    assert encode_all(images, monkeypatch, few=2, kill_at=6) == alone


def test_a_broken_picture_says_the_same_with_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(tmp_path, 3)
    broken = tmp_path / "broken.png"
    broken.write_bytes(Path(images[0].ref).read_bytes()[:-9])
    with pytest.raises(DataError, match=r"broken.png' is c"):
        encode_all([*images, Image(str(broken))], monkeypatch, few=1)


def test_facts_of_an_older_file_are_not_believed(tmp_path: Path) -> None:
    image = pictures(tmp_path, 1)[0]
    facts = read_facts(write_facts(image.ref.encode()).strip(b"\n"))
    assert facts is not None
    lie = facts._replace(sha256="0" * 64)
    assert encode_module.open_picture(image, lie).sha256 == "0" * 64
    assert encode_module.open_picture(image, lie._replace(mtime_ns=1)).sha256 is None
    assert encode_module.open_picture(image, lie._replace(size_bytes=1)).sha256 is None


def test_closing_while_it_starts_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examiner_module, "FEW_FILES", 0)
    image = pictures(tmp_path, 1)[0]

    async def main() -> Examiner | None:
        door = ImageDoor()
        await door.encode(image, POLICY)
        starting = door._examination._examiner
        assert starting is not None
        door.close()
        examiner = await starting
        await asyncio.sleep(0)
        return examiner

    examiner = asyncio.run(main())
    assert examiner is not None
    assert examiner._process.returncode is not None


def test_a_door_may_be_used_in_another_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examiner_module, "FEW_FILES", 0)
    first, second, third = pictures(tmp_path, 3)
    door = ImageDoor()

    async def start() -> None:
        await door.encode(first, POLICY)
        assert door._examination._examiner is not None
        await door._examination._examiner
        await door.encode(second, POLICY)

    async def again() -> EncodedImage:
        return await door.encode(third, POLICY)

    async def close() -> None:
        door.close()

    with asyncio.Runner() as one, asyncio.Runner() as other:
        one.run(start())
        assert other.run(again()).sent.width == 10
        one.run(close())


def test_the_first_bytes_of_a_png_tell_its_size_and_nothing_else_does(tmp_path: Path) -> None:
    images = pictures(tmp_path)
    sizes = {Path(image.ref).name: png_size(image.ref) for image in images}
    assert sizes == {f"{n}.png": (8 + n, 5) for n in range(12) if n % 3 != 2} | {
        f"{n}.jpg": None for n in range(12) if n % 3 == 2
    }
    whole = Path(images[0].ref).read_bytes()
    for name, content in {
        "short": whole[:20],
        "flat": whole[:16] + bytes(8),
        "vast": whole[:16] + b"\xff" * 8,
        "other": whole[:12] + b"IDAT" + whole[16:],
    }.items():
        (tmp_path / name).write_bytes(content)
        assert png_size(str(tmp_path / name)) is None, name
    os.mkfifo(tmp_path / "pipe")
    assert [png_size(str(tmp_path / name)) for name in ("pipe", "missing", "")] == [None, None, None]
    assert png_size("a\0b") is None
