"""A rate to moments at which requests may leave: evenly spaced, and nothing is caught up after a rest."""

from __future__ import annotations

from ..core.clock import Clock


class Pace:
    """Gives every request, retries too, a moment of its own."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._gap_s = 1.0 / per_second
        self._clock = clock
        self._next = clock.monotonic()

    async def turn(self) -> None:
        """Wait until one more request may leave."""
        now = self._clock.monotonic()
        moment = max(now, self._next)  # taken before waiting: that a sleep is late does not slow those behind it
        self._next = moment + self._gap_s
        if moment > now:
            await self._clock.sleep(moment - now)
