"""Texts with markers to texts with tokens while a prompt is put together, and the finished texts to messages of parts.

A token cannot be written by a question: what is filled into templates and styles keeps its pictures' places.
"""

from __future__ import annotations

import os
import random
import re
import string
from collections.abc import Callable, Sequence
from functools import lru_cache

from ..core.errors import ConfigError, did_you_mean
from ..core.message_parts import MARKER, OPENING, assemble_turn, holds_marker, marked_pictures, number_markers
from ..core.types import Image, Sample, Turn, Video


def letter_mark(index: int) -> str:
    """Return A…Z, then AA, AB… as spreadsheets count, so the number of options has no bound."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = string.ascii_uppercase[rest] + name
    return name


STYLES: dict[str, Callable[[int], str]] = {
    "upper": letter_mark,
    "lower": lambda index: letter_mark(index).lower(),
    "number": lambda index: str(index + 1),
}


RANDOM = "random"


def draw_style(draw: random.Random) -> str:
    """Return the style of one trial where each draws its own (`random`)."""
    return draw.choice(sorted(STYLES))


@lru_cache(maxsize=1024)
def make_marks(style: str, count: int) -> tuple[str, ...]:
    """Return `count` labels."""
    if style not in STYLES:
        raise ConfigError(
            f"option marks {style!r} are unknown{did_you_mean(style, STYLES)}; known: {', '.join(STYLES)}, random"
        )
    return tuple(STYLES[style](index) for index in range(count))


_NONCE = os.urandom(8).hex()
_TOKEN = re.compile(rf"<{_NONCE}-(\d+)>")
STYLE_TAG = re.compile(r"<image>\n?")
"""What string styles write where the pictures stand."""


class Placement:
    """The pictures of one trial that stand inside its texts, in the order of their tokens."""

    def __init__(self) -> None:
        self.pictures: list[Image | Video] = []

    def take(
        self, text: str, images: tuple[Image, ...], *, opening: bool = False, withheld: bool = False
    ) -> tuple[str, tuple[Image, ...]]:
        """Return the text with a token for every marker of one of these pictures, and those that stand before it.

        These are the pictures no marker names and, if told, those named before the first word. A marker of a picture
        that is not there stays as it is; `withheld`: the pictures are other ones or none, and all markers go.
        """
        if not holds_marker(text):
            return text, images
        if withheld:
            return MARKER.sub("", OPENING.sub("", text, count=1) if OPENING.match(text) else text), images
        (text,) = number_markers([text])
        named, text = _read_opening(text, len(images)) if opening else ([], text)
        first = [images[number - 1] for number in named]

        def _token(match: re.Match[str]) -> str:
            number = int(match[1])
            if not 0 < number <= len(images):
                return match[0]
            named.append(number)
            return self._keep(images[number - 1])

        text = MARKER.sub(_token, text)
        return text, (*(image for place, image in enumerate(images, 1) if place not in named), *first)

    def put_before(self, text: str, images: Sequence[Image | Video]) -> str:
        """Return the text with these pictures before it, in its own message."""
        return "".join(map(self._keep, images)) + text

    def put_at(self, marker: re.Pattern[str], text: str, videos: Sequence[Video]) -> str:
        """Return the text with these videos where their markers stand; those without one come first."""
        left = dict(enumerate(videos, 1))

        def _token(match: re.Match[str]) -> str:
            number = int(match[1]) if match[1] else next(iter(left), 0)
            return self._keep(left.pop(number)) if number in left else match[0]

        text = marker.sub(_token, text)
        return self.put_before(text, list(left.values()))

    def _keep(self, image: Image | Video) -> str:
        """Return the token that stands for a picture from now on."""
        self.pictures.append(image)
        return f"<{_NONCE}-{len(self.pictures) - 1}>"


def _read_opening(text: str, pictures: int) -> tuple[list[int], str]:
    """Return the numbers of the pictures named before the first word, and the text from there."""
    start = OPENING.match(text)
    named = marked_pictures([start[0]]) if start is not None else []
    if start is None or not set(named) <= set(range(1, pictures + 1)):
        return [], text
    return named, text[start.end() :]


def place_parts(turns: Sequence[Turn], pictures: Sequence[Image | Video], *, trim: bool = False) -> tuple[Turn, ...]:
    """Return the messages with the pictures where their tokens stand; `trim`: texts between them have no edges."""
    return tuple([_place(turn, pictures, trim) for turn in turns])


def _place(turn: Turn, pictures: Sequence[Image | Video], trim: bool) -> Turn:
    pieces = _TOKEN.split(turn.text)
    if len(pieces) == 1:
        return turn
    # Odd pieces are numbers of tokens, even ones are texts.
    texts = [piece.strip() if trim else piece for piece in pieces]
    placed = [pictures[int(piece)] if number % 2 else piece for number, piece in enumerate(texts)]
    return assemble_turn(turn.role, [*turn.images, *placed])


def number_options(question: str, sample: Sample) -> tuple[str, dict[str, str]]:
    """Return the question, and by its text each option, with bare markers numbered as the data has them in order."""
    if "<" not in "".join(sample.options) or not any(map(holds_marker, sample.options)):
        return question, {}
    first, *rest = number_markers([question, *sample.options])
    return first, dict(zip(sample.options, rest, strict=True))
