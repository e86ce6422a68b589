"""Which marks stood before the options of an outside record: letters, numbers, or not to be told."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...data.files.records import Record
from ...prompt.marks import STYLES, make_marks

AUTO = "auto"
OPTION_MARKS = (AUTO, *STYLES)
LETTERS, NUMBERS = "upper", "number"
PROMPT_FIELDS = ("question_with_option", "text", "prompt")
"""Where a record may hold the words that were asked."""
_WRAPPED = re.compile(r"[(\[]\s*(\d{1,2})\s*[)\]]|^\W*(\d{1,2})\W*$")


def mark_style(record: Record, reply: str, shown: Sequence[str]) -> str | None:
    """Return how the options were marked; None where a number may be a label or an option's own text.

    A reply without a number in brackets tells nothing, and letters are read as ever. With one, the prompt decides if
    the record holds it; else the number is a label, unless an option of that very text stands at another place.
    """
    numbers = {first or second for first, second in _WRAPPED.findall(reply)}
    if not numbers:
        return LETTERS
    return _told(record, shown) or _by_number(numbers, reply, shown)


def _by_number(numbers: set[str], reply: str, shown: Sequence[str]) -> str | None:
    """Return what the only number of a reply makes of the marks; several are a working, and one too high is none."""
    number = numbers.pop() if len(numbers) == 1 else "0"
    if not 1 <= int(number) <= len(shown):
        return LETTERS
    places = [place for place, text in enumerate(shown, 1) if text.strip() == number]
    if not places:
        return NUMBERS
    in_brackets = reply.strip().startswith(("(", "["))
    return None if in_brackets and places != [int(number)] else LETTERS


def _told(record: Record, shown: Sequence[str]) -> str | None:
    """Return the style in which a prompt of the record lists its options."""
    prompt = next((text for field in PROMPT_FIELDS if isinstance(text := record.fields.get(field), str)), "")
    for style in STYLES:
        listed = zip(make_marks(style, len(shown)), shown, strict=True)
        if prompt and all(f"({mark}) {text}" in prompt for mark, text in listed):
            return style
    return None
