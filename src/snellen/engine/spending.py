"""What a run may still spend: a request leaves only while what is out already, and it, fit into the limit."""

from __future__ import annotations

import asyncio

from ..core.errors import EnvironmentProblem, SnellenError
from ..core.types import Prediction
from ..model.providers.prices import Bill, Prices


class LimitReached(SnellenError):
    """The next request might pass the limit: nothing more is asked, all is kept."""


class Spending:
    """Counts what replies cost and holds requests back before a limit is passed.

    A request that is out counts as the dearest reply so far; `expected` stands for it before the first.
    """

    def __init__(self, prices: Prices, limit: float | None = None, expected: float = 0.0) -> None:
        self.bill = Bill(prices)
        self.limit = limit
        self._dearest = expected
        self._out = 0
        self._changed = asyncio.Event()

    @property
    def spent(self) -> float:
        """Return what the replies cost so far."""
        return self.bill.paid

    async def begin(self) -> None:
        """Wait until one more request fits; raise LimitReached where none will. Each `begin` has its `end`."""
        self._check_known()
        while not self._fits():
            if not self._out:
                raise LimitReached(f"{self.limit:g} is spent, or the next request might pass it")
            self._changed.clear()
            await self._changed.wait()
            self._check_known()
        self._out += 1

    def end(self) -> None:
        """A request is back, whatever came of it."""
        self._out -= 1
        self._changed.set()

    def affords(self, waiting: int, share: float) -> bool:
        """Tell whether one more request may go into a batch where so many wait, each at a share of the price."""
        return self.limit is None or self.spent + (waiting + 1) * self._dearest * share <= self.limit

    def count(self, prediction: Prediction) -> None:
        """Count one reply."""
        self._dearest = max(self._dearest, self.bill.add(prediction) or 0.0)

    def _check_known(self) -> None:
        """Refuse to go on under a limit where nobody knows what was spent."""
        if self.limit is not None and self.bill.unpriced:
            why = "the server counted no tokens, or the request is longer than its price holds for"
            what = f"stopped: --max-cost {self.limit:g} cannot be kept, as the price of a reply is not known ({why})"
            raise EnvironmentProblem(f"{what}; everything is kept, and the same command without --max-cost continues")

    def _fits(self) -> bool:
        return self.limit is None or self.spent + (self._out + 1) * self._dearest <= self.limit
