"""Random generators into words that a text does not hold: keys, numbers, names, dates, codes, none inside another."""

from __future__ import annotations

import random
import re
import unicodedata
import uuid
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from ...core.config import read_config_file
from ...core.errors import DataError

SHAPES = ("circle", "square", "triangle", "star", "cross")
_ATTEMPTS = 500


@cache
def word_lists() -> dict[str, tuple[str, ...]]:
    """Return the lists of the catalog by name: words, or whole sentences to fill."""
    table: dict[str, Any] = read_config_file(str(files("snellen") / "catalog" / "documents" / "words.toml"))
    return {name: tuple(words.split() if isinstance(words, str) else words) for name, words in table.items()}


def squash(text: str) -> str:
    """Bring a text to what a loose comparison sees: NFKC, no case, letters and digits only."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


class Vocabulary:
    """Draws words for one document: none occurs in the text, or inside any other word drawn."""

    def __init__(self, text: str, generator: random.Random) -> None:
        self._text = squash(text)
        self._generator = generator
        self._used: list[str] = []

    def draw(self, kind: str) -> str:
        """Return a new word of a kind: key, number, uuid, word, name, place, date, activity or shape."""
        make = _MAKERS[kind]
        if kind == "shape":
            return make(self._generator)
        for _ in range(_ATTEMPTS):
            candidate = make(self._generator)
            bare = squash(candidate)
            if bare not in self._text and not any(bare in used or used in bare for used in self._used):
                self._used.append(bare)
                return candidate
        fix = "use another haystack or fewer needles"
        raise DataError(f"no new {kind} found that the haystack does not hold already: {fix}")


def _chosen(generator: random.Random, *lists: str) -> list[str]:
    """Draw one word of each list of the catalog."""
    return [generator.choice(word_lists()[name]) for name in lists]


def _coined(generator: random.Random) -> str:
    return "".join(_chosen(generator, "starts", "middles", "ends"))


def _name(generator: random.Random) -> str:
    return f"{_coined(generator).capitalize()} {_coined(generator).capitalize()}"


def _date(generator: random.Random) -> str:
    return f"{generator.randrange(1, 29)} {generator.choice(word_lists()['months'])} {generator.randrange(1501, 1900)}"


def _activity(generator: random.Random) -> str:
    return generator.choice(word_lists()["activities"]).format(*_chosen(generator, "adjectives", "nouns"))


_MAKERS: dict[str, Callable[[random.Random], str]] = {
    "key": lambda generator: " ".join(_chosen(generator, "adjectives", "nouns")),
    "number": lambda generator: str(generator.randrange(1_000_000, 10_000_000)),
    "uuid": lambda generator: str(uuid.UUID(int=generator.getrandbits(128), version=4)),
    "word": _coined,
    "name": _name,
    "place": lambda generator: _coined(generator).capitalize(),
    "date": _date,
    "activity": _activity,
    "shape": lambda generator: generator.choice(SHAPES),
}

SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
"""Where a sentence may be put in: after a full stop and space, after a CJK stop, at a newline (code, lists)."""


def boundaries(text: str) -> list[int]:
    """Return the offsets at which a sentence can be planted, 0 and the end among them."""
    inner = [match.end() for match in SENTENCE_END.finditer(text) if 0 < match.end() < len(text)]
    return [0, *inner, len(text)]
