"""Kinds and a vocabulary into needles: the sentences to plant, the question about them and the answers that count."""

from __future__ import annotations

import random
import re
import unicodedata
import uuid
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from ...core.config import read_config_file
from ...core.errors import DataError, UsageError, did_you_mean

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


NOT_FOUND = "not found"
COLOURS = {"red": "#d00000", "blue": "#0030d0", "green": "#007000", "orange": "#d07000"}


class PageBox(Struct, frozen=True):
    """A part of a page, in pixels; pages count from 1."""

    page: int
    box: tuple[int, int, int, int]


class Statement(Struct):
    """One sentence (or visual mark) to plant. Offsets, page, line and box are filled in once it stands somewhere."""

    id: str
    kind: str
    key: str
    value: str
    text: str = ""
    """The sentence; empty for a mark that is drawn instead."""
    role: str = "needle"
    """`needle` answers its question, `distractor` only looks like it, `stale` was overruled later."""
    depth: float = 0.0
    """The wanted depth, 0–1; the fields below say what was achieved."""
    char_start: int | None = None
    char_end: int | None = None
    char_depth: float | None = None
    token_depth: float | None = None
    page: int | None = None
    line: int | None = None
    bbox: tuple[int, int, int, int] | None = None
    """Where it begins, on `page`; `boxes` has all of it."""
    boxes: list[PageBox] = []
    """Every line it touches, over a line's or a page's end."""
    row: float | None = None
    column: float | None = None

    @property
    def pages(self) -> list[int]:
        """Return the pages it stands on."""
        return sorted({place.page for place in self.boxes})


class Query(Struct):
    """One question. `match`: `any` answer, `all` answers, or `abstain`."""

    kind: str
    question: str
    answers: list[str]
    needles: list[str]
    depth: float
    match: str = "any"


class Needle(Struct):
    """What one cell of the grid asks: a query with everything that must be planted for it."""

    query: Query
    statements: list[Statement]
    fields: dict[str, str] = {}
    """Fields of the question that are known only when the page is (`page`, `row`, `column`)."""


@cache
def kinds() -> dict[str, dict[str, Any]]:
    """Return the needle kinds of the catalog."""
    return read_config_file(str(files("snellen") / "catalog" / "documents" / "needles.toml"))


def check_kinds(names: list[str]) -> list[str]:
    """Return the kinds asked for; `all` is every kind, `text` all that need no drawing, `visual` the rest."""
    known = kinds()
    groups = {
        "all": list(known),
        "text": [name for name in known if not known[name].get("visual")],
        "visual": [name for name in known if known[name].get("visual")],
    }
    chosen = [kind for name in names for kind in groups.get(name, [name])]
    for name in chosen:
        if name not in known:
            listed = ", ".join([*known, *groups])
            raise UsageError(f"unknown needle kind {name!r}{did_you_mean(name, known)}; known: {listed}")
    return list(dict.fromkeys(chosen))


