"""A request's images, encoded once: their hashes name the request, their bytes are what the model is handed."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.protocols import EncodedImage, EncodedImages, ImagePolicy
from ..core.types import Image, ImageSent, Request
from ..data.images.encode import ImageDoor, images_of

WAITING_BYTES = 256 * 2**20


@dataclass(slots=True)
class ImageDesk:
    """Where images come from, and how many bytes of them requests hold that wait for a slot.

    What is in flight is the limiter's matter. Without a bound here, every worker with a long document would hold all of
    its pages; beyond the bound a request lets go of them, and they are encoded again when it may be sent.
    """

    door: ImageDoor
    policy: ImagePolicy
    limit_bytes: int = WAITING_BYTES
    used_bytes: int = 0


@dataclass(slots=True)
class RequestImages:
    """The images of one request, from their encoding until it is sent."""

    request: Request
    desk: ImageDesk
    sent: tuple[ImageSent, ...] = ()
    """What the images of the messages are once they are ready to be sent, in order."""
    _held: dict[Image, EncodedImage] | None = field(default_factory=dict)
    _held_bytes: int = 0

    async def encode(self) -> None:
        """Encode all images and learn what they are; raise DataError when one cannot be read."""
        images = images_of(self.request)
        if not images:
            return
        records: dict[Image, ImageSent] = {}
        for image in images:
            encoded = await self.desk.door.encode(image, self.desk.policy)
            records[image] = encoded.sent
            self._hold(image, encoded)
        self.sent = tuple([records[image] for turn in self.request.messages for image in turn.images])

    async def take(self) -> EncodedImages:
        """Return the images for sending; they no longer count as waiting."""
        held = self._held
        self.let_go()
        return held if held is not None else await self.desk.door.encode_all(self.request, self.desk.policy)

    def let_go(self) -> None:
        """Hold nothing any more; may be called again."""
        self.desk.used_bytes -= self._held_bytes
        self._held, self._held_bytes = None, 0

    def _hold(self, image: Image, encoded: EncodedImage) -> None:
        if self._held is None:
            return
        self._held[image] = encoded
        self._held_bytes += len(encoded.base64)
        self.desk.used_bytes += len(encoded.base64)
        if self.desk.used_bytes > self.desk.limit_bytes:
            self.let_go()
