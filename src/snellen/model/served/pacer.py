"""How a server's limits stand, told with every reply, to when the next request may leave: before a 429, not after."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.clock import Clock
from ..providers.waits import seconds_until

KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
NAMES = tuple(
    (f"{head}{tail.format('remaining')}", f"{head}{tail.format('limit')}", f"{head}{tail.format('reset')}", kind)
    for kind in KINDS
    for head, tail in (("x-ratelimit-", f"{{}}-{kind}"), (f"anthropic-ratelimit-{kind}-", "{}"))
)
"""Headers that say what is left of a limit, how large it is and when it is full again."""
SCARCE = 0.2
"""Below this share of a limit requests are spaced evenly over the time until it is full again."""
LONGEST_S = 60.0
"""No request is held back longer: the next reply tells how the limits stand then."""
TOKEN_STEPS = 100.0
"""A limit of tokens is taken to be used up in so many requests: what one takes is not known before."""


class Pacer:
    """Spaces requests while a limit is scarce; a server that tells nothing costs a few looks a reply."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = 0.0
        self._spacing_s = 0.0
        self.waited_s = 0.0
        """How long requests were held back, in all."""

    @property
    def must_wait(self) -> bool:
        """Tell whether requests have to wait for their turn."""
        return self._spacing_s > 0.0

    def note(self, headers: Mapping[str, str]) -> None:
        """Read how the limits stand."""
        spacing_s = 0.0
        for left, limit, reset, kind in NAMES:
            if left in headers:
                told = headers.get(left, ""), headers.get(limit, ""), headers.get(reset, "")
                spacing_s = max(spacing_s, self._space(*told, kind=kind))
        self._spacing_s = min(spacing_s, LONGEST_S)

    def _space(self, left: str, limit: str, reset: str, *, kind: str) -> float:
        reset_s = seconds_until(reset, self._clock) or 0.0
        try:
            share, whole = float(left) / float(limit), float(left)
        except (ValueError, ZeroDivisionError):
            return 0.0
        if not 0 <= share < SCARCE:
            return 0.0
        steps = whole if kind == "requests" else share * TOKEN_STEPS
        return reset_s / max(1.0, steps)

    async def turn(self) -> None:
        """Wait until the next request may leave; each takes a place of its own."""
        now = self._clock.monotonic()
        self._next = max(self._next, now) + self._spacing_s
        wait_s = min(self._next - now, LONGEST_S)
        self.waited_s += wait_s
        await self._clock.sleep(wait_s)
