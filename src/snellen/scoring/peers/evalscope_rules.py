"""evalscope's reader of multiple choice, as of 1617436 (2026): the last `ANSWER:`, else the reply's last capital."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MARKER = re.compile(r"ANSWER\s*:\s*\**\s*", re.IGNORECASE)
_BRACKETED = re.compile(r"[(\[（【]\s*([A-Za-z\d](?:\s*[,，]\s*[A-Za-z\d])*)\s*[)\]）】]")
_PLAIN = re.compile(r"([A-Za-z\d][A-Za-z\d ,]*)")
_WORD = re.compile(r"[A-Za-z\d]+")


def read_last_answer(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the label after the last `ANSWER:` that is followed by one; several labels are none.

    Without such a marker the last capital of the whole reply counts, whatever word it opens: `I see a Dog` is D.
    """
    labels = _last_labels(reply, options)
    if labels is not None:
        return labels if labels in options else None
    last = next((character for character in reversed(reply) if character.isupper()), None)
    return last if last in options else None


def _last_labels(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the labels after the last marker that has any: the leading words made of nothing but labels."""
    for marker in reversed(list(_MARKER.finditer(reply))):
        for shape in (_BRACKETED, _PLAIN):
            match = shape.match(reply, marker.end())
            labels = _leading(match[1], options) if match else ""
            if labels:
                return labels
    return None


def _leading(text: str, options: Mapping[str, str]) -> str:
    end = 0
    for word in _WORD.finditer(text):
        if not set(word[0]) <= options.keys():
            break
        end = word.end()
    return text[:end].strip().rstrip(".")
