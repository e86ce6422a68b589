"""References to images as a model's policy wants them: each encoded once, as base64 ready to splice."""

from __future__ import annotations

import asyncio
import io
from collections import OrderedDict
from typing import Any, NamedTuple

import PIL.Image
import pybase64

from ...core.errors import DataError
from ...core.ids import sha256_hex
from ...core.protocols import EncodedImage, EncodedImages, ImagePolicy
from ...core.types import Image, ImageSent, Request
from .decode import Header, decode, read_header, read_stamped, short_name
from .edits import apply_edits
from .examiner import Examination
from .frames import Facts, PictureError
from .metadata import without_metadata
from .whole_video import encode_video, is_whole_video

KEPT_BYTES = 32 * 2**20
"""So far an image is kept for the next question on it: memory that is used again at once costs no page faults."""
INLINE_BYTES = 2**20
"""Files up to this size that need no redrawing are read on the event loop: a thread hop would cost more."""
JPEG_QUALITIES = (92, 85, 75, 60, 45)
STRIPPED = ("image/png", "image/jpeg", "image/webp")
"""What can lose its metadata without being drawn again."""

Key = tuple[Image, ImagePolicy]


class Shelf:
    """Encoded images within a byte budget; those not asked for longest go first."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._images: OrderedDict[Key, EncodedImage] = OrderedDict()
        self.used_bytes = 0

    def put(self, key: Key, encoded: EncodedImage) -> None:
        """Keep an image that is not here yet as the newest."""
        self._images[key] = encoded
        self.used_bytes += len(encoded.base64)
        while self.used_bytes > self._budget and self._images:
            _, old = self._images.popitem(last=False)
            self.used_bytes -= len(old.base64)

    def get(self, key: Key) -> EncodedImage | None:
        """Return an image, now the newest, or None."""
        encoded = self._images.get(key)
        if encoded is not None:
            self._images.move_to_end(key)
        return encoded


class ImageDoor:
    """Encodes images for sending: each distinct (image, policy) once while it stays in the budget."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept = Shelf(kept_bytes)
        self._coming: dict[Key, asyncio.Future[EncodedImage]] = {}
        self._examination = Examination()

    async def encode(self, image: Image, policy: ImagePolicy) -> EncodedImage:
        """Return the image as the policy wants it; raise DataError when it cannot be read."""
        key = (image, policy)
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        if key in self._coming:
            return await asyncio.shield(self._coming[key])
        return await self._encode_first(key)

    async def encode_all(self, request: Request, policy: ImagePolicy) -> EncodedImages:
        """Return every image of a request by its reference."""
        return {image: await self.encode(image, policy) for image in images_of(request)}

    def close(self) -> None:
        """End the process that looks at files, if there is one; the door can be used again."""
        self._examination.close()

    async def _encode_first(self, key: Key) -> EncodedImage:
        image, policy = key
        future: asyncio.Future[EncodedImage] = asyncio.get_running_loop().create_future()
        self._coming[key] = future
        try:
            encoded = await self._read_and_encode(image, policy)
            future.set_result(encoded)
        except DataError as error:
            future.set_exception(error)
            raise
        finally:
            self._coming.pop(key, None)
            if not future.done():  # cancelled, or a mistake of ours: whoever waits must not wait for ever
                future.set_exception(DataError(f"reading image {short_name(image.ref)!r} was given up"))
            future.exception()  # waiters get their own copy; without any, nobody is left to warn
        self._kept.put(key, encoded)
        return encoded

    async def _read_and_encode(self, image: Image, policy: ImagePolicy) -> EncodedImage:
        if image.frame is not None or is_whole_video(image):  # decoding, or reading much: never on the event loop
            return await asyncio.to_thread(encode_moving, image, policy)
        is_file = ":" not in image.ref[:6]
        opened = open_picture(image, await self._examination.examine(image.ref) if is_file else None)
        if len(opened.data) <= INLINE_BYTES and is_sendable(opened, policy, image):
            encoded = encode_as_it_is(opened, policy)
            if encoded is not None:
                return encoded
        return await asyncio.to_thread(prepare, opened, image, policy)


def encode_moving(image: Image, policy: ImagePolicy) -> EncodedImage:
    """Return a frame of a video, or a whole one, as the policy wants it."""
    return encode_video(image, policy) if is_whole_video(image) else prepare(open_picture(image, None), image, policy)


def images_of(request: Request) -> dict[Image, None]:
    """Return the distinct images of a request: those of its messages, then those of the prompt for its priors."""
    baseline = request.likelihood.baseline
    turns = (*request.messages, *baseline) if baseline else request.messages
    return dict.fromkeys([image for turn in turns for image in turn.images])


class OpenedPicture(NamedTuple):
    """A file's bytes and what is known of them."""

    data: bytes
    header: Header
    sha256: str | None
    """None where nobody has hashed it yet."""


def open_picture(image: Image, facts: Facts | None) -> OpenedPicture:
    """Read and check a picture; `facts` spare the work where the file is still the one they were found in."""
    data, mtime_ns = read_stamped(image)
    if facts is None or (facts.size_bytes, facts.mtime_ns) != (len(data), mtime_ns):
        return OpenedPicture(data, _one_frame(read_header(data, image.ref), data, image.ref), None)
    header = Header("image/png", *facts.frame) if facts.frame else read_header(data, image.ref)
    return OpenedPicture(data, _one_frame(header, data, image.ref), facts.sha256)


