"""How a harness reads a span of time out of a reply, its misreadings included."""

from __future__ import annotations

import re

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?"
_CLOCKS = re.compile(rf"\b({_CLOCK})\s*[–-]\s*({_CLOCK})\b")
_PAIR = re.compile(r"(\d+(?:\.\d+)?)\s*[–-]\s*(\d+(?:\.\d+)?)")
_ONE_CLOCK = re.compile(rf"\b({_CLOCK})\b")
_TIME = re.compile(r"\b(\d+(?:\.\d+)?)\b")
_CUES = ("start", "end", "happen")
_EXAMPLE = "a specific example is : 20.8 - 30.0 seconds"
"""What its prompt shows: a reply that repeats it has not answered with it."""


def read_span_lmms(text: str) -> tuple[float, float] | None:
    """Charades-STA in lmms-eval: the first span in sentences with a cue, else in any; clocks come before seconds.

    Without a span (`a - b`, `a to b`) two clocks, else the first numbers of two sentences. A span that ends before it
    starts is turned round.
    """
    lowered = text.lower().replace(_EXAMPLE, "").replace("to", "-")
    sentences = re.split(r"[!?\n]", lowered)
    sentences = [part for part in sentences if any(cue in part for cue in _CUES)] or sentences
    for shape in (_CLOCKS, _PAIR):
        pair = next((found for part in sentences if (found := shape.search(part))), None)
        if pair:
            return _in_order(_seconds(pair[1]), _seconds(pair[2]))
    times = [_seconds(clock) for part in sentences for clock in _ONE_CLOCK.findall(part)]
    if len(times) < 2:
        times = [float(found[1]) for part in sentences if (found := _TIME.search(part))]
    return _in_order(times[0], times[1]) if len(times) > 1 else None


def _seconds(said: str) -> float:
    seconds = 0.0
    for part in said.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def _in_order(first: float, second: float) -> tuple[float, float]:
    return (min(first, second), max(first, second))
