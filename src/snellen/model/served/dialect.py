"""A request and its images to the body that is sent, in a provider's words.

Base64 never passes through the JSON encoder: the body is encoded with short tokens and cut at them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.protocols import Capability, EncodedImage, EncodedImages, ImagePolicy
from ...core.secret import Secret
from ...core.types import Image, Request, Turn
from .http_client import Body, read_events
from .negotiation import NO_QUIRKS, Quirks
from .replies import Reply

_NONCE = os.urandom(8).hex()
"""Nobody can write a question that holds a token."""


class Picture(NamedTuple):
    """An image in a payload: `token` stands where its base64 will be; a dialect may name `file` instead."""

    token: str
    mime: str
    sha256: str = ""
    file: str | None = None
    """The path of a whole picture without edits, which may be sent as its own file."""
    size_bytes: int = 0
    """Of what is sent."""


class Dialect:
    """How one provider writes requests and responses; pure, so it is tested without a network."""

    provider: str
    """As the user calls it; a card gives it another name."""
    family: str
    """The dialect itself: openai, openai-responses, anthropic, gemini or bedrock."""
    default_url = ""
    key_variable: str
    capabilities = frozenset({Capability.GENERATE, Capability.STREAM, Capability.IMAGES})
    image_policy = ImagePolicy()
    sampling_place: str | None = None
    """Where in the body the sampling parameters stand; None: at its top."""
    key_header = "Authorization"
    """The header that holds the key; in `Authorization` it stands behind `Bearer`."""
    own_headers: tuple[tuple[str, str], ...] = ()
    """Headers of the API beside those of every JSON request."""
    reasoning: str
    """The style by which `--reasoning` is told (catalog/servers/reasoning.toml)."""
    constrain = ""
    """The style by which `--constrain` is told (catalog/servers/constraints.toml); empty: it cannot be."""
    default_limit: int | None = None
    """The token limit that is sent where none was given; None: none is sent."""
    unknown: frozenset[str] = frozenset()
    """Sampling parameters (fields of Params) that its API has no name for: they are said to be left out."""
    batch = ""
    """The kind of its batches (catalog/servers/batches.toml); empty where it has none."""
    batch_endpoint = ""
    """What a line of a batch names as its path, where it names one."""
    lists_models = True
    """Whether its servers list their models; where not, the first reply says whether the key may use the model."""
    marks_cache = False
    """Whether to mark what its provider shall keep for the requests that follow; most keep prefixes by themselves."""

    def headers(self, key: Secret | None) -> dict[str, str]:
        """Return the headers of every request, with the key if there is one."""
        headers = {"Content-Type": "application/json", **dict(self.own_headers)}
        if key is not None:
            headers[self.key_header] = f"Bearer {key.reveal()}" if self.key_header == "Authorization" else key.reveal()
        return headers

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return where a request goes."""
        raise NotImplementedError

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the body; `pictures` holds those of each message in turn."""
        raise NotImplementedError

    def parse(self, value: Any) -> Reply:
        """Read a whole response."""
        raise NotImplementedError

    def unfinished(self, body: bytes) -> str | None:
        """Return the path at which a response that is still being made is asked after; None where it is whole."""
        return None

    def events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the data of each event of a stream."""
        return read_events(chunks)

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one stream event into `reply`; return `reasoning` or `content` when it brought some."""
        raise NotImplementedError


def write_parts(turn: Turn, pictures: Sequence[dict[str, Any]], kind: str = "") -> list[dict[str, Any]]:
    """Return the parts of a message in the order shown; `kind` is the type of its texts, where they have one.

    Pictures may be left out: what is asked of a refused request is its parameters.
    """
    typed = {"type": kind} if kind else {}
    shown = turn.arrange(pictures) if pictures else [turn.text]
    return [{**typed, "text": part} if isinstance(part, str) else part for part in shown]


def build_body(
    dialect: Dialect, model: str, request: Request, images: EncodedImages, quirks: Quirks = NO_QUIRKS
) -> Body:
    """Return the request body with all its images in it, in parts, as this server wants it."""
    encoded = [images[image] for turn in request.messages for image in turn.images]
    if not encoded:
        return (msgspec.json.encode(plain_body(dialect, model, request, quirks)),)
    tokens = iter(range(len(encoded)))
    pictures = [
        [_picture(f"@{_NONCE}-{next(tokens)}@", image, images[image]) for image in turn.images]
        for turn in request.messages
    ]
    payload = quirks.apply(dialect.payload(model, request, pictures), dialect.sampling_place)
    skeleton = msgspec.json.encode(payload)
    parts: list[bytes] = []
    for number, image in enumerate(encoded):
        head, token, rest = skeleton.partition(b"@%s-%d@" % (_NONCE.encode(), number))
        if token:
            parts += (head, image.base64)
            skeleton = rest
    if b"@" + _NONCE.encode() in skeleton:
        raise AssertionError("a dialect must keep the order of images")
    return (*parts, skeleton)


def plain_body(dialect: Dialect, model: str, request: Request, quirks: Quirks) -> dict[str, Any]:
    """Return the body without its pictures: all of it where there are none, else what its parameters are."""
    payload = dialect.payload(model, request, [()] * len(request.messages))
    return quirks.apply(payload, dialect.sampling_place)


def _picture(token: str, image: Image, encoded: EncodedImage) -> Picture:
    sent, whole = encoded.sent, image.frame is None or image.frame.still
    own_file = whole and not image.edits and sent.original is None and ":" not in image.ref[:6]
    return Picture(token, sent.mime, sent.sha256, image.ref if own_file else None, sent.size_bytes)