def _one_frame(header: Header, data: bytes, name: str) -> Header:
    """Refuse a file of several pages or frames: a model would be shown the first, and asked about all."""
    frames = header.frames if header.plain or header.mime != "image/png" else _png_frames(data)
    if frames == 1:
        return header
    if header.mime == "image/tiff":
        raise DataError(f"image {short_name(name)!r} has {frames} pages: save each as a file, or all as a PDF")
    moving = f"image {short_name(name)!r} is an animation of {frames} frames"
    raise DataError(f"{moving}: save the one that is meant, or show it as a video (--map video=COLUMN)")


def _png_frames(data: bytes) -> int:
    """Return how many frames a PNG shows one after the other."""
    at = data.find(b"acTL", 0, data.find(b"IDAT"))
    return int.from_bytes(data[at + 4 : at + 8], "big") if at > 0 else 1


def is_sendable(opened: OpenedPicture, policy: ImagePolicy, image: Image) -> bool:
    """Tell whether the file can leave as its own bytes."""
    header = opened.header
    small = policy.max_bytes is None or len(opened.data) <= policy.max_bytes
    plain = header.plain and header.mime in policy.formats and not image.edits
    if policy.bare and header.mime not in STRIPPED:
        return False
    size = header.width, header.height
    return plain and small and target_size(header, policy) == size == with_margin(size, policy)


def target_size(header: Header, policy: ImagePolicy) -> tuple[int, int]:
    """Return width and height after the policy's limits on side and pixels, aspect kept."""
    scale = 1.0
    if policy.max_side:
        scale = min(scale, policy.max_side / max(header.width, header.height))
    if policy.max_pixels:
        scale = min(scale, (policy.max_pixels / (header.width * header.height)) ** 0.5)
    if scale >= 1.0:
        return header.width, header.height
    return max(1, int(header.width * scale)), max(1, int(header.height * scale))


def with_margin(size: tuple[int, int], policy: ImagePolicy) -> tuple[int, int]:
    """Return the size with the white margin that brings both sides to the policy's least."""
    least = policy.min_side or 0
    return max(size[0], least), max(size[1], least)


def prepare(opened: OpenedPicture, image: Image, policy: ImagePolicy) -> EncodedImage:
    """Encode a picture: its own bytes where they can be sent, else decoded, edited, resized and compressed again."""
    encoded = encode_as_it_is(opened, policy) if is_sendable(opened, policy, image) else None
    if encoded is not None:
        return encoded
    header = opened.header
    picture = apply_edits(decode(opened.data, image.ref), image.edits)
    original = picture.size
    picture = _sized(picture, target_size(Header(header.mime, *original, picture.mode, True), policy), policy)
    out, mime = _compress(picture, header.mime, policy, image.ref)
    if policy.bare:
        out = _stripped(out, mime) or out
    sent = ImageSent(sha256_hex(out), mime, *picture.size, len(out), original if picture.size != original else None)
    return EncodedImage(pybase64.b64encode(out), sent)


def encode_as_it_is(opened: OpenedPicture, policy: ImagePolicy) -> EncodedImage | None:
    """Encode a picture's own bytes, without its metadata where the policy strips them; None where that cannot be."""
    data, header, sha256 = opened
    if policy.bare:
        stripped = _stripped(data, header.mime)
        if stripped is None:
            return None
        data, sha256 = stripped, None
    sent = ImageSent(sha256 or sha256_hex(data), header.mime, header.width, header.height, len(data))
    return EncodedImage(pybase64.b64encode(data), sent)


def _stripped(data: bytes, mime: str) -> bytes | None:
    """Return the file without its metadata, or None where it is not laid out as its kind: then it is drawn again."""
    try:
        return without_metadata(data, mime)
    except PictureError:
        return None


def _sized(picture: PIL.Image.Image, wanted: tuple[int, int], policy: ImagePolicy) -> PIL.Image.Image:
    """Return the picture in the wanted size, with a margin where the policy asks for one."""
    if wanted != picture.size:
        picture = picture.resize(wanted, PIL.Image.Resampling.LANCZOS)
    sheet = with_margin(wanted, policy)
    return picture if sheet == wanted else _in_the_middle(picture, sheet)


def _in_the_middle(picture: PIL.Image.Image, size: tuple[int, int]) -> PIL.Image.Image:
    sheet = PIL.Image.new(picture.mode, size, "white")
    sheet.paste(picture, ((size[0] - picture.width) // 2, (size[1] - picture.height) // 2))
    return sheet


def _compress(picture: PIL.Image.Image, mime: str, policy: ImagePolicy, name: str) -> tuple[bytes, str]:
    lossless = mime != "image/jpeg" and "image/png" in policy.formats
    attempts: list[tuple[str, str, dict[str, Any]]] = [("PNG", "image/png", {"compress_level": 1})] if lossless else []
    attempts += [("JPEG", "image/jpeg", {"quality": quality}) for quality in JPEG_QUALITIES]
    for kind, out_mime, options in attempts:
        out = io.BytesIO()
        picture.save(out, kind, **options)
        if policy.max_bytes is None or out.tell() <= policy.max_bytes:
            return out.getvalue(), out_mime
    reason = f"does not fit into {policy.max_bytes} bytes: set a smaller --image-max-side"
    raise DataError(f"image {short_name(name)!r} {reason}")
