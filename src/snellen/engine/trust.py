"""Replies of a cache to replies that may be used: a few of its prompts are asked again before the others are believed.

What a server says of itself is part of a cache's key; many say nothing, and go on under the same name with another
model. So the first replies that the cache has are asked again, and compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..core.text import plural
from ..core.types import Prediction, Request

SHORT = 40
"""Characters of a reply that is a letter, a number or a few words: those of one model are mostly the same."""
Ask = Callable[[], Awaitable[Prediction]]
CLOSE = 0.05
"""Log-likelihoods of one model differ by less, however its server gathers requests."""


class CacheTrust:
    """Whether the replies of a cache are those of who is asked now. One a command, for all its passes."""

    def __init__(self, count: int, say: Callable[[str], None]) -> None:
        self._left = count
        self._count = count
        self._running = 0
        self._say = say
        self._doubts = 0
        self._drawn_otherwise = 0
        self._changed = asyncio.Event()
        self.refused = ""
        """Why the cache is not used; empty where it is."""

    async def settle(self, request: Request, cached: Prediction, ask: Ask) -> Prediction | None:
        """Return the stored reply where it is believed, the new one where it was asked again, or None: ask.

        While the first few are asked the others wait; one that fails says nothing, and another takes its place.
        """
        while self._left > 0 and not self.refused:
            if self._running < self._left:
                return await self._check(request, cached, ask)
            self._changed.clear()
            await self._changed.wait()
        return None if self.refused else cached

    async def _check(self, request: Request, cached: Prediction, ask: Ask) -> Prediction:
        self._running += 1
        try:
            fresh = await ask()
        finally:
            self._running -= 1
            self._changed.set()
        if fresh.failure is None and not self.refused:
            self._left -= 1
            why = difference(request, cached, fresh)
            self._doubts += _is_doubtful(cached, fresh)
            self._drawn_otherwise += (cached.text or "").strip() != (fresh.text or "").strip()
            if not why and self._doubts == self._count:
                why = f"{plural(self._doubts, 'short reply')} of {self._doubts} were others"
            if why:
                self.refused = why
                self._say(f"the cache is not used: one of its prompts was asked again, and {why}")
            elif self._left == 0:
                self._say(f"the cache is used: {plural(self._count, 'prompt')} of it asked again, and {self._agreed()}")
        return fresh

    def _agreed(self) -> str:
        """Say what agrees: drawn replies that are others show nothing, so another model may have given them."""
        if not self._drawn_otherwise:
            return "all agree"
        other = f"{self._drawn_otherwise:,} of them answered otherwise, as drawn replies may"
        return f"{other}; --no-cache if the model may have changed"


def _is_doubtful(cached: Prediction, fresh: Prediction) -> bool:
    """Tell whether a short reply came out otherwise: once by chance, but not always."""
    then, now = cached.text or "", fresh.text or ""
    return then.strip() != now.strip() and max(len(then), len(now)) <= SHORT


def difference(request: Request, cached: Prediction, fresh: Prediction) -> str:
    """Say why two replies to one prompt cannot be of one model; nothing where they may be.

    At temperature 0 (and of likelihoods) replies are compared. Drawn replies differ anyway: there it is compared who
    says he made them, and how many tokens the prompt had.
    """
    for name, what in (("model", "model"), ("fingerprint", "fingerprint")):
        then, now = cached.detail.get(name), fresh.detail.get(name)
        if then != now and (name == "model" or request.params.temperature != 0):
            return f"the stored reply is of {what} {then!r}, the new one of {now!r}"
    if cached.usage is not None and fresh.usage is not None:
        counts = cached.usage.input_tokens, fresh.usage.input_tokens
        if None not in counts and counts[0] != counts[1]:
            return f"the server counted {counts[0]:,} tokens of it then, and {counts[1]:,} now"
    if request.choices:
        pairs = zip(cached.loglikelihoods or (), fresh.loglikelihoods or (), strict=False)
        return "its likelihoods differ" if any(abs(one - other) > CLOSE for one, other in pairs) else ""
    if request.params.temperature == 0 and (cached.text or "") != (fresh.text or ""):
        return "the reply at temperature 0 is another"
    return ""
