"""Two texts to their difference, line by line and word by word: what is missing, what was added."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from ...core.markup import Child, Html, join, tag
from ...core.types import Form
from ..pages.gallery import Shown

MOST_LINES, MOST_CHARACTERS = 400, 20_000
LONG = 60
"""An expected answer from so many characters on is a text, not a word."""


def reply_difference(shown: Shown) -> Iterator[Child]:
    """Yield how a reply differs from the expected text, where that is a text: a page read, a long answer."""
    expected, reply = (shown.sample.answers or ("",))[0], shown.prediction.text
    if not reply or not expected or not (shown.sample.form is Form.OCR or "\n" in expected or len(expected) >= LONG):
        return
    yield tag("h3", "Expected and read, line by line")
    if len(expected) + len(reply) > 2 * MOST_CHARACTERS:
        yield tag("p", f"Too long to be compared here: more than {2 * MOST_CHARACTERS:,} characters.", class_="muted")
        return
    yield line_difference(expected, reply)


def line_difference(before: str, after: str) -> Html:
    """Return two texts as one: lines that only the first has, lines that only the second has, changes inside lines."""
    first, second = before.splitlines(), after.splitlines()
    if max(len(first), len(second)) > MOST_LINES:
        return tag("p", f"Too long to be compared here: more than {MOST_LINES} lines.", class_="muted")
    rows: list[Html] = []
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if kind == "equal":
            rows += [tag("div", line or " ", class_="same") for line in first[a0:a1]]
        else:
            rows += _changed(first[a0:a1], second[b0:b1])
    key = tag("p", tag("del", "missing"), " ", tag("ins", "added"), class_="small muted")
    return join((tag("div", *rows, class_="difference mono", tabindex=0, role="group", aria_label="Difference"), key))


def _changed(old: Sequence[str], new: Sequence[str]) -> list[Html]:
    shared = min(len(old), len(new))
    rows = [tag("div", word_difference(a, b), class_="both") for a, b in zip(old, new, strict=False)]
    rows += [tag("div", tag("del", line or " ")) for line in old[shared:]]
    return rows + [tag("div", tag("ins", line or " ")) for line in new[shared:]]


def word_difference(before: str, after: str) -> Html:
    """Return one line with the words that were taken out and those that were put in."""
    old, new = (re.findall(r"\s+|\w+|[^\w\s]", text)[:2000] for text in (before, after))
    parts: list[Child] = []
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[a0:a1]), "".join(new[b0:b1])
        if kind == "equal":
            parts.append(gone)
        else:
            parts += [tag("del", gone) if gone else None, tag("ins", come) if come else None]
    return join(parts)
