"""A server's capacity as small counters: concurrency, rates per minute, service slots."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(slots=True)
class Bucket:
    """A quota per minute that refills steadily; None means no limit."""

    per_minute: float | None
    level: float = 0.0
    updated: float | None = None

    def take(self, amount: float, now: float) -> float:
        """Take `amount` and return 0, or take nothing and return the seconds until it would fit."""
        if self.per_minute is None:
            return 0.0
        refilled = math.inf if self.updated is None else (now - self.updated) * self.per_minute / 60.0
        self.level = min(self.per_minute, self.level + refilled)
        self.updated = now
        if self.level >= min(amount, self.per_minute):
            self.level -= amount
            return 0.0
        return (min(amount, self.per_minute) - self.level) * 60.0 / self.per_minute

    @property
    def left(self) -> int:
        """Return how much of the quota is left, as of the last request."""
        return max(0, int(self.level))


class Limits:
    """What the server takes on at once; all limits may change while it runs."""

    def __init__(self, max_concurrency: int | None, slots: int | None, tokens: Bucket, requests: Bucket) -> None:
        self.max_concurrency = max_concurrency
        self.tokens = tokens
        self.requests = requests
        self.running = 0
        self.peak = 0
        self._slots = asyncio.Semaphore(slots) if slots else None

    def refuse(self, tokens: float, now: float) -> float | None:
        """Return None to admit a request, or the seconds after which the client may try again."""
        if self.max_concurrency is not None and self.running >= self.max_concurrency:
            return 1.0
        wait_s = self.requests.take(1.0, now) or self.tokens.take(tokens, now)
        return wait_s or None

    def headers(self, *, anthropic: bool) -> dict[str, str]:
        """Return how the quotas stand, as providers say it with every reply; nothing where there are none."""
        told: dict[str, str] = {}
        for what, bucket in (("requests", self.requests), ("tokens", self.tokens)):
            if bucket.per_minute is None:
                continue
            wait_s = (bucket.per_minute - bucket.left) * 60.0 / bucket.per_minute
            facts = {"limit": f"{bucket.per_minute:.0f}", "remaining": str(bucket.left)}
            if anthropic:
                moment = datetime.fromtimestamp(time.time() + wait_s, UTC).isoformat(timespec="seconds")
                facts["reset"] = moment.replace("+00:00", "Z")
                told |= {f"anthropic-ratelimit-{what}-{name}": value for name, value in facts.items()}
            else:
                facts["reset"] = f"{wait_s:.3f}s"
                told |= {f"x-ratelimit-{name}-{what}": value for name, value in facts.items()}
        return told

    async def __aenter__(self) -> Limits:
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            if self._slots is not None:
                await self._slots.acquire()
        except asyncio.CancelledError:
            self.running -= 1
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.running -= 1
        if self._slots is not None:
            self._slots.release()
