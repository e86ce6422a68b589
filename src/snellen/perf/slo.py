"""Objectives in (`ttft=500ms,tpot=40ms`), a yes or no for each request out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.errors import UsageError, did_you_mean
from .definitions import DEFINITIONS
from .timeline import RequestRecord

WHEN_WHOLE = {"ttft": "e2el", "ttftscheduled": "e2elscheduled", "ttfr": "e2el", "ttfe": "e2el"}
"""What stands for the time of a first event where a reply came in one piece."""
BETWEEN_TOKENS = ("tpot", "itl")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0}
_LATENCIES = [definition for definition in DEFINITIONS if definition.unit == "s" and definition.name != "FailedTime"]
_BY_NAME = {definition.name.lower(): definition for definition in _LATENCIES}
_BOUND = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|)\Z")

Objectives = Mapping[str, float]
"""Metric name in lower case -> upper bound in seconds."""


def parse_objectives(text: str) -> dict[str, float]:
    """Parse `ttft=500ms,tpot=40ms,e2el=2s`; a bound without a unit is in seconds."""
    objectives: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, bound = part.partition("=")
        key = name.strip().lower()
        if key not in _BY_NAME:
            hint = f"{did_you_mean(key, _BY_NAME)}; known: {', '.join(_BY_NAME)}"
            raise UsageError(f"--slo: no objective {name.strip()!r}{hint}")
        match = _BOUND.match(bound.strip()) if equals else None
        if not match or float(match.group(1)) <= 0:
            raise UsageError(f"--slo: {part!r} is not NAME=TIME above zero, as in ttft=500ms")
        objectives[key] = float(match.group(1)) * _UNITS[match.group(2)]
    if not objectives:
        raise UsageError("--slo names no objective; write for example --slo ttft=500ms,tpot=40ms")
    return objectives


def is_good(record: RequestRecord, objectives: Objectives) -> bool:
    """Tell whether a request met every objective; a failed one never does.

    Of a reply that came whole nothing was seen before its end, and nobody knows the time between its tokens.
    """
    if not record.ok:
        return False
    return all(_meets(record, name, bound) for name, bound in objectives.items())


def _meets(record: RequestRecord, name: str, bound: float) -> bool:
    if name in BETWEEN_TOKENS and not record.streamed:
        return record.output_tokens == 1
    instead = WHEN_WHOLE.get(name) if not record.streamed else None
    return all(value <= bound for value in _BY_NAME[instead or name].values(record))
