"""Haystack, lengths, depths and kinds into documents with needles planted: the grid dealt out, every position known."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import UsageError
from ...core.ids import content_hash, rng
from ...data.visual_tokens import DEFAULT_TOKENIZER, count_tokens
from .haystack import Haystack, take
from .needle import Needle, NeedleMaker, Query, Statement
from .unused_words import Vocabulary, boundaries

Cell = tuple[float, str]
"""Depth and kind of one needle."""
ABSTAIN = ' If it is not in the document, answer "not found".'


class Grid(Struct, frozen=True):
    """Which cells are measured, and how they are dealt into documents."""

    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    kinds: tuple[str, ...]
    repeats: int = 1
    per_document: int = 5
    tokenizer: str = DEFAULT_TOKENIZER
    seed: int = 0


class Planted(Struct):
    """One document: its text, what was planted and what is asked."""

    id: str
    length: int
    text: str
    needles: list[Needle]
    haystack: dict[str, Any]
    seed: int

    @property
    def statements(self) -> list[Statement]:
        """Return everything planted, in the order of the questions."""
        return [statement for needle in self.needles for statement in needle.statements]


def parse_depths(text: str) -> tuple[float, ...]:
    """Read `11` (that many from 0 to 100 %) or `0,25,50,75,100` (percent)."""
    try:
        if "," not in text and "." not in text and int(text) >= 1:
            count = int(text)
            return tuple(index / (count - 1) for index in range(count)) if count > 1 else (0.5,)
        depths = tuple(float(part) / 100 for part in text.split(","))
    except ValueError:
        raise UsageError(f"depths {text!r}: write a count (11) or percentages (0,50,100)") from None
    if not all(0 <= depth <= 1 for depth in depths):
        raise UsageError(f"depths {text!r} must lie between 0 and 100 percent")
    return depths


def plant(haystack: Haystack, grid: Grid) -> Iterator[Planted]:
    """Yield the documents of a grid: every length × depth × kind × repeat is asked exactly once."""
    for length in grid.lengths:
        cells = [(depth, kind) for _ in range(grid.repeats) for kind in grid.kinds for depth in grid.depths]
        for index, hand in enumerate(_deal(cells, grid.per_document, rng(grid.seed, length, "deal"))):
            yield _document(haystack, grid, length, index, hand)


def instance_of(planted: Planted) -> dict[str, Any]:
    """Return one object of the NIAH `data.json`: the public fields first, ours after them."""
    queries = [needle.query for needle in planted.needles]
    needles = [statement for statement in planted.statements if statement.role == "needle"]
    others = [statement for statement in planted.statements if statement.role != "needle"]
    depths = _achieved_depths(planted)
    asked = zip(map(msgspec.to_builtins, queries), depths, strict=True)
    return {
        "_id": planted.id,
        "domain": "Needle in a Haystack",
        "sub_domain": "Secret Retrieval",
        "difficulty": _difficulty(queries),
        "length": f"{planted.length}",
        "context": planted.text,
        "questions": [query.question for query in queries],
        "answers": [", ".join(query.answers) for query in queries],
        "question_depths": [depth_bin(depth) for depth in depths],
        "secrets": {statement.key: statement.value for statement in needles},
        "queries": [query | {"achieved_depth": depth} for query, depth in asked],
        "needles": msgspec.to_builtins(needles),
        "distractors": msgspec.to_builtins(others),
        "haystack": planted.haystack,
        "seed": planted.seed,
    }


def _difficulty(queries: Sequence[Query]) -> str:
    return "easy" if {query.kind for query in queries} <= {"kv-number", "kv-uuid"} else "hard"


def depth_bin(depth: float) -> str:
    """Return the fifth of the document a depth falls into, as the public data names it."""
    fifth = min(4, int(depth * 5))
    return f"{fifth * 20}-{fifth * 20 + 20}%"


def _achieved_depths(planted: Planted) -> list[float]:
    """Return the depth at which each question's first needle really stands."""
    known = {statement.id: statement.char_depth for statement in planted.statements if statement.char_depth is not None}
    queries = [needle.query for needle in planted.needles]
    return [next((known[name] for name in query.needles if name in known), query.depth) for query in queries]


def _deal(cells: list[Cell], size: int, generator: random.Random) -> Iterator[list[Cell]]:
    """Deal cells into hands whose depths differ as far as they can: shuffled, then sorted by depth, taken in turn."""
    if size < 1:
        raise UsageError("--per-document must be at least 1")
    generator.shuffle(cells)
    cells.sort(key=lambda cell: cell[0])
    hands = -(-len(cells) // size)
    for index in range(hands):
        yield cells[index::hands]


def _document(haystack: Haystack, grid: Grid, length: int, index: int, hand: Sequence[Cell]) -> Planted:
    generator = rng(grid.seed, length, index, "needles")
    maker = NeedleMaker(Vocabulary(haystack.text, generator), generator)
    needles = [maker.make(kind, f"n{place}", depth) for place, (depth, kind) in enumerate(hand)]
    for needle in needles:
        needle.query.question += ABSTAIN if "absent" in grid.kinds else ""
    statements = [statement for needle in needles for statement in needle.statements if statement.text]
    room = length - sum(count_tokens(statement.text, grid.tokenizer) for statement in statements)
    if room < length // 2:
        raise UsageError(f"{len(statements)} planted sentences do not fit into {length} tokens: use longer --lengths")
    text = _insert(take(haystack, room, generator, grid.tokenizer), statements)
    total = count_tokens(text, grid.tokenizer)
    for statement in statements:
        _note_depth(statement, text, total, grid.tokenizer)
    source = {"source": haystack.source, "sha256": haystack.sha256, "tokens": total, "tokenizer": grid.tokenizer}
    name = f"niah-{length}-{index:03d}-{content_hash([source, grid.seed, text], 8)}"
    return Planted(name, length, text, needles, source, grid.seed)


def _note_depth(statement: Statement, text: str, tokens: int, tokenizer: str) -> None:
    start = statement.char_start or 0
    statement.char_depth = round(start / len(text), 4)
    statement.token_depth = round(count_tokens(text[:start], tokenizer) / tokens, 4) if start else 0.0


def _insert(text: str, statements: Sequence[Statement]) -> str:
    """Put each sentence at the free boundary nearest its depth and note its offsets in the finished text."""
    free = boundaries(text)
    if len(free) < len(statements):
        few = f"{len(free)} sentence boundaries for {len(statements)} needles"
        raise UsageError(f"the slice has {few}: use longer --lengths")
    places: list[tuple[int, Statement]] = []
    for statement in statements:
        nearest = min(free, key=lambda place: (abs(place - statement.depth * len(text)), place))
        free.remove(nearest)
        places.append((nearest, statement))
    pieces: list[str] = []
    done = length = 0
    for place, statement in sorted(places, key=lambda pair: pair[0]):
        pieces.append(text[done:place])
        length += place - done
        done = place
        before = "" if not length or pieces[-1][-1:].isspace() else " "
        statement.char_start = length + len(before)
        statement.char_end = statement.char_start + len(statement.text)
        pieces.append(f"{before}{statement.text}{' ' if place < len(text) else ''}")
        length += len(pieces[-1])
    return "".join([*pieces, text[done:]])
