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
IN_WORDS = re.compile(rb"(?:try again in|retry after|retry in)\s+(\d+(?:\.\d+)?)\s*(ms|s|m)?", re.IGNORECASE)
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
    if found := IN_WORDS.search(body):
        yield float(found.group(1)) * UNITS[(found.group(2) or b"s").decode().lower()]


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
    """Return the seconds until a limit is reset: `1.5`, `6m0s`, `500ms` or a moment; nothing for 0 and below."""
    if not value:
        return None
    seconds = _scaled(value, 1.0)
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
