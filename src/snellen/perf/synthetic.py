"""Sizes and a seed in, made-up samples out: so many words of text, pixels of pictures, turns of dialogues."""

from __future__ import annotations

import io
from random import Random

import PIL.Image
import PIL.ImageDraw
import pybase64
from msgspec import Struct

from ..core.errors import UsageError
from ..core.ids import rng
from ..core.types import Image, Params, Request, TrialKey, Turn
from .workload import Dialogue, join_turns

TASK = "synthetic"
_WORDS = (
    "time", "year", "people", "way", "day", "thing", "world", "life", "hand", "part", "child", "eye", "woman",
    "place", "work", "week", "case", "point", "company", "number", "group", "problem", "fact", "water", "room",
    "story", "light", "house", "night", "river", "stone", "glass", "paper", "table", "green", "white", "black",
    "round", "small", "early", "south", "north", "seven", "every", "after", "under", "above", "while",
)  # fmt: skip


class Synthetic(Struct, frozen=True):
    """A made-up load. `input_tokens` counts words, about one token each; the server's usage tells the truth."""

    input_tokens: int = 128
    output_tokens: int = 64
    images: int = 0
    width: int = 512
    height: int = 512
    turns: int = 1
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if min(self.input_tokens, self.output_tokens, self.turns, self.width, self.height) < 1 or self.images < 0:
            raise UsageError("a synthetic load needs at least 1 input token, 1 output token, 1 turn and 1×1 pixel")


def make_dialogues(load: Synthetic, count: int, seed: int, *, stream: bool = True) -> list[Dialogue]:
    """Return `count` dialogues; equal seeds give equal loads."""
    turns = range(load.turns)
    return [join_turns([_request(load, number, turn, seed, stream) for turn in turns]) for number in range(count)]


def _request(load: Synthetic, number: int, turn: int, seed: int, stream: bool) -> Request:
    generator = rng(seed, TASK, number, turn)
    extra = {"ignore_eos": True, "min_tokens": load.output_tokens} if load.ignore_eos else None
    pictures = tuple(draw_picture(load.width, load.height, generator) for _ in range(load.images if turn == 0 else 0))
    key = TrialKey(TASK, f"{number:06d}", repeat=turn)
    params = Params(max_tokens=load.output_tokens, stream=stream or None, extra_body=extra)
    return Request(key, (Turn("user", make_text(load.input_tokens, generator), pictures),), params)


def make_text(words: int, generator: Random) -> str:
    """Return so many plain words; every text begins differently, so that no prefix is shared by accident."""
    return " ".join(generator.choices(_WORDS, k=words))


def draw_picture(width: int, height: int, generator: Random) -> Image:
    """Return a JPEG of coloured boxes as a data URL; unlike any other, so that no server has it cached."""
    picture = PIL.Image.new("RGB", (width, height), _colour(generator))
    pen = PIL.ImageDraw.Draw(picture)
    for _ in range(24):
        left, right = sorted(generator.randrange(width) for _ in range(2))
        top, bottom = sorted(generator.randrange(height) for _ in range(2))
        pen.rectangle((left, top, right, bottom), fill=_colour(generator))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=85)
    return Image(f"data:image/jpeg;base64,{pybase64.b64encode(out.getvalue()).decode()}", "image/jpeg", width, height)


def _colour(generator: Random) -> tuple[int, int, int]:
    return generator.randrange(256), generator.randrange(256), generator.randrange(256)
