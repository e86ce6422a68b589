"""The body of a request to an Ask: its text, its images as bytes, and what it wants back."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pybase64
from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import DataError
from ...core.ids import content_hash, sha256_hex
from ...core.message_parts import MARKER, all_pictures, holds_marker, number_markers, without_markers, write_marker
from ...core.types import Sample
from .pictures import file_bytes, thumbnail

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


NEAR = 12.0
"""Mean grey-level difference of two thumbnails up to which they show the same picture."""


class Entry(Struct, frozen=True, omit_defaults=True):
    """What the simulated reader may know about one question."""

    question: str
    answer: str
    images: tuple[str, ...] = ()
    """SHA-256 of each image file, in order."""
    options: tuple[str, ...] = ()
    lines: tuple[tuple[str, float], ...] = ()
    """Text and glyph height in px of each line of a chart."""
    contrasts: tuple[float, ...] = ()
    """Contrast of each of these lines, where they are not all black on white."""
    glyph_px: float | None = None
    position: float | None = None
    """Where the answer stands in a long document, 0 to 1."""
    width: int | None = None
    """Width of the first image in px, so that a shrunken copy is seen as such."""
    thumbnail: bytes | None = None
    """Small grey copy of the first image: finds it again after re-encoding."""


class AnswerBook:
    """All entries, indexed by (images, question)."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self._exact: dict[tuple[tuple[str, ...], str], Entry] = {}
        self._by_images: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
        self._marked: dict[frozenset[str], list[Entry]] = defaultdict(list)
        """By their pictures, those whose question or options say where these stand: they may be shown in any order."""
        for entry in self.entries:
            self._exact.setdefault((entry.images, squeeze(entry.question)), entry)
            self._by_images[entry.images].append(entry)
            if any(map(holds_marker, (entry.question, *entry.options))):
                self._marked[frozenset(entry.images)].append(entry)
        self._pictured = [entry for entry in self.entries if entry.thumbnail]
        thumbnails = [np.frombuffer(entry.thumbnail or b"", dtype=np.uint8) for entry in self._pictured]
        self._thumbnails = np.array(thumbnails, dtype=np.int16)

    @classmethod
    def read(cls, path: str | Path) -> AnswerBook:
        """Read a JSONL file; the error names the line."""
        entries = []
        for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
            if not line.strip():
                continue
            try:
                entries.append(msgspec.json.decode(line, type=Entry))
            except msgspec.DecodeError as error:
                raise DataError(f"{path}:{number}: not an answer entry: {error}") from None
        return cls(entries)

    def find(self, ask: Ask) -> Entry | None:
        """Return the entry whose question stands in the text and whose images were sent."""
        entry = self._by_marks(ask) if self._marked else None
        entry = entry or self._by_question(ask.image_hashes, ask.text)
        if entry is None and ask.images and self._pictured:
            return self._by_picture(ask)
        return entry

    def _by_question(self, images: tuple[str, ...], text: str) -> Entry | None:
        for line in (text, *text.split("\n")):
            for candidate in (line, line.partition(": ")[2]):
                entry = self._exact.get((images, squeeze(candidate)))
                if entry is not None:
                    return entry
        return longest_contained(self._by_images.get(images, []), squeeze(text))

    def _by_marks(self, ask: Ask) -> Entry | None:
        """Return the entry with these pictures in any order whose question is asked, its markers as the request's."""
        text = squeeze(without_markers(ask.text))
        near = self._marked.get(frozenset(ask.image_hashes), [])
        asked = [entry for entry in near if squeeze(without_markers(entry.question)) in text]
        entry = max(asked, key=lambda entry: len(entry.question), default=None)
        return _renumbered(entry, ask.image_hashes) if entry is not None else None

    def _by_picture(self, ask: Ask) -> Entry | None:
        seen = thumbnail(ask.images[0])
        if seen is None:
            return None
        distance = np.abs(self._thumbnails - np.frombuffer(seen, dtype=np.uint8).astype(np.int16)).mean(axis=1)
        nearest = float(distance.min())
        near = [entry for entry, value in zip(self._pictured, distance, strict=True) if value <= nearest + 1e-9]
        return longest_contained(near, squeeze(ask.text)) if nearest <= NEAR else None


def _renumbered(entry: Entry, shown: tuple[str, ...]) -> Entry:
    """Return the entry with the numbers its pictures have in a request."""
    numbers = {place: shown.index(digest) + 1 for place, digest in enumerate(entry.images, 1)}

    def _renumber(text: str) -> str:
        return MARKER.sub(lambda found: write_marker(numbers.get(int(found[1]), 0)), text)

    question, *options, answer = map(_renumber, number_markers((entry.question, *entry.options, entry.answer)))
    return msgspec.structs.replace(entry, question=question, answer=answer, options=tuple(options))


def longest_contained(entries: list[Entry], text: str) -> Entry | None:
    """Return the entry with the longest question that the text contains."""
    contained = [entry for entry in entries if squeeze(entry.question) in text]
    return max(contained, key=lambda entry: len(entry.question), default=None)


def entry_of(sample: Sample) -> Entry:
    """Turn one sample into what a simulated reader may know about it."""
    data = [file_bytes(image) for image in all_pictures(sample)]
    earlier = len(data) - len(sample.images)
    texts = (sample.question, *sample.options, sample.answers[0] if sample.answers else "")
    question, *options, answer = _count_on(texts, earlier) if earlier else texts
    return Entry(
        question=question,
        answer=answer,
        images=tuple(digest for digest, _ in data),
        options=tuple(options),
        lines=tuple((str(line["text"]), float(line["height_px"])) for line in sample.meta.get("lines", ())),
        contrasts=_contrasts(sample),
        glyph_px=_number(sample, "glyph_px"),
        position=_number(sample, "position", "depth"),
        width=sample.images[0].width if sample.images else None,
        thumbnail=thumbnail(data[0][1]) if data else None,
    )


def _count_on(texts: Sequence[str], earlier: int) -> list[str]:
    """Return texts whose markers count the pictures of earlier rounds too."""
    return [MARKER.sub(lambda found: write_marker(int(found[1]) + earlier), text) for text in number_markers(texts)]


def _contrasts(sample: Sample) -> tuple[float, ...]:
    contrasts = tuple(float(line.get("contrast", 1.0)) for line in sample.meta.get("lines", ()))
    return contrasts if any(value != 1.0 for value in contrasts) else ()


def _number(sample: Sample, *names: str) -> float | None:
    """Return the first of these facts about a sample that is a number."""
    values: list[Any] = [sample.meta.get(name, sample.tags.get(name)) for name in names]
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def write_answers(samples: Iterable[Sample], path: str | Path) -> int:
    """Write the answer file of these samples; return how many entries it holds."""
    lines = [msgspec.json.encode(entry_of(sample)) for sample in samples]
    Path(path).write_bytes(b"".join(line + b"\n" for line in lines))
    return len(lines)
