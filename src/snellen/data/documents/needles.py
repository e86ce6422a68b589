"""Kinds and a vocabulary into needles: the sentences to plant, the question about them and the answers that count."""

from __future__ import annotations

import random
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from ...core.config import read_config_file
from ...core.errors import UsageError, did_you_mean
from .words import SHAPES, Vocabulary

NOT_FOUND = "not found"
COLOURS = {"red": "#d00000", "blue": "#0030d0", "green": "#007000", "orange": "#d07000"}


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
    row: float | None = None
    column: float | None = None


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
            raise UsageError(f"unknown needle kind {name!r}{did_you_mean(name, known)}; known: {', '.join([*known, *groups])}")
    return list(dict.fromkeys(chosen))


def make_needle(kind: str, name: str, depth: float, words: Vocabulary, generator: random.Random, taken: set[str]) -> Needle:
    """Draw one needle. `name` prefixes its ids; `taken` holds facts and colours already used in this document."""
    card = kinds()[kind]
    if "like" in card:
        card = kinds()[card["like"]] | card
    if card.get("visual"):
        return _visual(kind, card, name, depth, words, generator, taken)
    if "facts" in card:
        return _fact(kind, card, name, depth, words, generator, taken)
    key = words.draw(card.get("key", "key"))
    if kind == "absent":
        return Needle(Query(kind, card["question"].format(key=key), [NOT_FOUND], [], depth, "abstain"), [])
    if kind == "multi-query":
        return _several_keys(kind, card, name, depth, words, generator)
    return _one_key(kind, card, name, depth, words, generator, key)


def _one_key(kind: str, card: dict[str, Any], name: str, depth: float, words: Vocabulary, generator: random.Random, key: str) -> Needle:
    pattern = generator.choice(card["statements"])
    middle = words.draw(card["middle"]) if "middle" in card else ""
    values = [words.draw(card["value"]) for _ in range(card.get("values", 1))]
    statements = [
        Statement(f"{name}.{index}", kind, key, value, pattern.format(key=key, value=value, middle=middle)) for index, value in enumerate(values)
    ]
    answers = values
    if "second" in card:
        second_value = values[0] if middle else words.draw(card["value"])
        text = generator.choice(card["second"]).format(key=key, value=second_value, middle=middle)
        statements[0].role = "needle" if middle else "stale"
        statements.append(Statement(f"{name}.second", kind, key, second_value, text))
        answers = [second_value]
    for index in range(card.get("distractors", 0)):
        other, value = words.draw("key"), words.draw(card["value"])
        statements.append(Statement(f"{name}.not{index}", kind, other, value, pattern.format(key=other, value=value), "distractor"))
    return _placed(Query(kind, card["question"].format(key=key), answers, [], depth, "all" if len(answers) > 1 else "any"), statements, generator)


def _several_keys(kind: str, card: dict[str, Any], name: str, depth: float, words: Vocabulary, generator: random.Random) -> Needle:
    pattern = generator.choice(card["statements"])
    pairs = [(words.draw("key"), words.draw(card["value"])) for _ in range(card["keys"])]
    statements = [
        Statement(f"{name}.{index}", kind, key, value, pattern.format(key=key, value=value)) for index, (key, value) in enumerate(pairs)
    ]
    listed = ", ".join(f"the {key}" for key, _ in pairs[:-1]) + f" and the {pairs[-1][0]}"
    query = Query(kind, card["question"].format(keys=listed), [value for _, value in pairs], [], depth, "all")
    return _placed(query, statements, generator)


def _fact(
    kind: str, card: dict[str, Any], name: str, depth: float, words: Vocabulary, generator: random.Random, taken: set[str]
) -> Needle:
    free = [fact for fact in card["facts"] if fact[1] not in taken]
    if not free:
        raise UsageError(f"a document can hold {len(card['facts'])} needles of kind {kind!r}: lower --per-document")
    statement, question = generator.choice(free)
    taken.add(question)
    value = words.draw(card["value"])
    return _placed(Query(kind, question, [value], [], depth), [Statement(f"{name}.0", kind, question, value, statement.format(value=value))], generator)


def _visual(
    kind: str, card: dict[str, Any], name: str, depth: float, words: Vocabulary, generator: random.Random, taken: set[str]
) -> Needle:
    value = words.draw(card["value"])
    fields: dict[str, str] = {}
    text = ""
    if kind == "colour":
        colour = generator.choice([colour for colour in COLOURS if colour not in taken] or list(COLOURS))
        taken.add(colour)
        fields["colour"] = colour
        text = card["statements"][0].format(value=value)
    elif kind == "table-cell":
        fields = {"row": words.draw("word"), "column": words.draw("word")}
    statement = Statement(f"{name}.0", kind, " ".join(fields.values()) or kind, value, text)
    answers = [value] if kind != "shape" else [SHAPES[SHAPES.index(value)]]
    return _placed(Query(kind, card["question"], answers, [], depth), [statement], generator, fields)


def _placed(query: Query, statements: list[Statement], generator: random.Random, fields: dict[str, str] | None = None) -> Needle:
    """Give every statement its depth: the first at the query's, partners after it or anywhere, distractors out of a free zone."""
    for index, statement in enumerate(statements):
        if index == 0:
            statement.depth = query.depth
        elif statement.role == "distractor":
            statement.depth = _outside(query.depth, generator)
        elif query.kind == "conflicting":
            statement.depth = query.depth
            statements[0].depth = query.depth * generator.uniform(0.2, 0.9)
        else:
            statement.depth = generator.random()
        if statement.role == "needle":
            query.needles.append(statement.id)
    return Needle(query, statements, fields or {})


def _outside(depth: float, generator: random.Random, free: float = 0.1) -> float:
    """Draw a depth at least `free` (of the length, to either side) away from the needle."""
    low, high = max(0.0, depth - free), min(1.0, depth + free)
    drawn = generator.random() * (1 - (high - low))
    return drawn if drawn < low else drawn + (high - low)
