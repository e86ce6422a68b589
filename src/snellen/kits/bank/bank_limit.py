"""`--bank`: stop asking when the score of the whole benchmark, helped by a bank, is known narrowly enough; and, for
`snellen plan`, how many questions that will take: measured on the bank's own models, held out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ...api.plan import Plan
from ...api.settings import RunSettings
from ...core.errors import UsageError, not_among
from ...core.jobs import Item
from ...core.protocols import Scorer
from ...core.variants import PICTURE, variants_beside
from ...engine.limits import NO_OPTIONS, PrefixLimit, Seen
from ...store.reader import RunReader
from .bank_estimate import (
    FEWEST_ASKED,
    FEWEST_OF_A_TAG,
    LOOK_EVERY,
    CrossFit,
    cross_fit,
    estimates,
    repetition_error,
    whole_estimate,
)
from .bank_file import Bank, arm_of, item_of, read_bank, relatives
from .betting import RICH, Wagers, prepare
from .item_bank import Array, Predictor, fit_predictor

MOST_TAG_VALUES = 50
FEWEST_BUDGET = 10


class BankLimit(PrefixLimit):
    """Estimates the whole from the prefix that was asked: every 25 questions, or once a budget is used up.

    A call that failed for good counts as not right, as an answer that was not read does: leaving it out would make the
    prefix no random sample. The run ends when ± `points` is reached or `budget` questions were taken.
    """

    def __init__(
        self,
        bank: Bank,
        without: tuple[str, ...],
        scorer: Scorer,
        trials_per_sample: int,
        options: Mapping[str, Any] = NO_OPTIONS,
        *,
        points: float | None = None,
        budget: int | None = None,
    ) -> None:
        super().__init__(scorer, trials_per_sample, options)
        self._bank, self._without = bank, without
        self._points, self._budget = points, budget
        self._items: list[Item] = []
        self._place: dict[int, int] = {}
        self._predictor: Predictor | None = None
        self._outside = self._changed = 0
        self._index: list[int] = []
        self._units: list[int] = []
        self._values: list[float] = []
        self._spreads: list[float] = []
        self._unread: list[float] = []
        """The share of a question's trials that were not read, or failed: what it might be worth beyond its value."""
        self._failed = 0

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Fit the bank to the items of the task, and draw their order."""
        self._items = sorted(items)
        self._place = {item.position: place for place, item in enumerate(self._items)}
        columns, self._changed = self._bank.columns_of([item_of(item.sample) for item in self._items])
        self._outside = int((columns < 0).sum())
        if self._outside == len(items):
            raise UsageError(
                f"none of the {len(items):,} questions is in the bank of {self._bank.meta.get('task')!r}"
                f"{f' ({self._changed:,} have another content)' if self._changed else ''}: name that benchmark's bank"
            )
        results = self._bank.results(self._without)
        self._predictor = fit_predictor(results).for_items(columns)
        return super().shuffle(items, seed)

    def take(self, rank: int, questions: list[tuple[int, list[Seen]]]) -> None:
        """Add a group, and look at the width now and then."""
        before = len(self._index)
        for position, trials in questions:
            values = [0.0 if seen.value is None else seen.value for seen in trials]
            if not 0.0 <= min(values) <= max(values) <= 1.0:
                raise UsageError(
                    f"--bank needs values from 0 to 1, and {self._metric} gave {max(values):g}: leave it out"
                )
            self._index.append(self._place[position])
            self._units.append(rank)
            self._values.append(sum(values) / len(values))
            self._unread.append(sum(seen.unread or seen.failed for seen in trials) / len(trials))
            self._failed += sum(seen.failed for seen in trials)
            if len(values) > 1:
                self._spreads.append(float(np.var(values, ddof=1)))
        asked = len(self._index)
        looks = asked // LOOK_EVERY > before // LOOK_EVERY and asked >= FEWEST_ASKED
        if self._budget is not None and asked >= self._budget:
            self.stopped = True
        elif looks and self._points is not None:
            self.stopped = whole_estimate(self._fit(), len(self._items)).half_width <= self._points / 100.0

    def _fit(self, values: list[float] | None = None) -> CrossFit:
        asked = np.array([values or self._values])
        return cross_fit(self._predictor, np.array([self._index]), asked, np.array([self._units]))

    def summary(self) -> dict[str, Any]:
        """Return the estimate of the whole and what it rests on."""
        if len(self._index) < 2:
            return {"points": self._points, "stopped": self.stopped, "questions": len(self._index), "whole": None}
        fit, items = self._fit(), len(self._items)
        found = whole_estimate(fit, items)
        highest = [value + unread for value, unread in zip(self._values, self._unread, strict=True)]
        read = whole_estimate(self._fit(highest), items).value if any(self._unread) else found.value
        whole = msgspec.to_builtins(found) | {
            "bank": {key: self._bank.meta.get(key) for key in ("task", "metric", "created", "file")},
            "models": len(self._bank.models) - len(self._without_known()),
            "left_out_of_the_bank": self._without_known(),
            "outside_the_bank": self._outside,
            "of_another_content": self._changed,
            "failed": self._failed,
            "bounds": [min(found.value, read), max(found.value, read)],
            "repetition_error": repetition_error(np.array(self._spreads), self._trials, items),
            "tags": self._tags(fit),
        }
        interval = found.interval or (found.value, found.value)
        shown = {"questions": len(self._index), "interval": list(interval), "metric": self._metric, "whole": whole}
        return {"points": self._points, "budget": self._budget, "stopped": self.stopped, **shown}

    def _without_known(self) -> list[str]:
        return [model.name for model in self._bank.models if model.name in self._without]

    def _tags(self, fit: CrossFit) -> dict[str, dict[str, Any]]:
        """Return the estimate of every tag with enough questions; of the others how few were asked."""
        found: dict[str, dict[str, Any]] = {}
        keys = {key for item in self._items for key in item.sample.tags}
        for key in sorted(keys):
            values = [str(item.sample.tags.get(key)) for item in self._items]
            distinct = sorted(set(values))
            if not 2 <= len(distinct) <= MOST_TAG_VALUES:
                continue
            named = np.array(values)
            asked = named[self._index]
            found[key] = {
                value: msgspec.to_builtins(whole_estimate(fit, len(self._items), named == value))
                if (asked == value).sum() >= FEWEST_OF_A_TAG
                else {"asked": int((asked == value).sum()), "too_few": True}
                for value in distinct
            }
        return found


def bank_limit(plan: Plan, settings: RunSettings, path: Path, scorer: Scorer) -> BankLimit:
    """Return the limit that estimates the whole with a bank; the model under test is left out of it."""
    task = plan.tasks[0].task
    if settings.until_ci is None and settings.budget is None:
        raise UsageError("--bank saves questions: say how many to ask (--budget 200) or how exactly (--until-ci 3)")
    if settings.budget is not None and settings.budget < FEWEST_BUDGET:
        raise UsageError(f"--budget {settings.budget} is too few to say anything: at least {FEWEST_BUDGET}")
    if len(set(task.variants) - variants_beside(task.variants)) > 1:
        raise UsageError(f"--bank knows questions as they are, and task {task.name!r} has variants: leave one out")
    bank = read_bank(path)
    if arm_of(bank) != PICTURE:
        raise UsageError(f"{path} is of arm {arm_of(bank)}, and a score is of the question as it is: name that bank")
    bank.meta["file"] = path.name
    unknown = set(settings.bank_without) - {model.name for model in bank.models}
    if unknown:
        raise UsageError(f"--bank-without {not_among(min(unknown), [model.name for model in bank.models])} of {path}")
    without = (*settings.bank_without, *relatives(plan.model.name, bank))
    if len(bank.models) - len(set(without)) < 2:
        raise UsageError(f"{path} has no other models than {', '.join(without)}: a bank is of others")
    return BankLimit(
        bank, without, scorer, task.repeats, task.score_options, points=settings.until_ci, budget=settings.budget
    )


TRIALS = 40
GATES = 200
CHURN = (0.01, 0.03)
"""Shares of questions that change either way in a copy of the same model: quantised, on another engine."""


class WidthPlan(Struct, frozen=True):
    """Questions for an interval of ± `points`, with the bank and without, for models like the bank's strongest."""

    points: float
    questions: int
    random: int
    items: int

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"±{self.points:g} points: about {self.questions:,} of {self.items:,} questions with the bank, "
            f"{self.random:,} without (the bank's strongest quarter, held out)"
        )


