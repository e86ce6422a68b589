"""How long a server asks us to rest: in five places, by the first that says it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ...core.clock import Clock

RESETS = (
    *(f"x-ratelimit-reset-{what}" for what in ("requests", "tokens")),
    *(f"anthropic-ratelimit-{what}-reset" for what in ("requests", "tokens", "input-tokens", "output-tokens")),
)
CROWDED = (429, 503, 529)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
WORDS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
"""How people write units of time."""
_UNIT = "|".join(sorted(WORDS, key=len, reverse=True))
_PLAIN = r"\d+(?:\.\d+)?"
_PART = re.compile(rf"({_PLAIN})\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_PARTS = rf"(?:{_PLAIN}\s*(?:{_UNIT})(?![a-z])[\s,]*(?:and\s+)?)+"
IN_WORDS = re.compile(rf"(?:try again in|retry after|retry in)\s+({_PARTS}|{_PLAIN})", re.IGNORECASE)
EPOCH_S = 1_000_000_000.0
"""A number of seconds above this is a moment, not a wait; a thousand times as large one in milliseconds."""
LOOKED_AT = 20_000
"""Bytes of a body that are searched."""


def wait_of(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> float | None:
    """Return the seconds a server asks to wait; None where it does not say, or says nothing sensible."""
    waits = _waits(status, headers, body[:LOOKED_AT], clock)
    return next((wait for wait in waits if wait is not None), None)


def _waits(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> Iterator[float | None]:
    named = {name.lower(): value for name, value in headers.items()}
    yield _scaled(named.get("retry-after-ms"), 0.001)
    yield parse_retry_after(headers, clock)
    if status in CROWDED:  # elsewhere these headers only tell how the limits stand
        resets = [wait for name in RESETS if (wait := seconds_until(named.get(name), clock)) is not None]
        yield max(resets, default=None)
    if found := RETRY_DELAY.search(body):
        yield float(found.group(1))
    yield _in_words(body.decode("utf-8", "replace"))


def _in_words(text: str) -> float | None:
    """Return how long `try again in 1 minute and 30 seconds` is; a bare number is seconds."""
    found = IN_WORDS.search(text)
    if found is None:
        return None
    parts = _PART.findall(found.group(1))
    return sum(float(count) * WORDS[unit.lower()] for count, unit in parts) if parts else float(found.group(1))


def parse_retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the seconds to wait that `Retry-After` asks for, given as seconds or as an HTTP date."""
    value = headers.get("Retry-After") or headers.get("retry-after")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - clock.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _scaled(value: str | None, unit: float) -> float | None:
    try:
        seconds = float(value or "nan") * unit
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def seconds_until(value: str | None, clock: Clock) -> float | None:
    """Return the seconds until a limit is reset: `1.5`, `6m0s`, `500ms` or a moment; nothing for 0 and below.

    A moment is written as ISO 8601, or as seconds or milliseconds since 1970.
    """
    if not value:
        return None
    seconds = _scaled(value, 1.0)
    if seconds is not None and seconds > EPOCH_S:
        seconds = (seconds if seconds < 1000 * EPOCH_S else seconds / 1000) - clock.time()
        return seconds if seconds > 0 else None
    if seconds is None and (parts := DURATION.findall(value)) and "".join(map("".join, parts)) == value.strip():
        seconds = sum(float(count) * UNITS[unit] for count, unit in parts)
    if seconds is None:
        try:
            moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - clock.time()
    return seconds if seconds > 0 else None
