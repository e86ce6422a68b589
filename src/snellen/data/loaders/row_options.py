"""Options and lists out of cells: a list, a mapping, a list written as text, or options inside the question's text."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ...core.errors import DataError
from ..answers import fold_options

LONGEST_LITERAL = 1_000_000
"""Characters of a list written as text; a longer one is no list of options."""


class Found(NamedTuple):
    """What was read out of a question's text."""

    question: str
    """The text without the options."""
    options: tuple[str, ...]
    pattern: str
    """How the first two were marked: `(A) (B)`."""


OPTION_MARK = re.compile(r"\s*\(?([A-Ja-j])(?:[.:)]|\)\.?)\s+")
"""The letter that an option begins with: `A. `, `(b) `."""


def parse_list(text: str, where: str, field: str = "options") -> Any:
    """Return the list or mapping that a text writes, as JSON or as Python would (never run); `a|b` and `a;b` are lists.

    None for an empty text.
    """
    stripped = text.strip()
    if not stripped:
        return None
    if not stripped.startswith(("[", "{")):
        return [part.strip() for part in re.split(r"[|;]", text)]
    value = parse_literal(stripped)
    if isinstance(value, list | dict):
        return value
    raise DataError(f"{where}: {field} are not valid JSON, nor a list as Python writes it: {stripped[:60]!r}")


def parse_literal(text: str) -> Any:
    """Return the list or mapping a text spells as JSON or as a Python literal, or None; nothing is ever evaluated."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    if len(text) > LONGEST_LITERAL:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return list(value) if isinstance(value, tuple | set | frozenset) else value


def repeated(options: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the places of two options that are the same but for case and space, or None."""
    folded = fold_options(options)
    if len(set(folded)) == len(folded):
        return None
    second = next(place for place, text in enumerate(folded) if text in folded[:place])
    return folded.index(folded[second]), second


_LINE = r"(?m)^[ \t]*{0}[ \t]*"
_INLINE = r"(?:(?<=\s)|^){0}[ \t]*"
_MARKS = {
    "(A) (B)": r"\(({letter})\)",
    "A. B.": r"({letter})[.．]",
    "A) B)": r"({letter})[)）]",
    "A: B:": r"({letter})[:：]",
    "A、B、": r"({letter})、",
}
_OPENINGS = {
    "(A) (B)": ("(A)",),
    "A. B.": ("A.", "A．"),
    "A) B)": ("A)", "A）"),
    "A: B:": ("A:", "A："),
    "A、B、": ("A、",),
}
"""What the first mark looks like: a text without it need not be searched."""
_LETTER = "[A-Z]"
PATTERNS = [
    *((f"{name} on lines", re.compile(_LINE.format(mark.format(letter=_LETTER)))) for name, mark in _MARKS.items()),
    *((name, re.compile(_INLINE.format(mark.format(letter=_LETTER)))) for name, mark in _MARKS.items()),
]
"""How options are marked inside a text, by the name that is said: on lines of their own first, then in one line."""


def options_in_text(text: str) -> Found | None:
    """Return the options that stand marked A, B, C … without a gap in a question's text, or None."""
    for name, pattern in _opened_patterns(text):
        marks = _last_run(list(pattern.finditer(text)))
        if len(marks) < 2:
            continue
        ends = _option_ends(text, marks, on_lines=name.endswith("lines"))
        texts = tuple(text[mark.end() : end].strip().rstrip(";,") for mark, end in zip(marks, ends, strict=True))
        if all(texts) and repeated(texts) is None:
            rest = text[ends[-1] :].strip()
            before = text[: marks[0].start()].rstrip()
            return Found(f"{before}\n{rest}" if before and rest else before or rest, texts, name)
    return None


def _opened_patterns(text: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns whose first mark stands in the text."""
    opened = {name for name, openings in _OPENINGS.items() if any(opening in text for opening in openings)}
    return ((name, pattern) for name, pattern in PATTERNS if name.removesuffix(" on lines") in opened)


def _option_ends(text: str, marks: list[re.Match[str]], *, on_lines: bool) -> list[int]:
    """Return where each marked option ends: at the next mark, the last one with its line or with the text."""
    # What follows the line of the last option is the question's again.
    newline = text.find("\n", marks[-1].end()) if on_lines else -1
    return [*(mark.start() for mark in marks[1:]), newline if newline >= 0 else len(text)]


def _last_run(marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the last run of marks that goes A, B, C … to the last mark of all, or nothing."""
    starts = [place for place, mark in enumerate(marks) if mark[1] == "A"]
    if not starts:
        return []
    run = marks[starts[-1] :]
    letters = "".join(mark[1] for mark in run)
    return run if letters == string.ascii_uppercase[: len(letters)] else []


def marked_answer(answer: object, options: tuple[str, ...]) -> str | None:
    """Return the option that an answer with its letter (`C. a cow`) names by its text, if there is one."""
    match = OPTION_MARK.match(answer) if isinstance(answer, str) and answer not in options else None
    text = str(answer)[match.end() :].strip() if match else ""
    return text if text in options else None