class GatePlan(Struct, frozen=True):
    """Questions until a gate of this margin is settled, for a candidate that is the same but for churn."""

    margin: float
    churn: float
    median: int
    most: int
    """Nine of ten gates need at most so many."""
    items: int
    loss: float = 0.0
    """Points that the candidate lost: then the gate says `worse`."""

    def line(self) -> str:
        """Say it in one line."""
        told = f"margin {self.margin:g}, {100 * self.churn:g} % of answers change each way"
        if self.loss:
            told = f"a loss of {self.loss:g} points, and {100 * self.churn:g} % of answers change each way"
        word, most = ("worse" if self.loss else "same"), f"nine of ten by {self.most:,}"
        return f"{told}: {word} after about {self.median:,} of {self.items:,} questions ({most})"


def plan_width(bank: Bank, points: float, seed: int = 0) -> WidthPlan:
    """Hold out the strongest quarter and find where its intervals become narrow enough, looking every 25 questions."""
    draw = np.random.default_rng(seed)
    values = bank.values
    order = np.argsort(np.nanmean(values, axis=1), kind="stable")
    quarter = max(1, len(order) // 4)
    predictor = fit_predictor(values[order[:-quarter]])
    held = np.nan_to_num(values[order[-quarter:]])[np.arange(TRIALS) % quarter]
    index = np.argsort(draw.random(held.shape), axis=1)
    items = held.shape[1]
    found = {True: items, False: items}
    for asked in range(FEWEST_ASKED, items, LOOK_EVERY):
        part = index[:, :asked]
        fit = cross_fit(predictor, part, np.take_along_axis(held, part, 1))
        made = estimates(fit, items)
        for plain in (True, False):
            ends = [made.interval(row, plain=plain) or (0.0, 0.0) for row in range(TRIALS)]
            width = float(np.median([high - low for low, high in ends])) / 2
            if width <= points / 100.0:
                found[plain] = min(found[plain], asked)
        if max(found.values()) < items:
            break
    return WidthPlan(points, found[False], found[True], items)


def plan_gate(
    bank: Bank, margin: float, base: Path | None = None, *, loss: float = 0.0, seed: int = 0
) -> list[GatePlan]:
    """Simulate gates on a base (its model in the bank, else the bank's median model) whose copies differ by churn.

    With a `loss` in points the copies lost so many more than they gained, and the gate has to say `worse`.
    """
    values = np.nan_to_num(bank.values)
    at = int(np.argsort(values.mean(axis=1))[len(values) // 2])
    if base is not None:
        with RunReader(base) as reader:
            name = reader.header().model
        own = relatives(name, bank)
        if not own:
            raise UsageError(f"{name} of {base} is not in the bank: add that run to it with `snellen bank build`")
        at = next(place for place, model in enumerate(bank.models) if model.name == own[0])
    prepared = prepare(values[at], np.delete(values, at, 0))
    draw, items = np.random.default_rng(seed), values.shape[1]
    found = []
    for churn in CHURN:
        count = max(1, round(churn * items))
        change = _changes(values[at], (count + round(loss / 100 * items), count), prepared.score, draw)
        wagers = Wagers(prepared, margin / 100, np.array([0.0 if loss else -margin / 100]), GATES)
        asked = _race(prepared.score, wagers, change, draw)
        found.append(GatePlan(margin, churn, int(np.median(asked)), int(np.quantile(asked, 0.9)), items, loss))
    return found


def _changes(base: Array, counts: tuple[int, int], score: Array, draw: np.random.Generator) -> Array:
    key = draw.exponential(size=(GATES, base.size)) / score**2
    change = np.zeros((GATES, base.size))
    for count, side, sign in ((counts[0], base >= 0.5, -1.0), (counts[1], base < 0.5, 1.0)):
        number = min(count, int(side.sum()))
        at = np.argsort(np.where(side, key, np.inf), axis=1)[:, :number]
        np.put_along_axis(change, at, sign, 1)
    return change


def _race(score: Array, wagers: Wagers, change: Array, draw: np.random.Generator) -> Array:
    """Return after how many questions each gate was settled, on either side of its one delta; all where it was not."""
    order = np.argsort(draw.exponential(size=change.shape) / score, axis=1)
    asked, rows = np.full(len(change), float(change.shape[1])), np.arange(len(change))
    for step in range(change.shape[1] - 1):
        wagers.add(order[:, step], change[rows, order[:, step]])
        rich = np.maximum(wagers.wealth_above[:, 0], wagers.wealth_below[:, 0]) >= RICH
        won = rich & (asked == change.shape[1])
        asked[won] = step + 1
        if (asked < change.shape[1]).all():
            break
    return asked


def plan_with_bank(
    path: Path, *, until_ci: float | None, gate: float | None, gap: float | None, against: Path | None
) -> list[str]:
    """Return the lines of `snellen plan --bank`: a width, a gate, or a gap found with the bank's help."""
    bank = read_bank(path)
    lines = []
    if until_ci is not None:
        lines.append(plan_width(bank, until_ci).line())
    if gap is not None and against is not None:  # the base is known: only the candidate is asked, paired
        lines += [one.line() for one in plan_gate(bank, gap, against, loss=gap)]
    elif gap is not None:  # two models, each estimated: the interval of a difference is about √2 as wide as one's own
        lines.append(f"a gap of {gap:g} points between two models: {plan_width(bank, round(gap / 2**0.5, 2)).line()}")
    if gate is not None:
        lines += [one.line() for one in plan_gate(bank, gate, against)]
    if not lines:
        raise UsageError("--bank plans for --until-ci POINTS, --gate MARGIN or --gap POINTS: name one")
    return lines
