"""Markers in texts (`<image 1>`, `<image_1>`, `<image1>`, `<image>`) to the parts of a message, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import count, takewhile

from msgspec.structs import replace

from .types import Image, Sample, Turn, Video

Piece = str | Image | Video

VIDEO_MARKER = re.compile(r"<[Vv]ideo(?:[ _]?(\d{1,2}))?>")
"""Where a video stands in a text."""
MARKER = re.compile(r"<(?:image|Image|IMAGE)(?:[ _]?(\d{1,4}))?>")
"""Where a picture stands in a text: the one of this number, counted from 1, or the next one."""
OPENING = re.compile(rf"(?:\s*{MARKER.pattern})+\s*")
"""Markers before the first word."""


def holds_marker(text: str) -> bool:
    """Tell whether a marker stands in the text; most texts are told by one search."""
    if "<" not in text:
        return False
    return ("<image" in text or "<Image" in text or "<IMAGE" in text) and MARKER.search(text) is not None


def number_markers(texts: Sequence[str]) -> list[str]:
    """Return the texts with every bare marker numbered: the n-th of them all stands for the n-th picture."""
    numbers = count(1)

    def _number(match: re.Match[str]) -> str:
        return match[0] if match[1] else write_marker(next(numbers))

    return [MARKER.sub(_number, text) if holds_marker(text) else text for text in texts]


def write_marker(number: int) -> str:
    """Return the marker of a picture, counted from 1."""
    return f"<image {number}>"


def marked_pictures(texts: Iterable[str]) -> list[int]:
    """Return the numbers of the pictures that numbered markers name, in order, each as often as it is named."""
    return [int(found[1]) for text in texts for found in MARKER.finditer(text) if found[1]]


def name_all(text: str, pictures: int) -> str:
    """Return the text with a marker before it for each of its pictures that has none yet."""
    (text,) = number_markers([text])
    named = set(marked_pictures([text]))
    before = "".join(write_marker(number) for number in range(1, pictures + 1) if number not in named)
    return f"{before}\n{text}" if before and text else before or text


def without_markers(text: str) -> str:
    """Return the text with a space for every marker."""
    return MARKER.sub(" ", text)


def assemble_turn(role: str, pieces: Iterable[Piece]) -> Turn:
    """Return the message of these texts, pictures and videos in order.

    Texts of nothing but space are left out (some providers refuse them), and so is space after pictures that begin the
    message. Pictures first and then one text is the plain form, without `parts`.
    """
    merged = _merge(pieces)
    images = tuple(piece for piece in merged if isinstance(piece, Image))
    numbers = iter(range(len(images)))
    parts = tuple(next(numbers) if isinstance(piece, Image) else piece for piece in merged)
    text = "".join(piece for piece in parts if isinstance(piece, str))
    plain = all(isinstance(part, int) for part in parts[:-1]) and not isinstance(parts[-1] if parts else "", Video)
    return Turn(role, text, images, () if plain else parts)


def _merge(pieces: Iterable[Piece]) -> list[Piece]:
    """Return texts that follow one another as one, without the empty ones."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    kept = list(filter(_says_something, joined))
    first = len(list(takewhile(lambda piece: not isinstance(piece, str), kept)))
    if 0 < first < len(kept):
        kept[first] = str(kept[first]).lstrip()
    return kept


def _says_something(piece: Piece) -> bool:
    return not isinstance(piece, str) or bool(piece.strip())


def keep_pictures(turn: Turn, wanted: range) -> Turn:
    """Return the message with only the pictures of these places."""
    if not turn.parts:
        return Turn(turn.role, turn.text, turn.images[wanted.start : wanted.stop])
    pieces = [part for part in turn.parts if not isinstance(part, int) or part in wanted]
    return assemble_turn(turn.role, [turn.images[part] if isinstance(part, int) else part for part in pieces])


def replace_text(turn: Turn, old: str, new: str) -> Turn:
    """Return the message with a text in place of another."""
    parts = tuple(part.replace(old, new) if isinstance(part, str) else part for part in turn.parts)
    return replace(turn, text=turn.text.replace(old, new), parts=parts)


def write_markers(messages: Sequence[Turn]) -> Sequence[Turn]:
    """Return the messages with a marker in their text for each picture that stands inside it.

    The number counts the pictures of all messages. For whoever takes one string and a list of pictures.
    """
    if not any(turn.parts for turn in messages):
        return messages
    before, written = 0, []
    for turn in messages:
        if turn.parts:
            markers = [write_marker(before + number) for number in range(1, len(turn.images) + 1)]
            written.append(replace(turn, text="".join(turn.arrange(markers)), parts=()))
        else:
            written.append(turn)
        before += len(turn.images)
    return written


def all_pictures(sample: Sample) -> tuple[Image, ...]:
    """Return the pictures of a sample: those of its earlier rounds, then its own."""
    if not sample.turns:
        return sample.images
    return (*(image for turn in sample.turns for image in turn.images), *sample.images)


def all_videos(sample: Sample) -> tuple[Video, ...]:
    """Return the videos of a sample: those of its earlier rounds, then its own."""
    if not sample.turns:
        return sample.videos
    return (*(video for turn in sample.turns for video in turn.videos), *sample.videos)


def change_pictures(sample: Sample, change: Callable[[Image], Image]) -> Sample:
    """Return the sample with every picture changed, those of its earlier rounds too."""
    turns = tuple(
        replace(turn, images=tuple(map(change, turn.images))) if turn.images else turn for turn in sample.turns
    )
    return replace(sample, images=tuple(map(change, sample.images)), turns=turns)
