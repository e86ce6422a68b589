"""Option labels: A B C…, a b c…, 1 2 3…, or a style drawn for each trial."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from functools import lru_cache

from ..core.errors import ConfigError, did_you_mean


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
