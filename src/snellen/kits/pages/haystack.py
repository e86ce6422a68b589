"""A file, a folder or nothing at all into a long text to hide needles in, and slices of it of a wanted token length."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from ...core.errors import UsageError
from ...core.ids import rng, sha256_hex
from ...data.visual_tokens import DEFAULT_TOKENIZER, count_tokens
from .texts import read_documents
from .unused_words import boundaries, word_lists

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
