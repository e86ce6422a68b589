"""inspect_ai's `choice()`: only what follows `ANSWER:` is read."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OWN_LINE = re.compile(r"^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
_ANYWHERE = re.compile(r"ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", re.IGNORECASE)


def read_answer_line(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter after `ANSWER:`, first on a line of its own, else anywhere; without it the reply is wrong."""
    match = _OWN_LINE.search(reply) or _ANYWHERE.search(reply)
    if match is None:
        return None
    said = match[1].strip().rstrip(".").upper()
    return said if said in options else None
