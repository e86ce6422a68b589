"""How a harness reads a span of time out of a reply, its misreadings included."""

from __future__ import annotations

import re

_PAIR = re.compile(r"(\d+(?:\.\d+)?)\.*\s*-\s*(\d+(?:\.\d+)?)")
_TIME = re.compile(r"\b(\d+\.\d+|\d+)\b")
_CUES = ("start", "end", "happen")


def read_span_lmms(text: str) -> tuple[float, float] | None:
    """Charades-STA in lmms-eval: the first `a - b` (or `a to b`), else the first numbers of two sentences with a cue.

    A span that ends before it starts is turned round.
    """
    lowered = text.lower().replace("to", "-")
    pair = _PAIR.search(lowered)
    if pair:
        return _in_order(float(pair[1]), float(pair[2]))
    cued = [part for part in re.split(r"[!?\n]", lowered) if any(cue in part for cue in _CUES)]
    times = [float(found[1]) for part in cued if (found := _TIME.search(part))]
    return _in_order(times[0], times[1]) if len(times) > 1 else None


def _in_order(first: float, second: float) -> tuple[float, float]:
    return (min(first, second), max(first, second))
