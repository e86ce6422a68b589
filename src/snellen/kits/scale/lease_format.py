"""What goes over the line between driver and replica: leases of requests out, outcomes back, both as msgpack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...core.errors import EnvironmentProblem, FailureKind, ModelError, SnellenError, StopRun, UsageError
from ...core.protocols import EncodedImage, EncodedImages
from ...core.types import Image, ImageSent, Prediction, Request, Turn


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
    """Requests that go to one replica together."""

    requests: tuple[tuple[int, Request], ...]
    pictures: tuple[LeasedPicture, ...] = ()


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
    """What became of one request. The prediction is read on its own: one that is malformed costs nobody else's."""

    number: int
    prediction: Raw = Raw()
    error: WireError | None = None


class Outcomes(Struct, frozen=True, array_like=True):
    """Everything that was finished when the driver asked."""

    outcomes: tuple[Outcome, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_lease = msgspec.msgpack.Decoder(Lease)
_outcomes = msgspec.msgpack.Decoder(Outcomes)
_prediction = msgspec.msgpack.Decoder(Prediction)


def write_wire_error(error: SnellenError) -> WireError:
    """Return an error of ours as it travels; of those that are no ModelError only whose fault it is stays."""
    if isinstance(error, ModelError):
        name = "StopRun" if isinstance(error, StopRun) else "ModelError"
        facts = (error.status, error.retryable, error.retry_after_s, error.detail)
        return WireError(name, str(error), error.kind, *facts)
    return WireError("EnvironmentProblem" if error.exit_code == 3 else "UsageError", str(error))


def write_lease(lease: Lease) -> bytes:
    """Return a lease as bytes."""
    return _encode(lease)


def read_lease(data: bytes) -> Lease:
    """Return the lease that was written."""
    return _lease.decode(data)


def write_outcomes(outcomes: Sequence[tuple[int, Prediction | SnellenError]]) -> bytes:
    """Return what became of requests as bytes."""
    return _encode(Outcomes(tuple([_outcome(number, result) for number, result in outcomes])))


def _outcome(number: int, result: Prediction | SnellenError) -> Outcome:
    if isinstance(result, SnellenError):
        return Outcome(number, error=write_wire_error(result))
    try:
        return Outcome(number, Raw(_encode(result)))
    except TypeError as error:  # a model put something into its prediction that no store could hold either
        return Outcome(number, error=write_wire_error(malformed(str(error))))


def read_outcomes(data: bytes) -> tuple[Outcome, ...]:
    """Return what became of the requests; the predictions are read one by one, by `read_prediction`."""
    return _outcomes.decode(data).outcomes


def read_prediction(outcome: Outcome, request: Request) -> Prediction | SnellenError:
    """Return what an outcome holds: the prediction of this very request, or why there is none."""
    if outcome.error is not None:
        return outcome.error.revive()
    try:
        prediction = _prediction.decode(outcome.prediction)
    except (msgspec.DecodeError, ValueError) as error:
        return malformed(str(error))
    if prediction.key != request.key:
        return malformed(f"it answers trial {prediction.key.sample!r}, not {request.key.sample!r}")
    return prediction


def malformed(why: str) -> ModelError:
    """Return the failure of a request whose answer is no prediction."""
    return ModelError(FailureKind.DECODE, f"a replica gave a malformed prediction: {why}")


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
