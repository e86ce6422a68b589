"""Requests in, items ready for the wire out: pictures encoded, bodies built and salted before the first one is sent."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import NamedTuple

import msgspec
import PIL.Image
import PIL.ImageDraw
import pybase64
from msgspec import Struct

from ..core.errors import UsageError
from ..core.ids import derive_seed, rng
from ..core.jobs import Item as PlannedSample
from ..core.jobs import Job, Step
from ..core.message_parts import replace_text
from ..core.types import Image, Params, Prediction, Request, TrialKey, Turn
from ..data.images.encode import ImageDoor
from ..engine.request_videos import has_videos, unfold_videos
from ..model.served.served_model import ServedModel
from .generator import REPLY_MARK, Item

PREFIX_CACHE = ("as-is", "off", "on")
"""as-is: prompts untouched; off: every request begins differently; on: all begin alike, unlike those of other runs."""

Dialogue = Sequence[Request]
"""One request a turn, each with all before it; a mark stands where an earlier reply will be put."""


class Asked(NamedTuple):
    """One trial of a job and its request."""

    position: int
    planned: PlannedSample
    request: Request
    keep: bool = True
    """False for a part of a trial, whose reply is not stored."""
    composer: Job | None = None
    """The job, where it makes answers of its own out of replies."""


class Composed(NamedTuple):
    """An answer that a job made of replies."""

    planned: PlannedSample
    request: Request
    prediction: Prediction


class _AskedOtherwise(Exception):
    """A job asks what was not measured."""


async def capture(job: Job) -> list[Asked]:
    """Return what a job would ask, without asking: each request is answered with a mark, which becomes its history."""
    asked: list[Asked] = []
    composes = False

    async def ask(
        item: PlannedSample,
        request: Request,
        settled: Prediction | None = None,
        *,
        keep: bool = True,
        turn: Step | None = None,
    ) -> Prediction:
        nonlocal composes
        if settled is not None:
            composes = True
            return settled
        if request.choices:
            raise UsageError("a task that scores candidates cannot be a load: add -p infer=generate")
        asked.append(Asked(item.position, item, request, keep))
        return Prediction(request.key, text=REPLY_MARK % (len(asked) - 1))

    await job.run(ask)
    return [turn._replace(composer=job) for turn in asked] if composes else asked


async def compose(job: Job, measured: Sequence[tuple[Request, Prediction]]) -> list[Composed]:
    """Return the answers that a job makes of the replies that were measured; none if it asks anything else for them."""
    made: list[Composed] = []
    left = iter(measured)

    async def ask(
        item: PlannedSample,
        request: Request,
        settled: Prediction | None = None,
        *,
        keep: bool = True,
        turn: Step | None = None,
    ) -> Prediction:
        if settled is not None:
            made.append(Composed(item, request, settled))
            return settled
        sent, prediction = next(left, (None, None))
        if sent is None or prediction is None or sent.messages != request.messages:
            raise _AskedOtherwise
        return prediction

    try:
        await job.run(ask)
    except _AskedOtherwise:
        return []
    return made


async def prepare_items(model: ServedModel, dialogues: Sequence[Dialogue], *, think_s: float = 0.0) -> list[Item]:
    """Encode and build everything, so that no picture is encoded while the clock runs."""
    with closing(ImageDoor()) as door:
        return [await _item(model, door, dialogue, think_s) for dialogue in dialogues]


async def _item(model: ServedModel, door: ImageDoor, dialogue: Dialogue, think_s: float) -> Item:
    bodies, pictures = [], []
    for asked in dialogue:
        request = (await unfold_videos(asked, model)).request if has_videos(asked) else asked
        images = await door.encode_all(request, model.image_policy)
        bodies.append(b"".join(model.write_body(request, images, stream=request.params.stream)))
        pictures.append(tuple(images[image].sent for turn in request.messages for image in turn.images))
    return Item(dialogue_id(dialogue[0]), tuple(bodies), tuple(pictures), think_s)


def dialogue_id(request: Request) -> str:
    """Return the item id of a request: task, sample, and variant and repeat where they say something."""
    key = request.key
    variant = f"@{key.variant}" if key.variant != "base" else ""
    return f"{key.task}/{key.sample}{variant}" + (f"#{key.repeat}" if key.repeat else "")


def join_turns(questions: Sequence[Request]) -> Dialogue:
    """Make a dialogue of single questions: each follows the ones before it and their replies."""
    joined = [questions[0]]
    for number, request in enumerate(questions[1:]):
        said = Turn("assistant", REPLY_MARK % number)
        joined.append(msgspec.structs.replace(request, messages=(*joined[-1].messages, said, request.messages[-1])))
    return joined


def with_replies(request: Request, replies: Sequence[str]) -> Request:
    """Return the request as it was really sent: with the replies where their marks stood."""
    messages = request.messages
    for number, reply in enumerate(replies):
        mark = REPLY_MARK % number
        messages = tuple(replace_text(turn, mark, reply) for turn in messages)
    return msgspec.structs.replace(request, messages=messages)


def salt_dialogues(dialogues: Sequence[Dialogue], prefix_cache: str, seed: int) -> list[Dialogue]:
    """Return the dialogues as the prefix-cache mode wants them to begin."""
    if prefix_cache not in PREFIX_CACHE:
        raise UsageError(f"no --prefix-cache {prefix_cache!r}; known: {', '.join(PREFIX_CACHE)}")
    if prefix_cache == "as-is":
        return list(dialogues)
    salted: list[Dialogue] = []
    for number, dialogue in enumerate(dialogues):
        salt = f"{derive_seed(seed, 'salt', number if prefix_cache == 'off' else 'run'):016x}"
        salted.append([add_salt(request, salt) for request in dialogue])
    return salted


def add_salt(request: Request, salt: str) -> Request:
    """Begin the prompt with a salt: before the pictures, since a cache compares from the very first token."""
    first, *rest = request.messages
    if first.role == "system":
        return msgspec.structs.replace(request, messages=(Turn("system", f"[{salt}] {first.text}"), *rest))
    return msgspec.structs.replace(request, messages=(Turn("system", f"[{salt}]"), *request.messages))


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
