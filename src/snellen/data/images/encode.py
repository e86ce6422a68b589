"""References to images as a model's policy wants them: each encoded once, as base64 ready to splice."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import struct
import subprocess
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import PIL.Image
import pybase64

from ...core.errors import DataError
from ...core.ids import sha256_hex
from ...core.protocols import EncodedImage, EncodedImages, ImagePolicy
from ...core.types import Image, ImageSent, Request
from . import frames
from .decode import Header, decode, read_header, read_stamped, short_name
from .edits import apply_edits
from .frames import PNG_SIGNATURE, Facts, PictureError, read_facts
from .whole_video import encode_video, is_whole_video

if TYPE_CHECKING:
    from .drawing import Drawing

FEW_FILES = 32
"""So many are looked at by whoever asks; for more a process is started."""
USEFUL = os.name == "posix" and (os.cpu_count() or 1) > 1 and not getattr(sys, "frozen", False)
"""There must be a second core, a process that takes a socket for a file, and a Python to start (no frozen program)."""


APART = os.name == "posix" and not getattr(sys, "frozen", False)
"""Whether pictures are drawn in processes of their own; else in threads, which cannot be ended."""


class Examination:
    """Starts the process once there are files enough to be worth it; nobody waits for its start."""

    def __init__(self) -> None:
        self._asked = 0
        self._examiner: asyncio.Task[Examiner | None] | None = None

    async def examine(self, path: str) -> Facts | None:
        """Return the facts of a file, or None: then whoever asks looks for himself."""
        self._asked += 1
        if self._asked <= FEW_FILES or not USEFUL:
            return None
        if self._examiner is None:
            self._examiner = asyncio.create_task(Examiner.start())
        examiner = self._examiner.result() if self._examiner.done() else None
        return None if examiner is None else await examiner.examine(path)

    def close(self) -> None:
        """End the process, if there is one; another is started when it is needed again."""
        if self._examiner is not None:
            starting, self._examiner = self._examiner, None
            if starting.done():
                _end(starting)
            else:
                starting.add_done_callback(_end)


class Examiner(asyncio.Protocol):
    """Asks a process for the facts of files, in order; once it is gone there are none."""

    def __init__(self, process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._process = process
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._asked: deque[asyncio.Future[Facts | None]] = deque()
        self._paths: list[bytes] = []
        self._rest = b""

    @classmethod
    async def start(cls) -> Examiner | None:
        """Start the process: 13 ms of another core and 13 MB; None where it cannot be had."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                command, end = [sys.executable, "-I", "-S", frames.__file__], theirs.fileno()
                # A session of its own: Ctrl-C is for the run, which still has to finish what it asked.
                process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own module; starting it takes 0.3 ms
                    command, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True
                )
        except OSError:
            ours.close()
            return None
        examiner = cls(process, loop)
        try:
            await loop.create_connection(lambda: examiner, sock=ours)
        finally:
            if examiner._transport is None:
                process.kill()
                process.wait()
        return examiner

    def examine(self, path: str) -> asyncio.Future[Facts | None]:
        """Return the facts of a file when they are known; None where it cannot be read, or where nobody can look."""
        loop = asyncio.get_running_loop()
        facts: asyncio.Future[Facts | None] = loop.create_future()
        # A zero byte in a name would end it too early.
        name = path.encode(errors="surrogateescape") if path.isprintable() else b""
        if self._transport is None or self._transport.is_closing() or loop is not self._loop or not name:
            facts.set_result(None)
            return facts
        self._asked.append(facts)
        self._paths.append(name + b"\0")
        if len(self._paths) == 1:
            loop.call_soon(self._send)  # all that is asked in this turn of the loop goes together
        return facts

    def close(self) -> None:
        """End the process; what was asked is answered with None."""
        if self._transport is not None:
            self._transport.abort()
        self._process.terminate()
        self._process.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to write."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a socket's is one
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand out the facts that came."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            _settle(self._asked.popleft(), read_facts(line))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let nobody wait for what will not come."""
        while self._asked:
            _settle(self._asked.popleft(), None)

    def _send(self) -> None:
        paths, self._paths = b"".join(self._paths), []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(paths)


def _settle(future: asyncio.Future[Facts | None], facts: Facts | None) -> None:
    if not future.done():
        future.set_result(facts)


def _end(starting: asyncio.Task[Examiner | None]) -> None:
    examiner = None if starting.cancelled() else starting.result()
    if examiner is not None:
        examiner.close()


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


KEPT_BYTES = 32 * 2**20
"""So far an image is kept for the next question on it: memory that is used again at once costs no page faults."""
INLINE_BYTES = 2**20
"""Files up to this size that need no redrawing are read on the event loop: a thread hop would cost more."""
JPEG_QUALITIES = (92, 85, 75, 60, 45)
STRIPPED = ("image/png", "image/jpeg", "image/webp")
"""What can lose its metadata without being drawn again."""

Key = tuple[Image, ImagePolicy]


class ImageCache:
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
        self._kept = ImageCache(kept_bytes)
        self._coming: dict[Key, asyncio.Future[EncodedImage]] = {}

    @cached_property
    def _examination(self) -> Examination:
        """Return what looks at files; like what draws them, it is there from the first that needs it."""
        return Examination()

    @cached_property
    def _drawing(self) -> Drawing:
        from .drawing import Drawing

        return Drawing()

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
        """End the processes that look at files and draw them, if there are any; the door can be used again."""
        for part in ("_examination", "_drawing"):
            if part in self.__dict__:
                getattr(self, part).close()

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
        if is_sendable(opened, policy, image):
            if len(opened.data) > INLINE_BYTES:
                return await asyncio.to_thread(prepare, opened, image, policy)
            encoded = encode_as_it_is(opened, policy)
            if encoded is not None:
                return encoded
        if not APART:
            return await asyncio.to_thread(prepare, opened, image, policy)
        return await self._drawing.prepare(image, policy)


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
    # A region that was looked at closely has no losses of its own, as far as its bytes fit.
    kind = "image/png" if any(edit.startswith("region:") for edit in image.edits) else header.mime
    out, mime = _compress(picture, kind, policy, image.ref)
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
