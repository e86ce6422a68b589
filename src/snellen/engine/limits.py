"""What one command may use, and what it has used: requests, tokens, money, errors, time, an interval narrow enough."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.counting import worth_of
from ..core.errors import EnvironmentProblem, SnellenError, UsageError
from ..core.ids import rng
from ..core.jobs import Item
from ..core.protocols import Scorer
from ..core.types import Params, Prediction, Request, Sample
from ..model.served.prices import Bill, Prices, money

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class PrefixLimit:
    """Takes questions, or groups of them, in the order of the plan and decides after each whether to stop.

    Taking replies in the order they come would let fast questions go first, and fast ones are often easy ones: what
    comes early waits. What is stored is taken again in the same order, so a run that was killed decides the same.
    """

    def __init__(self, scorer: Scorer, trials_per_sample: int, options: Mapping[str, Any] = NO_OPTIONS) -> None:
        self.stopped = False
        self._scorer = scorer
        self._options = options
        self._trials = trials_per_sample
        self._beside: frozenset[str] = frozenset()
        self._waited_for = trials_per_sample
        self._metric = ""
        self._sizes: list[int] = []
        """The questions of every group, in the order of the plan."""
        self._open: dict[int, dict[int, list[Seen | None]]] = {}
        """By group, and within it by question: what its trials gave, None of those beside the score."""
        self._order: dict[int, int] = {}
        self._next = 0
        self._ready: dict[int, list[tuple[int, list[Seen]]]] = {}

    def leave_beside(self, variants: Collection[str], repeats: int) -> None:
        """Wait for the trials of these variants of every question too, and let no score hear of them: arms."""
        self._beside = frozenset(variants)
        self._waited_for = self._trials + len(self._beside) * repeats

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Put the questions into seeded random order; those of one chain, dialogue or document stay together."""
        groups: dict[tuple[bool, str], list[Item]] = {}
        for item in items:
            alone = item.sample.group is None
            groups.setdefault((alone, item.sample.id if alone else item.sample.group or ""), []).append(item)
        order = self.arrange(list(groups.values()), seed)
        self._sizes = [len(group) for group in order]
        self._order = {item.position: rank for rank, group in enumerate(order) for item in group}
        return [item for group in order for item in group]

    def arrange(self, groups: list[list[Item]], seed: int) -> list[list[Item]]:
        """Return the groups in the order in which they are asked."""
        rng(seed, "until-ci").shuffle(groups)
        return groups

    def observe(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Take one finished trial."""
        rank = self._order[item.position]
        group = self._open.setdefault(rank, {})
        group.setdefault(item.position, []).append(self._seen(item.sample, request, prediction))
        if sum(map(len, group.values())) < self._waited_for * self._sizes[rank]:
            return
        questions = self._open.pop(rank)  # in the order in which they came, which must not matter
        self._ready[rank] = [
            (position, sorted((seen for seen in questions[position] if seen is not None), key=repr))
            for position in sorted(questions)
        ]
        while self._next in self._ready and not self.stopped:
            self._next += 1
            self.take(self._next - 1, self._ready.pop(self._next - 1))

    def take(self, rank: int, questions: list[tuple[int, list[Seen]]]) -> None:
        """Take the next group of the order: (position, what its trials gave) of every question."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        raise NotImplementedError

    def _seen(self, sample: Sample, request: Request, prediction: Prediction) -> Seen | None:
        if request.key.variant in self._beside:
            return None
        if prediction.failure is not None:
            return Seen(None, failed=True)
        score = self._scorer(sample, request, prediction, self._options)[0]
        self._metric = score.metric
        return Seen(worth_of(score), unread=score.value is None)


class Seen(NamedTuple):
    """What one trial gave: its worth, None where it is outside of the figure."""

    value: float | None
    unread: bool = False
    failed: bool = False


class IntervalLimit(PrefixLimit):
    """Feeds one question after another to a confidence sequence, or one group of questions.

    Questions of one group are alike: taken one by one they would narrow the interval as if each were news.
    """

    def __init__(
        self, half_width_points: float, scorer: Scorer, trials_per_sample: int, options: Mapping[str, Any] = NO_OPTIONS
    ) -> None:
        from ..stats.sequential import ConfidenceSequence

        super().__init__(scorer, trials_per_sample, options)
        self.sequence = ConfidenceSequence(half_width=half_width_points / 100)
        self._points = half_width_points
        self._questions = 0

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Do so, and let groups of unequal size count by their size: a confidence sequence needs them exchangeable."""
        from ..stats.sequential import ConfidenceSequence

        order = super().shuffle(items, seed)
        if self._stretch > 1.0:
            self.sequence = ConfidenceSequence(half_width=self._points / 100 / self._stretch)
        return order

    @property
    def _stretch(self) -> float:
        """The largest group in mean ones: each counts by its share of the largest, so that questions weigh alike."""
        return max(self._sizes) * len(self._sizes) / sum(self._sizes) if self._sizes else 1.0

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        low, high = self.sequence.interval
        interval = (low * self._stretch, min(1.0, high * self._stretch))
        shown = {"questions": self._questions, "groups": self.sequence.n, "interval": interval, "metric": self._metric}
        return {"points": self._points, "stopped": self.stopped, **shown}

    def take(self, rank: int, questions: list[tuple[int, list[Seen]]]) -> None:
        """Add the mean of a group, by its share of the largest."""
        means = [mean_of([seen.value for seen in trials]) for _, trials in questions]
        of_group = mean_of(means)
        if of_group is not None:
            self.sequence.add(of_group * self._sizes[rank] / max(self._sizes))
            self._questions += sum(mean is not None for mean in means)
        if self.sequence.is_narrow:
            self.stopped = True


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is known, None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Policy:
    """Workers, retries and timeouts of one run; what it may use altogether is in `Limits`."""

    max_workers: int = 32
    max_bytes_in_flight: int = 256 * 2**20
    max_retries: int = 5
    per_second: float | None = None
    """Requests that may leave in a second, retries counted; None: as fast as slots are free."""
    timeout_s: float | None = 600.0
    """Seconds for one attempt; None: waiting is no fault (a batch model's next turn), whatever a request says."""
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    retry_after_max_s: float = 300.0
    """A server that asks for a longer rest is asked again after so long: a date in 9998 must not hold a run."""
    drain_s: float = 4.0
    adaptive: bool = True

    def backoff_of(self, attempt: int) -> float:
        """Return the seconds to wait after the attempt-th failure (from 0), before jitter."""
        return min(self.backoff_max_s, self.backoff_s * 2.0**attempt)

    def timeout_of(self, params: Params) -> float | None:
        """Return the seconds one attempt may take: the request's own, or the run's."""
        return None if self.timeout_s is None else params.timeout_s or self.timeout_s


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
        paid = self.bill.add(prediction) if self.prices is not None else None
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
