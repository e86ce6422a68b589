"""What one command may use, and what it has used: requests, tokens, money, errors, time, an interval narrow enough."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

from ..core.errors import EnvironmentProblem, SnellenError, UsageError
from ..core.types import Prediction
from ..model.served.prices import Bill, Prices, money
from .interval import PrefixLimit

SHARE_AFTER = 100
"""A share of errors counts only after so many trials: one bad start is no verdict."""
TOKENS, MONEY = "tokens", "money"
UNKNOWN = {
    TOKENS: ("the server counts no tokens", "--budget"),
    MONEY: ("the server counts no tokens, or a request is longer than its price holds for", "--max-cost"),
}
"""Why nobody knows what a reply used, and the flag without which the command goes on."""


class LimitReached(SnellenError):
    """Nothing more may leave; what is out comes back in its own time, and everything is kept."""


class Limits:
    """The limits of one command; None is no limit. What is stored or cached costs nothing.

    Every attempt is paid for before it leaves (`pay`), so a limit of requests is kept exactly. A limit of tokens or
    money is kept by reserving: what is out counts as the dearest reply of its task so far (of all, before its first).
    Before any reply the first reservation goes alone, to tell what a reply uses, unless `expected` money says so.
    A job that must be asked whole reserves all its requests at once; the engine then takes them from there.
    """

    def __init__(
        self,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        prices: Prices | None = None,
        expected: float = 0.0,
        errors: str | None = None,
        ends: float | None = None,
        interval: PrefixLimit | None = None,
    ) -> None:
        self.requests, self.tokens, self.money = requests, tokens, money
        self.prices, self.ends, self.interval = prices, ends, interval
        self._most_errors, self._error_share = parse_errors(errors) if errors else (None, None)
        self._expected = expected
        self.sent = self.used_tokens = 0
        """Requests that left, each attempt counted, and the tokens of their replies."""
        self.bill = Bill(prices or Prices())
        self.reached = ""
        """Why something was held back; empty while nothing was."""
        self.closed = ""
        """Why nothing more is asked, whatever the limits leave: somebody stopped it, or the time is over."""
        self.overdue = False
        self._uncounted = False
        self._out: Counter[str] = Counter()
        self._granted: Counter[str] = Counter()
        self._dearest: dict[str, dict[str, float]] = {TOKENS: {}, MONEY: {}}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def spent(self) -> float:
        """Return what the replies cost so far."""
        return self.bill.paid

    @property
    def are_reserved(self) -> bool:
        """Tell whether each request must be reserved: tokens and money are known only when it is back."""
        return self.tokens is not None or self.money is not None

    def pay(self) -> None:
        """Pay for one attempt that is about to leave, or refuse it."""
        if self.requests is not None and self.sent >= self.requests:
            raise self._held(f"the budget of {self.requests:,} requests ended: {self.sent:,} asked")
        self.sent += 1

    async def reserve(self, task: str, count: int = 1) -> None:
        """Wait until so many requests of a task fit together; raise LimitReached where they never will."""
        while why := self._why_not(task, count):
            if self.closed:
                raise LimitReached(why)
            if not self._out.total():
                raise self._held(why)
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._out[task] += count

    def release(self, task: str, count: int = 1) -> None:
        """So many requests are back, whatever came of them."""
        self._out[task] -= count
        self._wake()

    async def begin(self, task: str) -> None:
        """Reserve one request, or take it from those that its job has reserved; each has its `release`."""
        if self._granted[task]:
            self._granted[task] -= 1
        else:
            await self.reserve(task)

    async def reserve_round(self, task: str, count: int) -> None:
        """Reserve requests that are asked whole or not at all; `end_round` gives back what none was sent for."""
        await self.reserve(task, count)
        self._granted[task] += count

    def end_round(self, task: str) -> None:
        """Give back what a round reserved and did not use: replies from the cache, pictures that could not be read."""
        self.release(task, self._granted.pop(task, 0))

    def check_batch(self, waiting: int, share: float) -> None:
        """Refuse one more request to a batch where so many wait, each at a share of the price."""
        if self.money is None:
            return
        dearest = max(self._expected, *self._dearest[MONEY].values(), 0.0)
        if self.spent + (waiting + 1) * dearest * share > self.money:
            raise self._held(f"{waiting} requests wait in batches, and one more might pass the limit")

    def count(self, prediction: Prediction) -> None:
        """Count one reply that was asked for."""
        usage = prediction.usage
        used = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage is not None else 0
        self.used_tokens += used
        self._uncounted |= prediction.failure is None and not used
        paid = self.bill.add(prediction)
        if usage is None or not self.are_reserved:
            return
        for unit, cost in ((TOKENS, float(used)), (MONEY, paid or 0.0)):
            dearest, task = self._dearest[unit], prediction.key.task
            dearest[task] = max(dearest.get(task, 0.0), cost)

    def has_too_many_errors(self, failed: int, done: int) -> bool:
        """Tell whether so many failed trials of those that are done end the run."""
        if self._most_errors is not None and failed > self._most_errors:
            return True
        return self._error_share is not None and done >= SHARE_AFTER and failed > self._error_share * done

    def close(self, why: str) -> None:
        """Let nothing more be reserved; whoever waits hears why."""
        self.closed = self.closed or why
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def _held(self, why: str) -> LimitReached:
        self.reached = self.reached or why
        return LimitReached(why)

    def _why_not(self, task: str, count: int) -> str:
        """Return why so many more do not fit now; raise where nobody can tell."""
        if self.closed:
            return self.closed
        if self.requests is not None and self.sent + self._out.total() + count > self.requests:
            return f"the budget of {self.requests:,} requests ended: {self.sent:,} asked, the next round has {count}"
        if self.tokens is not None and not self._fits(TOKENS, self.used_tokens, self.tokens, task, count):
            used = f"{self.used_tokens:,} used"
            return self._why_spent(f"{self.tokens:,} tokens", used, passed=self.used_tokens > self.tokens)
        if self.money is not None and not self._fits(MONEY, self.spent, self.money, task, count):
            paid = f"{money(self.spent)} paid"
            return self._why_spent(f"{self.money:g} in money", paid, passed=self.spent > self.money)
        return ""

    def _why_spent(self, limit: str, used: str, *, passed: bool) -> str:
        if passed:  # by the first, whose price nobody knew, or by one that was dearer than all before
            return f"the budget of {limit} was passed: {used} for {self.sent:,} requests, of a price not known before"
        return f"the budget of {limit} ended: {used} for {self.sent:,} requests, the next might pass it"

    def _fits(self, unit: str, used: float, limit: float, task: str, count: int) -> bool:
        self._check_known(unit)
        expected, dearest = self._expected if unit == MONEY else 0.0, self._dearest[unit]
        if not dearest and not expected:
            return not self._out.total()
        usual = max(dearest.values(), default=expected)

        def each(name: str) -> float:
            return max(expected, dearest.get(name, usual))

        out = math.fsum(number * each(name) for name, number in self._out.items())
        return used + out + count * each(task) <= limit

    def _check_known(self, unit: str) -> None:
        """Refuse to go on under a limit where nobody knows what was used."""
        if self._uncounted if unit == TOKENS else self.bill.unpriced:
            why, flag = UNKNOWN[unit]
            kept = f"everything is kept, and the same command without {flag} continues"
            raise EnvironmentProblem(f"stopped: a limit in {unit} cannot be kept, as {why}; {kept}")


def parse_errors(text: str) -> tuple[int | None, float | None]:
    """Read how many failed trials end a run: `20`, or `5%` of those that are done; return the count or the share."""
    try:
        count, share = (None, float(text[:-1]) / 100) if text.endswith("%") else (int(text), None)
    except ValueError:
        raise UsageError(f"--max-errors {text!r} is neither a number nor a percentage") from None
    if not 0 <= (share if count is None else count) < math.inf:  # type: ignore[operator]
        raise UsageError(f"--max-errors {text!r} is not 0 or more")
    return count, share
