"""A reply in, what became of it out: read, cut off, caught in a loop, refused, empty. None of them is a plain 0."""

from __future__ import annotations

import re
from enum import StrEnum

from ...extract.phrases import REFUSAL
from ...extract.reply_text import answer_start

LONGEST_REFUSAL = 400
LONGEST_PERIOD = 300
LEAST_LOOP = 200
"""Characters that must be repeated at the end of a reply, at least four times, to be a loop."""


class State(StrEnum):
    """What became of a reply."""

    READ = "read"
    EMPTY = "empty"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    LOOP = "loop"


def state_of(text: str, finish: str | None) -> State:
    """Return what became of a reply; a loop is found in what was written, a cut by what the server said."""
    bare = text.strip()
    if not bare:
        return State.TRUNCATED if finish == "length" else State.EMPTY
    if loop_length(bare):
        return State.LOOP
    if finish == "length":
        return State.TRUNCATED
    short = len(bare) <= LONGEST_REFUSAL and "\n\n" not in bare
    return State.REFUSED if short and REFUSAL.search(bare.lower()) else State.READ


def loop_length(text: str) -> int:
    """Return how many characters at the end repeat what stands before them; 0 if that is no loop."""
    tail = re.sub(r"\s+", " ", text[-20_000:]).strip()
    for period in range(1, min(LONGEST_PERIOD, len(tail) // 4) + 1):
        run = 0
        while run + period < len(tail) and tail[-1 - run] == tail[-1 - run - period]:
            run += 1
        if run >= max(LEAST_LOOP, 3 * period) and re.search(r"\w", tail[-period:]):
            return run
    return 0


def without_thinking(text: str) -> str | None:
    """Return a reply after its thinking; None if the thinking never ended."""
    start = answer_start(text)
    return None if start is None else text[start:]
