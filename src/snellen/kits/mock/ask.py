"""The body of a request to an Ask: its text, its images as bytes, and what it wants back."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import count

import msgspec
import pybase64
from msgspec import Struct
from msgspec.structs import replace

from ...core.ids import content_hash, sha256_hex
from ...core.message_parts import write_marker

PICTURES = "pictures"
IGNORED = (PICTURES, "max_tokens", "max_completion_tokens", "stop", "temperature", "seed")
"""What a server may be told to pass over."""


class BadRequestError(ValueError):
    """The body is not something an OpenAI-compatible server accepts."""


class ImageUrl(Struct):
    """The `image_url` object."""

    url: str
    detail: str | None = None


class Part(Struct):
    """One part of a message's content."""

    type: str
    text: str = ""
    image_url: ImageUrl | str | None = None


class Message(Struct):
    """One chat message."""

    role: str
    content: str | list[Part] | None = None


class StreamOptions(Struct):
    """The `stream_options` object."""

    include_usage: bool = False


class Body(Struct):
    """The fields the mock server understands; others are ignored, as most servers do."""

    model: str = ""
    messages: list[Message] = []
    prompt: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    n: int = 1
    stop: str | list[str] | None = None
    logprobs: bool | int | None = None
    top_logprobs: int | None = None
    prompt_logprobs: int | None = None
    echo: bool = False
    continue_final_message: bool = False
    kept: str | None = None
    """A hash of what the request marks to be kept, in dialects with such marks."""
    kept_tokens: int = 0


class Ask(Struct, frozen=True):
    """One request as a reader sees it."""

    body: Body
    chat: bool
    text: str
    """The text of the last user message (or the prompt), with markers for the pictures that stand inside it."""
    transcript: str
    """All text of the request, as one prompt."""
    images: tuple[bytes, ...]
    image_hashes: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return a hash of text and images, equal for equal questions whatever the parameters."""
        return content_hash([self.transcript, self.image_hashes])

    @property
    def max_tokens(self) -> int | None:
        """Return the limit on output tokens, by either of its names."""
        return self.body.max_completion_tokens if self.body.max_completion_tokens is not None else self.body.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """Return the stop strings."""
        stop = self.body.stop
        return () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)


def parse_ask(data: bytes, *, chat: bool) -> Ask:
    """Decode a chat or text completion body; raise BadRequestError with the reason."""
    try:
        body = msgspec.json.decode(data, type=Body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"invalid body: {error}") from None
    return ask_of(body, chat=chat)


def ask_of(body: Body, *, chat: bool) -> Ask:
    """Return the request of a decoded body; raise BadRequestError with the reason."""
    if not chat:
        prompt = body.prompt[0] if isinstance(body.prompt, list) and body.prompt else body.prompt
        if not isinstance(prompt, str):
            raise BadRequestError("prompt is missing")
        return Ask(body, False, prompt, prompt, (), ())
    if not body.messages:
        raise BadRequestError("messages is empty")
    images, hashes = _images(body.messages)
    return Ask(body, True, _last_user_text(body.messages), _transcript(body), images, hashes)


def ignoring(ask: Ask, names: Collection[str]) -> Ask:
    """Return a request as a server takes it that passes over some of it in silence: parameters, or its pictures."""
    body = replace(ask.body, **{name: None for name in names if name != PICTURES})
    if PICTURES not in names:
        return replace(ask, body=body)
    return replace(ask, body=body, images=(), image_hashes=(), transcript=ask.transcript.replace("<image>", ""))


def _parts(message: Message) -> list[Part]:
    if message.content is None:
        return []
    return [Part("text", message.content)] if isinstance(message.content, str) else message.content


def _last_user_text(messages: list[Message]) -> str:
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    place = users[-1] if users else len(messages) - 1
    before = sum(part.type == "image_url" for message in messages[:place] for part in _parts(message))
    return _text(_parts(messages[place]), before)


def _text(parts: list[Part], before: int) -> str:
    """Return a message's text; pictures that stand after some of it are written as markers, numbered from `before`."""
    kinds = [part.type for part in parts]
    first_text = kinds.index("text") if "text" in kinds else len(kinds)
    if "image_url" not in kinds[first_text:]:
        return "\n".join(part.text for part in parts if part.type == "text")
    numbers = count(before + 1)
    markers = [write_marker(next(numbers)) if kind == "image_url" else "" for kind in kinds]
    return "".join(part.text or marker for part, marker in list(zip(parts, markers, strict=True))[first_text:])


def _transcript(body: Body) -> str:
    rendered = [f"<|{message.role}|>" + "".join(_render(part) for part in _parts(message)) for message in body.messages]
    return "\n".join(rendered) + ("" if body.continue_final_message else "\n<|assistant|>")


def _render(part: Part) -> str:
    return part.text if part.type == "text" else "<image>"


def _images(messages: list[Message]) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    urls = [_url(part) for message in messages for part in _parts(message) if part.type == "image_url"]
    data = tuple(_decode(url) for url in urls)
    return data, tuple(sha256_hex(item) for item in data)


def _url(part: Part) -> str:
    if part.image_url is None:
        raise BadRequestError("an image_url part has no image_url")
    return part.image_url if isinstance(part.image_url, str) else part.image_url.url


def _decode(url: str) -> bytes:
    """Return the bytes of a data URL; a web address is never fetched and stands for itself."""
    if not url.startswith("data:"):
        return url.encode()
    try:
        return pybase64.b64decode(url.partition(",")[2], validate=True)
    except ValueError as error:
        raise BadRequestError(f"invalid image: {error}") from None


def squeeze(text: str) -> str:
    """Collapse white space, so that line breaks of a template do not matter."""
    return " ".join(text.split())


_MARK = r"(?P<open>[(\[]?)(?P<mark>[A-Za-z]|\d{1,2})(?P<close>[)\].:]+)"


def find_mark(text: str, option: str) -> str | None:
    """Return the mark (`B`, `2`, `c`) that stands before `option` in the text, or None."""
    match = re.search(rf"(?<![^\s,;]){_MARK}\s*{re.escape(option)}(?=\s|[,;.]|$)", text)
    return match.group("mark") if match else None
