"""Foreign text to text that can be stored, sent and shown, and to the JSON that stands in it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it: escapes, bells, and marks that turn the direction of text."""
REPLACEMENT = "\ufffd"
OBEYED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Controls that stand in no text; line ends and tabs do."""
UNSEEN = "".join(
    map(chr, (0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF))
)
"""Marks that cannot be seen, and that a spreadsheet reads past."""
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula begins, also in full width."""
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|\.\d+)([eE][+-]?\d+)?( ?%)?")
"""A number as our own tables write it: no formula, though it may begin with a sign."""
NO_TAG = "(none)"
"""How the lack of a tag is shown."""


def clean_text(text: str) -> str:
    """Make text storable: lone surrogates and NUL become U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def show_text(text: str) -> str:
    """Make text showable: what a terminal would obey becomes U+FFFD."""
    return CONTROL.sub(REPLACEMENT, clean_text(text))


LONGEST_QUOTE = 160


def shorten_quote(text: str) -> str:
    """Return a reply on one line; of a long one how it begins and how it ends."""
    said = " ".join(show_text(text).split())
    return said if len(said) <= LONGEST_QUOTE else f"{said[: LONGEST_QUOTE // 2]} … {said[-LONGEST_QUOTE // 2 :]}"


def ago(seconds: float) -> str:
    """Return how long ago something was, in its largest unit: `3 days ago`."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{plural(int(seconds // length), unit)} ago"
    return "less than a minute ago"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 image`, `2,000 images`, `3 replies`, `2 batches`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def defuse_cell(text: str) -> str:
    """Return a CSV cell that no spreadsheet runs and no terminal obeys: what begins like a formula gets an apostrophe.

    Spaces and marks that cannot be seen before the sign are seen through, as spreadsheets do.
    """
    text = OBEYED.sub(REPLACEMENT, text)
    bare = text
    while bare != (bare := bare.lstrip().lstrip(UNSEEN + REPLACEMENT)):
        pass
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) or bare.startswith(FORMULA) else text


def safe_cell(value: object) -> object:
    """Return a CSV cell of ours: numbers as they are, foreign text defused, nothing for None."""
    if isinstance(value, str):
        return value if NUMBER.fullmatch(value) else defuse_cell(value)
    return "" if value is None else value


def tag_text(value: Any) -> str:
    """Return a tag's value as it is shown in results: JSON's spelling, `(none)` for none."""
    if value is None:
        return NO_TAG
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted_line(cells: Iterable[object]) -> str:
    """Return a line of CSV. A cell with a lone CR goes in quotes, too: a spreadsheet would begin a row there."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()[:-2] + "\n"


def json_objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects in a text, one after another, outermost only; prose and code fences are ignored."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


LETTERS_PER_TOKEN = 3.5
MESSAGE_TOKENS = 3
"""What a chat template puts around each message; a dialogue has many."""


def text_tokens(text: str, letters_per_token: float | None = None) -> float:
    """Return about how many tokens a text has: one a Chinese, Japanese or Korean character, else by its length."""
    wide = 0 if text.isascii() else sum(1 for letter in text if letter >= "\u2e80")
    return wide + (len(text) - wide) / (letters_per_token or LETTERS_PER_TOKEN)
