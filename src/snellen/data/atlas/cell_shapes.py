"""Cells in other shapes than ours: lists of objects, options with their letters, numbers that count rows."""

from __future__ import annotations

import re
import string
from typing import Any

from ...core.errors import DataError
from ..files.written_lists import parse_literal
from ..loaders.row_options import options_in_text

_MARK = re.compile(r"\s*[(\[]?([A-Za-z])[)\].:：、]\s*")
_SMALL_MARK = re.compile(r"\(([a-z])\)")
_MARKED = re.compile(r"(?:^|(?<=;))\s*([A-J])[.．)]\s*")
"""An option of a text that holds nothing else: each may stand on a line of its own."""
_CLOSE_MARK = re.compile(r";(?=[B-J][.．)])")
"""Where an option follows another without a space: `A. 3;B. 4`."""


def fields_of(value: Any, name: str) -> Any:
    """Return the field of every object of a list, also of one written as text; anything else stays as it is.

    A hub's table may hold such a list as one object of lists.
    """
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
    if isinstance(parsed, dict) and isinstance(parsed.get(name), list):
        return parsed[name]
    if isinstance(parsed, list) and all(isinstance(one, dict) for one in parsed):
        return [one[name] for one in parsed if one.get(name) is not None]
    return value


def unmarked(value: Any) -> Any:
    """Return options without the letters before them: of a list, or of one text in which they stand marked."""
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if isinstance(parsed, list):
        return _without_marks(parsed)
    text = _SMALL_MARK.sub(lambda found: f"({found[1].upper()})", _CLOSE_MARK.sub("; ", str(value)))
    found = options_in_text(text) or options_in_text(_MARKED.sub(r"\n\1. ", text))
    return list(found.options) if found else None


def _without_marks(options: list[Any]) -> list[Any]:
    """Return texts without their marks A, B, C …; as they are where those are not all there in order."""
    marks = [_MARK.match(str(one)) for one in options]
    letters = "".join(mark[1].upper() if mark else " " for mark in marks)
    if not letters or letters != string.ascii_uppercase[: len(letters)]:
        return options
    return [str(one)[mark.end() :].strip() for one, mark in zip(options, marks, strict=True) if mark]


def onward_from(value: Any, marker: str) -> Any:
    """Return a text from a marker on, or every text of a list: a path without what stood before it elsewhere."""
    if isinstance(value, list):
        return [onward_from(one, marker) for one in value]
    return value[value.index(marker) :] if isinstance(value, str) and marker in value else value


def nth_of(value: Any, size: int, first: int, number: int) -> int:
    """Return in which group of `size` consecutive rows a row stands, by its number, which begins at `first`."""
    try:
        return (int(value) - first) // size
    except (TypeError, ValueError):
        raise DataError(f"record {number}: {value!r} is no whole number, so it has no group") from None


def last_of(value: Any) -> Any:
    """Return the last member of a list, also of one written as text; of anything else, itself."""
    parsed = parse_literal(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    return parsed[-1] if isinstance(parsed, list) and parsed else value


def told_turns(questions: Any, answers: Any) -> Any:
    """Return the questions of a dialogue with the answers to all but the last, as one text; a single one as it is."""
    asked = questions if isinstance(questions, list) else [questions]
    if len(asked) < 2:
        return asked[0] if asked else None
    said = answers if isinstance(answers, list) else [answers]
    pairs = zip(asked[:-1], said, strict=False)
    turns = [f"Question: {question}\nAnswer: {answer}" for question, answer in pairs]
    return "\n".join([*turns, f"Question: {asked[-1]}"])
