"""What an exam may still ask: a round leaves only while it, and all that is out, fit into what was allowed."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ...core.jobs import Item
from ...core.types import Prediction, Request
from ...engine.state import RunState
from ...model.providers.prices import Bill, Prices, money

NO_COUNT = "the server counts no tokens, so a budget in {unit} cannot be kept; give --budget as a number of requests"


class Allowed(NamedTuple):
    """At most so many new requests, tokens, or so much money; None is no limit."""

    requests: int | None = None
    tokens: int | None = None
    euro: float | None = None
    prices: Prices | None = None


class ExamBudget:
    """Lets rounds go or holds them back. What is stored or cached costs nothing.

    A reply that is out counts as the dearest of its test so far (of all, before its first); the first round of all goes
    out before the price of a reply is known.
    """

    def __init__(self, allowed: Allowed, state: RunState, stopped: Callable[[], str]) -> None:
        self.allowed, self._state, self._stopped = allowed, state, stopped
        self._resumed = 0
        self._out: Counter[str] = Counter()
        self.requests = self.tokens = 0
        self._bill = Bill(allowed.prices or Prices())
        self._uncounted = False
        self._dearest: dict[str, float] = {}
        self._changed = asyncio.Event()

    async def admit(self, task: str, trials: int) -> str:
        """Wait until a round of so many new trials fits and return nothing, or return why it never will."""
        while True:
            why = self._stopped() or self._why_not(task, trials)
            if not why:
                self._out[task] += trials
                return ""
            if self._stopped() or not self._out.total():
                return why
            self._changed.clear()
            await self._changed.wait()

    def observe(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Hear of one trial that has its prediction, new or from the store."""
        stored, self._resumed = self._state.resumed > self._resumed, self._state.resumed
        if stored:
            return
        self._out[request.key.task] -= 1
        if not prediction.cached:
            self._count(request.key.task, prediction)
        self._changed.set()

    def _count(self, task: str, prediction: Prediction) -> None:
        usage = prediction.usage
        used = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0
        self.requests += 1
        self.tokens += used
        paid = self._bill.add(prediction) or 0.0
        self._uncounted |= prediction.failure is None and not used
        cost = paid if self.allowed.euro is not None else float(used)
        self._dearest[task] = max(self._dearest.get(task, 0.0), cost)

    def _why_not(self, task: str, trials: int) -> str:
        most = self.allowed
        if most.requests is not None and self.requests + self._out.total() + trials > most.requests:
            asked = f"{self.requests:,} asked, the next round has {trials}"
            return f"the budget of {most.requests:,} requests ended: {asked}"
        if most.tokens is not None and not self._fits(self.tokens, most.tokens, task, trials):
            used = f"{self.tokens:,} used"
            return self._spent_words(f"{most.tokens:,} tokens", used, "tokens", passed=self.tokens > most.tokens)
        if most.euro is not None and not self._fits(self._bill.paid, most.euro, task, trials):
            paid = f"{money(self._bill.paid)} paid"
            return self._spent_words(f"{most.euro:g} in money", paid, "money", passed=self._bill.paid > most.euro)
        return ""

    def _spent_words(self, limit: str, used: str, unit: str, *, passed: bool) -> str:
        if self._uncounted:
            return NO_COUNT.format(unit=unit)
        if passed:  # by the first round, whose price nobody knew, or by one that was dearer than all before
            return (
                f"the budget of {limit} was passed: {used} for {self.requests:,} requests, of a price not known before"
            )
        return f"the budget of {limit} ended: {used} for {self.requests:,} requests, the next round might pass it"

    def _fits(self, spent: float, limit: float, task: str, trials: int) -> bool:
        if self._uncounted:
            return False
        if not self._dearest:
            return not self._out.total()  # one round tells what a reply costs; the others wait for it
        usual = max(self._dearest.values())
        out = math.fsum(count * self._dearest.get(name, usual) for name, count in self._out.items())
        return spent + out + trials * self._dearest.get(task, usual) <= limit
