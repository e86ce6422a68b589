"""What goes between driver and replica: leases of questions or of work items out, what became of each back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pybase64
from msgspec import Raw, Struct

from ...core.errors import DataError, EnvironmentProblem, FailureKind, ModelError, SnellenError, StopRun, UsageError
from ...core.ids import sha256_hex
from ...core.protocols import EncodedImage, EncodedImages, ImagePolicy
from ...core.types import Image, ImageSent, Prediction, Request, Turn
from ...data.images.decode import read_bytes
from ...data.images.encode import ImageCache

Result = Prediction | bytes | SnellenError
"""What becomes of an item: the prediction of a question, the bytes of work, or why there is neither."""
KEPT_BYTES = 64 * 2**20
"""So much of files is kept for the next question on them."""


class Hello(Struct, frozen=True):
    """The first a replica says: what it is, so that no other model answers under this one's name."""

    version: str
    identity: str
    """A hash of the model's identity."""
    host: str = ""
    pid: int = 0
    python: str = ""


class LeasedPicture(Struct, frozen=True, array_like=True):
    """A picture of a lease; its bytes travel beside it, each content once."""

    image: Image
    sent: ImageSent
    place: int
    """Which of the contents it is as it is sent."""
    original: int | None = None
    """Which of the contents is the file itself; None: the replica reads it where the reference says."""


class Lease(Struct, frozen=True, array_like=True):
    """What goes to one replica together: questions with their pictures, or work items."""

    requests: tuple[tuple[int, Request], ...] = ()
    pictures: tuple[LeasedPicture, ...] = ()
    work: tuple[tuple[int, int], ...] = ()
    """The number of a work item, and which of the contents it is."""


class WireError(Struct, frozen=True, omit_defaults=True):
    """An error of ours on its way from a replica to the driver."""

    type: str
    message: str
    kind: FailureKind = FailureKind.SERVER
    status: int | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    detail: dict[str, Any] = {}

    def revive(self) -> SnellenError:
        """Return the error as the engine knows it."""
        if self.type in ("ModelError", "StopRun"):
            made = StopRun if self.type == "StopRun" else ModelError
            return made(
                self.kind,
                self.message,
                status=self.status,
                retryable=self.retryable,
                retry_after_s=self.retry_after_s,
                detail=self.detail,
            )
        return (EnvironmentProblem if self.type == "EnvironmentProblem" else UsageError)(self.message)


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What became of one item. Its result is read on its own: one that is malformed costs nobody else's."""

    number: int
    result: Raw = Raw()
    error: WireError | None = None


