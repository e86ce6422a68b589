"""The texts with which harnesses write a failed call into the place of a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "lmms-eval": ("[LMMS_EVAL_REQUEST_FAILED",),
    "flageval": ("Error code", "Can not answer because of", "Input data may contain inappropriate content"),
}
"""Harness -> how its failures begin."""
FILTERED: Final = frozenset(
    ("content_filter", "content-filter", "contentfilter", "safety", "prohibited_content", "recitation", "blocklist")
)
"""How servers say that a filter stopped a reply: OpenAI and Azure, Gemini."""
CONTAINED: Final[Mapping[str, tuple[str, ...]]] = {"vlmevalkit": ("Failed to obtain answer",)}
"""Harness -> what stands anywhere in them."""


def failure_in(harness: str, reply: str) -> str | None:
    """Return the failure a reply of this harness stands for, in its own words, or None for a reply."""
    if reply.lstrip().startswith(STARTS.get(harness, ("\0",))):
        return reply
    return reply if any(mark in reply for mark in CONTAINED.get(harness, ())) else None


def stopped_by_filter(finish: str | None, reply: str, read: object = None) -> str | None:
    """Return the failure of a call that a content filter stopped, by its finish reason; None if an answer was read."""
    if finish is None or finish.lower() not in FILTERED or read not in (None, ""):
        return None
    return f"refused by the content filter: {reply}" if reply else "refused by the content filter"


def failure_anywhere(reply: str) -> str | None:
    """Return the failure a reply of no known harness stands for, by the marks of all of them, or None."""
    starts = tuple(mark for marks in STARTS.values() for mark in marks)
    contained = [mark for marks in CONTAINED.values() for mark in marks]
    return reply if reply.lstrip().startswith(starts) or any(mark in reply for mark in contained) else None
