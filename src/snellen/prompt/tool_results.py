"""What calls of tools are answered with, as messages of an API that has calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ..core.message_parts import assemble_turn
from ..core.types import Image, Turn

NO_PICTURE = "No picture available."


class Result(NamedTuple):
    """What one call is answered with."""

    ident: str
    told: str
    images: tuple[Image | None, ...] = ()
    """The pictures that belong to it; in the arm `none` there is nothing in the place of each."""


def native_results(results: Sequence[Result], carry: str) -> list[Turn]:
    """Return the messages that answer native calls: pictures in the results themselves, or by the user after them."""
    turns: list[Turn] = []
    pieces: list[str | Image] = []
    for result in results:
        if not result.images or carry == "user":
            turns.append(Turn("tool", result.told, answers=result.ident))
        else:
            shown: list[str | Image] = [result.told, *(image or f"\n{NO_PICTURE}" for image in result.images)]
            turns.append(replace(assemble_turn("tool", shown), answers=result.ident))
        if result.images and carry == "user":
            pieces += [f"{result.told}\n", *(image or NO_PICTURE for image in result.images)]
    return [*turns, assemble_turn("user", pieces)] if pieces else turns
