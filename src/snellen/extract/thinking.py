"""A reply to the place where its answer part begins: closed thinking is skipped, unclosed thinking means truncated."""

from __future__ import annotations

import re

from .word_lists import LazyPattern

_TAG = LazyPattern(
    r"[<\[◁]\|?(?P<close>/?)(?:seed:)?(?:<machine.thinking>)\|?[>\]▷]"
    r"|<\|(?P<edge>begin_of_thought|start_thinking|end_of_thought|end_thinking)\|>"
    r"|(?P<done>\.\.\.\s?done thinking\.?)",
    re.IGNORECASE,
)
_FINAL_CHANNEL = LazyPattern(
    r"<\|channel\|>\s?final\s?(?:<\|[^|<>]{1,40}\|>)?(?:<\|message\|>)?|assistantfinal(?=[^a-z])", re.IGNORECASE
)
_OTHER_CHANNEL = LazyPattern(r"<\|channel\|>\s?(?:analysis|commentary)", re.IGNORECASE)


def answer_start(text: str) -> int | None:
    """Return the index where the answer part begins (0 without thinking), or None if the thinking never ends."""
    # Plain searches first: most replies hold none of these signs and are not thought aloud.
    if "<" not in text and "◁" not in text and "[" not in text and "..." not in text and "assistantfinal" not in text:
        return 0
    start = _after_channels(text)
    if start is None:
        return None
    tags = list(_TAG.finditer(text, start))
    if not tags:
        return start
    return tags[-1].end() if _closes(tags[-1]) else None


def _closes(tag: re.Match[str]) -> bool:
    edge = tag.group("edge")
    return bool(tag.group("close") or tag.group("done") or (edge and edge.lower().startswith("end")))


def _after_channels(text: str) -> int | None:
    """Skip to the last `final` channel of the harmony format; None if only other channels were opened."""
    if "<|channel|>" not in text and "assistantfinal" not in text:
        return 0
    end = max((match.end() for match in _FINAL_CHANNEL.finditer(text)), default=0)
    return None if end == 0 and _OTHER_CHANNEL.search(text) else end
