"""How much is in flight and how fast it leaves: slots that grow slowly and are cut on 429, bytes, and a rate."""

from __future__ import annotations

import asyncio
from collections import deque

from ..core.clock import Clock

SLOW_START = 8
CUT = 0.8
GROWTH = 1.05
SATURATION = 0.8
"""Slots grow only while this share of them is used: what was never tried says nothing about the server."""
COOL_DOWN_S = 5.0
"""After a cut the limit rests so long: the refusals still in flight must not count as new ones."""


class Limiter:
    """Admits requests while slots and bytes allow; one 429 pauses and slows the whole pool."""

    def __init__(self, max_slots: int, max_bytes: int, clock: Clock, *, adaptive: bool = True) -> None:
        self._max_slots = max_slots
        self._max_bytes = max_bytes
        self._clock = clock
        self._slots = float(min(SLOW_START, max_slots)) if adaptive else float(max_slots)
        self._starting = adaptive
        self._active = 0
        self._bytes = 0
        self._clean = 0
        self._peak = 0
        self._resting_until = 0.0
        self._paused_until = 0.0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._held: asyncio.Event | None = None
        """Set while somebody has told the run to pause."""

    @property
    def slots(self) -> int:
        """Return how many requests may be in flight now."""
        return int(self._slots)

    @property
    def paused_until(self) -> float:
        """Return when the pool may send again, on the clock's monotonic scale."""
        return self._paused_until

    async def acquire(self, size_bytes: int) -> None:
        """Wait for a slot and for room; one request larger than the whole budget may go alone."""
        if self._held is not None:
            await self._held.wait()
        if not self._waiting and self._fits(size_bytes):
            self._take(size_bytes)
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((turn, size_bytes))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.release(size_bytes, saturated=False)
                raise
        if not self._paused_until and self._held is None:  # no server ever asked for one, and nobody else
            return
        try:
            await self.wait_for_pause()
        except asyncio.CancelledError:
            self.release(size_bytes, saturated=False)
            raise

    async def wait_for_pause(self) -> None:
        """Sleep until the pool may send: the time a server asked for with Retry-After, or as long as it is paused."""
        if self._held is not None:
            await self._held.wait()
        while (left := self._paused_until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)

    def release(self, size_bytes: int, *, saturated: bool = True) -> None:
        """Give a slot back and let the next ones in."""
        self._active -= 1
        self._bytes -= size_bytes
        if saturated:
            self._grow()
        self._admit()

    def throttle(self, retry_after_s: float | None) -> None:
        """A server said it is too much: pause the pool as long as asked and cut the slots once."""
        now = self._clock.monotonic()
        if retry_after_s:
            self._paused_until = max(self._paused_until, now + retry_after_s)
        if now < self._resting_until:
            return
        self._starting = False
        self._clean = 0
        self._slots = max(1.0, min(self._slots, float(self._active or 1)) * CUT)
        self._resting_until = now + max(COOL_DOWN_S, retry_after_s or 0.0)

    @property
    def paused(self) -> bool:
        """Tell whether somebody has told it to pause."""
        return self._held is not None

    @property
    def active(self) -> int:
        """Return how many requests are in flight."""
        return self._active

    def pause(self) -> None:
        """Let nothing more leave until `resume`; what is in flight comes back."""
        self._held = self._held or asyncio.Event()

    def resume(self) -> None:
        """Go on."""
        if self._held is not None:
            self._held.set()
            self._held = None

    def set_slots(self, slots: int) -> None:
        """Allow so many requests in flight, from now on."""
        self._max_slots, self._slots, self._starting = slots, float(slots), False
        self._admit()

    def _grow(self) -> None:
        if self._slots >= self._max_slots:
            return
        self._clean += 1
        if self._clean < int(self._slots) or self._clock.monotonic() < self._resting_until:
            return
        saturated = self._peak >= SATURATION * int(self._slots)
        self._clean, self._peak = 0, self._active
        if not saturated:
            return
        grown = self._slots * 2 if self._starting else max(self._slots * GROWTH, self._slots + 1)
        self._slots = min(float(self._max_slots), grown)

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][1]):
            turn, size_bytes = self._waiting.popleft()
            if not turn.done():
                self._take(size_bytes)
                turn.set_result(None)

    def _fits(self, size_bytes: int) -> bool:
        room = self._active == 0 or self._bytes + size_bytes <= self._max_bytes
        return self._active < int(self._slots) and room

    def _take(self, size_bytes: int) -> None:
        self._active += 1
        self._peak = max(self._peak, self._active)
        self._bytes += size_bytes


class RateLimit:
    """Gives every request, retries too, a moment of its own: evenly spaced, and nothing is caught up after a rest."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._gap_s = 1.0 / per_second
        self._clock = clock
        self._next = clock.monotonic()

    @property
    def per_second(self) -> float:
        """Return how many requests leave a second."""
        return 1.0 / self._gap_s

    def set(self, per_second: float) -> None:
        """Send so many a second from now on."""
        self._gap_s = 1.0 / per_second

    async def turn(self) -> None:
        """Wait until one more request may leave."""
        now = self._clock.monotonic()
        moment = max(now, self._next)  # taken before waiting: that a sleep is late does not slow those behind it
        self._next = moment + self._gap_s
        if moment > now:
            await self._clock.sleep(moment - now)
