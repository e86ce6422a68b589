"""The images of a request: encoded once from digest to model, and never more of them in memory than may wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import PIL.Image
import pytest

from line_doubles import OneTrial, Scripted, work
from snellen.core.errors import DataError
from snellen.core.protocols import EncodedImage, EncodedImages, ImagePolicy
from snellen.core.types import Image, ImageSent, Prediction, Request, TrialKey, Turn
from snellen.data.images.encode import ImageDoor
from snellen.engine.loop import ImageDesk, RequestImages


class CountingDoor(ImageDoor):
    """Makes images of 100 bytes up, keeps none, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def encode(self, image: Image, policy: ImagePolicy) -> EncodedImage:
        await asyncio.sleep(0)
        self.asked.append(image.ref)
        if image.ref == "gone":
            raise DataError("image 'gone' does not exist")
        return EncodedImage(b"x" * 100, ImageSent(image.ref, "image/png", 1, 1, 75))


def request(*names: str) -> Request:
    return Request(TrialKey("t", "s"), (Turn("user", "?", tuple(map(Image, names))), Turn("user", "!", (Image("a"),))))


def desk(limit_bytes: int = 1000) -> ImageDesk:
    return ImageDesk(CountingDoor(), ImagePolicy(), limit_bytes)


async def encoded(desk: ImageDesk, *names: str) -> RequestImages:
    images = RequestImages(request(*names), desk)
    await images.encode()
    return images


def test_each_image_is_encoded_once_between_digest_and_model() -> None:
    async def go() -> None:
        images = await encoded(shared, "a", "b")
        assert [sent.sha256 for sent in images.sent] == ["a", "b", "a"]
        assert shared.used_bytes == 200
        assert {image.ref for image in await images.take()} == {"a", "b"}
        assert shared.used_bytes == 0
        images.let_go()
        assert shared.used_bytes == 0

    shared = desk()
    asyncio.run(go())
    assert shared.door.asked == ["a", "b"]


def test_what_may_not_wait_is_let_go_and_encoded_again() -> None:
    async def go() -> None:
        first = await encoded(shared, "a", "b")
        second = await encoded(shared, "a", "c", "d")
        assert shared.used_bytes == 200, "the second holds nothing, the first all of its own"
        assert [sent.sha256 for sent in second.sent] == ["a", "c", "d", "a"]
        assert {image.ref: one.sent.sha256 for image, one in (await second.take()).items()} == {
            name: name for name in "acd"
        }
        await first.take()

    shared = desk(limit_bytes=300)
    asyncio.run(go())
    assert shared.door.asked == ["a", "b", "a", "c", "d", "a", "c", "d"]
    assert shared.used_bytes == 0


def test_an_image_that_cannot_be_read_leaves_nothing_held() -> None:
    async def go() -> None:
        images = RequestImages(request("a", "gone"), shared)
        with pytest.raises(DataError, match="gone"):
            await images.encode()
        images.let_go()

    shared = desk()
    asyncio.run(go())
    assert shared.used_bytes == 0


def test_the_model_is_handed_what_the_record_says_was_sent(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    image = Image(str(tmp_path / "a.png"))
    handed: list[EncodedImages] = []

    class Looking(Scripted):
        async def predict(self, request: Request, images: EncodedImages) -> Prediction:
            handed.append(images)
            return Prediction(request.key, text="seen", images=(images[image].sent,))

    work(tmp_path / "run", Looking(), iter([OneTrial(0, image=image)]))
    assert list(handed[0]) == [image]
    assert len(handed[0][image].base64) >= handed[0][image].sent.size_bytes
