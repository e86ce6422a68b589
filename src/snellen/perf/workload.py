"""Requests in, items ready for the wire out: pictures encoded, bodies built and salted before the first one is sent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.errors import UsageError
from ..core.ids import derive_seed
from ..core.types import Request, Turn
from ..data.encode import EncodedImage, ImageDoor
from ..model.served import ServedModel
from ..model.wire import build_body
from .load import REPLY_MARK, Item

PREFIX_CACHE = ("as-is", "off", "on")
"""as-is: prompts untouched; off: every request begins differently; on: all begin alike, differently from any other run."""


async def prepare_items(
    model: ServedModel, dialogues: Sequence[Sequence[Request]], *, prefix_cache: str = "as-is", think_s: float = 0.0, seed: int = 0
) -> list[Item]:
    """Encode and build everything, so that no picture is encoded while the clock runs."""
    if prefix_cache not in PREFIX_CACHE:
        raise UsageError(f"no --prefix-cache {prefix_cache!r}; known: {', '.join(PREFIX_CACHE)}")
    door = ImageDoor()
    items = []
    for number, dialogue in enumerate(dialogues):
        salt = "" if prefix_cache == "as-is" else f"{derive_seed(seed, 'salt', number if prefix_cache == 'off' else 'run'):016x}"
        items.append(await _item(model, door, dialogue, salt, think_s))
    return items


async def _item(model: ServedModel, door: ImageDoor, dialogue: Sequence[Request], salt: str, think_s: float) -> Item:
    bodies, images, pixels = [], [], []
    for request in join_turns(dialogue):
        salted = add_salt(request, salt) if salt else request
        encoded = [[await door.encode(image, model.image_policy) for image in turn.images] for turn in salted.messages]
        bodies.append(build_body(model.dialect, model.remote_name, salted, encoded))
        flat = [image for of_turn in encoded for image in of_turn]
        images.append(len(flat))
        pixels.append(_pixels(flat))
    return Item(dialogue_id(dialogue[0]), tuple(bodies), tuple(images), tuple(pixels), think_s)


def _pixels(images: Sequence[EncodedImage]) -> int:
    return sum(image.sent.width * image.sent.height for image in images)


def dialogue_id(request: Request) -> str:
    """Return the item id of a request: task, sample, and variant and repeat where they say something."""
    key = request.key
    return f"{key.task}/{key.sample}" + (f"@{key.variant}" if key.variant != "base" else "") + (f"#{key.repeat}" if key.repeat else "")


def join_turns(dialogue: Sequence[Request]) -> list[Request]:
    """Return one request a turn, each with all before it; a mark stands where an earlier reply will be put."""
    joined = [dialogue[0]]
    for number, request in enumerate(dialogue[1:]):
        said = Turn("assistant", REPLY_MARK % number)
        joined.append(msgspec.structs.replace(request, messages=(*joined[-1].messages, said, request.messages[-1])))
    return joined


def add_salt(request: Request, salt: str) -> Request:
    """Begin the prompt with a salt: before the pictures, since a cache compares from the very first token."""
    first, *rest = request.messages
    if first.role == "system":
        return msgspec.structs.replace(request, messages=(Turn("system", f"[{salt}] {first.text}"), *rest))
    return msgspec.structs.replace(request, messages=(Turn("system", f"[{salt}]"), *request.messages))
