"""Answers to whether one came before: what is late on a kept connection must not answer the next question.

HTTP/1.1 does not say which question an answer belongs to. An answer whose id came before on the same connection is a
late copy, and everything after it there is shifted by one; unless the server's ids repeat by nature, which the first
answers of two connections tell: no copy can precede those.
"""

from __future__ import annotations

import re
from collections import deque

REMEMBERED = 256
NEAR_AN_END = 400
ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,200})"')
LAST_ID = re.compile(rb'"responseId"\s*:\s*"([^"\\]{1,200})"')
"""What an answer calls itself: OpenAI and Anthropic at its beginning, Gemini at its end."""
REQUEST_ID = "x-amzn-requestid"
"""Where Bedrock says it: its answers have no name."""


class Recent:
    """The last few ids of answers."""

    __slots__ = ("_known", "_order")

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._order: deque[bytes] = deque()

    def __contains__(self, name: bytes) -> bool:
        return name in self._known

    def add(self, name: bytes) -> None:
        """Remember an id; the oldest is forgotten."""
        if name in self._known:
            return
        self._known.add(name)
        self._order.append(name)
        if len(self._order) > REMEMBERED:
            self._known.discard(self._order.popleft())


class Copies:
    """What one server's ids are worth, over all connections to it."""

    __slots__ = ("_recent", "_repeating")

    def __init__(self) -> None:
        self._recent = Recent()
        self._repeating = False

    def is_copy(self, body: bytes, seen: Recent, *, first: bool, called: str = "") -> bool:
        """Tell whether an answer came before on its connection, whose ids are `seen`; then remember it.

        `called` is its id where a header says it.
        """
        if self._repeating:
            return False
        name = answer_id(body) or called.encode()
        if not name:
            return False
        self._repeating = first and name in self._recent
        copy = not first and name in seen
        seen.add(name)
        self._recent.add(name)
        return copy


def answer_id(body: bytes) -> bytes | None:
    """Return what an answer calls itself; text inside it cannot pass for that, its quotes are escaped."""
    found = ID.search(body, 0, NEAR_AN_END) or LAST_ID.search(body, max(0, len(body) - NEAR_AN_END))
    return found[1] if found else None