class Outcomes(Struct, frozen=True, array_like=True):
    """Everything that was finished when the driver asked."""

    outcomes: tuple[Outcome, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_lease = msgspec.msgpack.Decoder(Lease)
_outcomes = msgspec.msgpack.Decoder(Outcomes)
_prediction = msgspec.msgpack.Decoder(Prediction)
_bytes = msgspec.msgpack.Decoder(bytes)


def write_wire_error(error: SnellenError) -> WireError:
    """Return an error of ours as it travels; of those that are no ModelError only whose fault it is stays."""
    if isinstance(error, ModelError):
        name = "StopRun" if isinstance(error, StopRun) else "ModelError"
        facts = (error.status, error.retryable, error.retry_after_s, error.detail)
        return WireError(name, str(error), error.kind, *facts)
    return WireError("EnvironmentProblem" if error.exit_code == 3 else "UsageError", str(error))


def read_lease(data: bytes) -> Lease:
    """Return the lease that was written."""
    return _lease.decode(data)


def write_outcomes(outcomes: Sequence[tuple[int, Result]]) -> bytes:
    """Return what became of items as bytes."""
    return _encode(Outcomes(tuple([_outcome(number, result) for number, result in outcomes])))


def _outcome(number: int, result: Result) -> Outcome:
    if isinstance(result, SnellenError):
        return Outcome(number, error=write_wire_error(result))
    try:
        return Outcome(number, Raw(_encode(result)))
    except TypeError as error:  # a model put something into its prediction that no store could hold either
        return Outcome(number, error=write_wire_error(malformed(str(error))))


def read_outcomes(data: bytes) -> tuple[Outcome, ...]:
    """Return what became of the items; each reads its own result."""
    return _outcomes.decode(data).outcomes


def malformed(why: str) -> ModelError:
    """Return the failure of an item whose result is none."""
    return ModelError(FailureKind.DECODE, f"a replica gave a malformed result: {why}")


def unpack_requests(lease: Lease, contents: Sequence[bytes]) -> list[tuple[int, Request, EncodedImages]]:
    """Return each request of a lease with its images; a picture whose file travelled along is named by its content."""
    encoded = {one.image: EncodedImage(contents[one.place], one.sent) for one in lease.pictures}
    renamed = {one.image: _by_content(one, contents) for one in lease.pictures if one.original is not None}
    unpacked: list[tuple[int, Request, EncodedImages]] = []
    for number, request in lease.requests:
        images = _of_request(request, encoded)
        named = {renamed.get(image, image): picture for image, picture in images.items()}
        unpacked.append((number, with_images(request, renamed) if renamed and images else request, named))
    return unpacked


def _of_request(request: Request, encoded: Mapping[Image, EncodedImage]) -> dict[Image, EncodedImage]:
    if not encoded:
        return {}
    turns = (*request.messages, *request.likelihood.baseline)
    return {image: encoded[image] for turn in turns for image in turn.images}


def _by_content(picture: LeasedPicture, contents: Sequence[bytes]) -> Image:
    assert picture.original is not None  # noqa: S101 - who calls has looked
    mime = picture.image.mime or picture.sent.mime
    data = contents[picture.original].decode("ascii")
    return msgspec.structs.replace(picture.image, ref=f"data:{mime};base64,{data}")


def with_images(request: Request, renamed: Mapping[Image, Image]) -> Request:
    """Return a request whose pictures are named otherwise; all else of it stays."""

    def turns(given: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return the messages with those names."""
        return tuple(
            msgspec.structs.replace(turn, images=tuple(renamed.get(image, image) for image in turn.images))
            for turn in given
        )

    likelihood = request.likelihood
    if likelihood.baseline:
        likelihood = msgspec.structs.replace(likelihood, baseline=turns(likelihood.baseline))
    return msgspec.structs.replace(request, messages=turns(request.messages), likelihood=likelihood)


class Content(NamedTuple):
    """Bytes that travel beside a lease, each once."""

    sha256: str
    data: bytes


class Question(NamedTuple):
    """A request with its images as they are sent; what comes back is a prediction."""

    request: Request
    images: EncodedImages
    originals: EncodedImages | None = None
    """The files of its images, where replicas cannot read them by name."""

    @property
    def name(self) -> str:
        """Return which one it is, in words."""
        return self.request.key.sample

    def read(self, outcome: Outcome) -> Prediction | SnellenError:
        """Return the prediction of this very request, or why there is none."""
        if outcome.error is not None:
            return outcome.error.revive()
        try:
            prediction = _prediction.decode(outcome.result)
        except (msgspec.DecodeError, ValueError) as error:
            return malformed(str(error))
        if prediction.key != self.request.key:
            return malformed(f"it answers trial {prediction.key.sample!r}, not {self.request.key.sample!r}")
        return prediction


class WorkItem(NamedTuple):
    """Bytes with which work is done (`data.files.work`); what comes back is bytes."""

    name: str
    data: bytes

    def read(self, outcome: Outcome) -> bytes | SnellenError:
        """Return the result, or why there is none."""
        if outcome.error is not None:
            return outcome.error.revive()
        try:
            return _bytes.decode(outcome.result)
        except (msgspec.DecodeError, ValueError) as error:
            return malformed(str(error))


Item = Question | WorkItem
"""What is leased to a replica: either kind knows what of it travels and reads its own result."""


class Contents:
    """The contents of one lease in the order they were first needed."""

    def __init__(self) -> None:
        self.all: list[Content] = []
        self._places: dict[str, int] = {}

    def place(self, content: Content) -> int:
        """Return which of the contents this is, adding it if it is new."""
        found = self._places.setdefault(content.sha256, len(self.all))
        if found == len(self.all):
            self.all.append(content)
        return found

    def picture(self, encoded: EncodedImage) -> int:
        """Return which of the contents a picture is."""
        return self.place(Content(encoded.sent.sha256, encoded.base64))


def pack_lease(items: Iterable[tuple[int, Item]]) -> tuple[bytes, list[Content]]:
    """Return numbered items as a lease in bytes and the contents that go with it.

    A picture is there as it is sent, and as its file where that travels.
    """
    contents = Contents()
    pictures: dict[Image, LeasedPicture] = {}
    requests: list[tuple[int, Request]] = []
    work: list[tuple[int, int]] = []
    for number, item in items:
        if isinstance(item, WorkItem):
            work.append((number, contents.place(Content(sha256_hex(item.data), item.data))))
            continue
        for image, encoded in item.images.items():
            if image not in pictures:
                original = item.originals.get(image) if item.originals else None
                where = None if original is None else contents.picture(original)
                pictures[image] = LeasedPicture(image, encoded.sent, contents.picture(encoded), where)
        requests.append((number, item.request))
    return _encode(Lease(tuple(requests), tuple(pictures.values()), tuple(work))), contents.all


class FileCache:
    """The files behind pictures, as content: read once while they stay in the budget."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept = ImageCache(kept_bytes)

    async def files_of(self, images: EncodedImages) -> dict[Image, EncodedImage]:
        """Return the file of every picture that has one; a picture that is its own content needs none."""
        return {image: await self._file(image, sent) for image, sent in _with_files(images)}

    async def _file(self, image: Image, encoded: EncodedImage) -> EncodedImage:
        key = (msgspec.structs.replace(image, edits=()), ImagePolicy())
        kept = self._kept.get(key)
        if kept is None:
            try:
                kept = await asyncio.to_thread(read_whole_file, image, encoded)
            except DataError as error:
                raise ModelError(FailureKind.DECODE, str(error)) from None
            self._kept.put(key, kept)
        return kept


def _with_files(images: EncodedImages) -> Iterable[tuple[Image, EncodedImage]]:
    return ((image, encoded) for image, encoded in images.items() if not image.ref.startswith("data:"))


def read_whole_file(image: Image, encoded: EncodedImage) -> EncodedImage:
    """Return the file behind a picture, as content: the sent one itself where it left as its own bytes."""
    data = read_bytes(image)
    sha256 = sha256_hex(data)
    if sha256 == encoded.sent.sha256:
        return encoded
    record = msgspec.structs.replace(encoded.sent, sha256=sha256, size_bytes=len(data))
    return EncodedImage(pybase64.b64encode(data), record)