class NeedleMaker:
    """Draws the needles of one document: no key, value, fact or colour is used twice."""

    def __init__(self, words: Vocabulary, generator: random.Random) -> None:
        self._words = words
        self._generator = generator
        self._taken: set[str] = set()

    def make(self, kind: str, name: str, depth: float) -> Needle:
        """Draw one needle of a kind; `name` prefixes the ids of its statements."""
        card = kinds()[kind]
        if "like" in card:
            card = kinds()[card["like"]] | card
        if card.get("visual"):
            return self._visual(kind, card, name, depth)
        if "facts" in card:
            return self._fact(kind, card, name, depth)
        if kind == "absent":
            question = card["question"].format(key=self._words.draw("key"))
            return Needle(Query(kind, question, [NOT_FOUND], [], depth, "abstain"), [])
        if "keys" in card:
            return self._several_keys(kind, card, name, depth)
        return self._one_key(kind, card, name, depth)

    def _one_key(self, kind: str, card: dict[str, Any], name: str, depth: float) -> Needle:
        draw, choose = self._words.draw, self._generator.choice
        key, pattern = draw(card.get("key", "key")), choose(card["statements"])
        middle = draw(card["middle"]) if "middle" in card else ""
        answers = [draw(card["value"]) for _ in range(card.get("values", 1))]
        filled = [pattern.format(key=key, value=value, middle=middle) for value in answers]
        pairs = enumerate(zip(answers, filled, strict=True))
        statements = [Statement(f"{name}.{index}", kind, key, value, text) for index, (value, text) in pairs]
        if "second" in card:
            value = answers[0] if middle else draw(card["value"])
            statements[0].role, statements[0].value = ("needle", middle) if middle else ("stale", answers[0])
            text = choose(card["second"]).format(key=key, value=value, middle=middle)
            statements.append(Statement(f"{name}.second", kind, key, value, text))
            answers = [value]
        for index in range(card.get("distractors", 0)):
            other, value = draw("key"), draw(card["value"])
            text = pattern.format(key=other, value=value)
            statements.append(Statement(f"{name}.not{index}", kind, other, value, text, "distractor"))
        query = Query(kind, card["question"].format(key=key), answers, [], depth, "all" if len(answers) > 1 else "any")
        return self._placed(query, statements)

    def _several_keys(self, kind: str, card: dict[str, Any], name: str, depth: float) -> Needle:
        pattern = self._generator.choice(card["statements"])
        pairs = [(self._words.draw("key"), self._words.draw(card["value"])) for _ in range(card["keys"])]
        statements = [
            Statement(f"{name}.{index}", kind, key, value, pattern.format(key=key, value=value))
            for index, (key, value) in enumerate(pairs)
        ]
        listed = ", ".join(f"the {key}" for key, _ in pairs[:-1]) + f" and the {pairs[-1][0]}"
        question, answers = card["question"].format(keys=listed), [value for _, value in pairs]
        return self._placed(Query(kind, question, answers, [], depth, "all"), statements)

    def _fact(self, kind: str, card: dict[str, Any], name: str, depth: float) -> Needle:
        free = [fact for fact in card["facts"] if fact[1] not in self._taken]
        if not free:
            raise UsageError(f"a document can hold {len(card['facts'])} needles of kind {kind!r}: lower --per-document")
        text, question = self._generator.choice(free)
        self._taken.add(question)
        value = self._words.draw(card["value"])
        statement = Statement(f"{name}.0", kind, question, value, text.format(value=value))
        return self._placed(Query(kind, question, [value], [], depth), [statement])

    def _visual(self, kind: str, card: dict[str, Any], name: str, depth: float) -> Needle:
        value = self._words.draw(card["value"])
        fields: dict[str, str] = {}
        text = ""
        if kind == "colour":
            free = [colour for colour in COLOURS if colour not in self._taken]
            if not free:
                raise UsageError(f"a document can hold {len(COLOURS)} needles of kind 'colour': lower --per-document")
            fields["colour"] = self._generator.choice(free)
            self._taken.add(fields["colour"])
            text = card["statements"][0].format(value=value)
        elif kind == "table-cell":
            fields = {"row": self._words.draw("word"), "column": self._words.draw("word")}
        statement = Statement(f"{name}.0", kind, " ".join(fields.values()) or kind, value, text)
        return self._placed(Query(kind, card["question"], [value], [], depth), [statement], fields)

    def _depth_of(self, statement: Statement, query: Query) -> float:
        if statement.role == "distractor":
            return _outside(query.depth, self._generator)
        return query.depth if query.kind == "conflicting" else self._generator.random()

    def _placed(self, query: Query, statements: list[Statement], fields: dict[str, str] | None = None) -> Needle:
        """Give every statement its depth: the first the query's, distractors one outside a free zone, partners any."""
        for index, statement in enumerate(statements):
            statement.depth = query.depth if index == 0 else self._depth_of(statement, query)
        if statements and statements[0].role == "stale":
            statements[0].depth = query.depth * self._generator.uniform(0.2, 0.9)
        query.needles.extend(statement.id for statement in statements if statement.role == "needle")
        return Needle(query, statements, fields or {})


def _outside(depth: float, generator: random.Random, free: float = 0.1) -> float:
    """Draw a depth at least `free` (of the length, to either side) away from the needle."""
    low, high = max(0.0, depth - free), min(1.0, depth + free)
    drawn = generator.random() * (1 - (high - low))
    return drawn if drawn < low else drawn + (high - low)
