"""Haystack, lengths, depths and kinds into documents with needles planted: the grid dealt out, every position known."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ...core.errors import UsageError
from ...core.ids import content_hash, rng, sha256_hex
from ...data.visual_tokens import DEFAULT_TOKENIZER, count_tokens
from .needle import Needle, NeedleMaker, Query, Statement, Vocabulary, boundaries, word_lists
from .texts import read_documents

BUILT_IN = "built-in"
_GUTENBERG = re.compile(r"\*\*\* ?START OF .*?\*\*\*(.*?)\*\*\* ?END OF ", re.DOTALL)


class Haystack(NamedTuple):
    """A text to hide things in and where it came from."""

    text: str
    source: str
    sha256: str


def read_haystack(name: str, tokens: int, seed: int = 0) -> Haystack:
    """Return the built-in chronicle with at least `tokens` tokens, or the text of a file or folder, cleaned."""
    if name == BUILT_IN:
        text = chronicle(rng(seed, "haystack"), tokens * 5 + 4000)
        return Haystack(text, BUILT_IN, sha256_hex(text.encode()))
    text = clean("\n\n".join(document.text for document in read_documents(Path(name))))
    if not text:
        raise UsageError(f"haystack {name} is empty")
    return Haystack(text, Path(name).name, sha256_hex(text.encode()))


def chronicle(generator: random.Random, characters: int) -> str:
    """Write plain prose of our own, as long as wanted: the same for the same generator."""
    words = word_lists()
    paragraphs, length = [], 0
    while length < characters:
        sentences = []
        for template in generator.sample(words["sentences"], generator.randrange(4, 9)):
            chosen = [generator.choice(words[kind]) for kind in ("adjectives", "nouns", "adjectives", "nouns")]
            sentences.append(template.format(*chosen))
        paragraphs.append(re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", " ".join(sentences)))
        length += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


def clean(text: str) -> str:
    """Drop Gutenberg's frame, doubled paragraphs and runs of spaces within lines; indentation stays."""
    framed = _GUTENBERG.search(text)
    text = framed[1] if framed else text
    paragraphs = dict.fromkeys(part.strip("\n") for part in re.split(r"\n\s*\n", text) if part.strip())
    return "\n\n".join(re.sub(r"(?<=\S) {2,}", " ", paragraph) for paragraph in paragraphs)


def take(haystack: Haystack, tokens: int, generator: random.Random, tokenizer: str = DEFAULT_TOKENIZER) -> str:
    """Cut a slice of about `tokens` tokens that begins and ends at sentence boundaries; its start is random."""
    have = count_tokens(haystack.text, tokenizer)
    if have < tokens:
        fix = "use a longer one or shorter --lengths"
        raise UsageError(f"haystack {haystack.source} holds {have} tokens, {tokens} are needed: {fix}")
    per_token = len(haystack.text) / have
    places = boundaries(haystack.text)
    last = len(haystack.text) - int(tokens * per_token)
    start = generator.choice([place for place in places if place <= max(0, last)])
    rest = haystack.text[start : start + int(tokens * per_token * 1.3) + 200]
    ends = boundaries(rest)[1:]
    fitting = bisect_right(ends, tokens, key=lambda end: count_tokens(rest[:end], tokenizer))
    return rest[: ends[max(0, fitting - 1)]].strip()


def parse_lengths(text: str) -> list[int]:
    """Read `8k,16k,32000` as token counts (k is 1,000)."""
    lengths = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(k?)", part.strip().lower())
        if not match:
            raise UsageError(f"length {part.strip()!r} is not a number of tokens such as 8k or 12000")
        lengths.append(int(float(match[1]) * (1000 if match[2] else 1)))
    return lengths


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
