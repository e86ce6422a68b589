"""`--bank`: stop asking when the score of the whole benchmark, helped by a bank, is known narrowly enough."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...api.plan import Plan
from ...api.settings import RunSettings
from ...core.errors import UsageError, not_among
from ...core.jobs import Item
from ...core.protocols import Scorer
from ...core.variants import PICTURE, variants_beside
from ...engine.limits import NO_OPTIONS, PrefixLimit, Seen
from ...stats.bank_estimate import (
    FEWEST_ASKED,
    FEWEST_OF_A_TAG,
    LOOK_EVERY,
    CrossFit,
    cross_fit,
    repetition_error,
    whole_estimate,
)
from ...stats.item_bank import Predictor, fit_predictor
from ...store.bank_file import Bank, arm_of, item_of, read_bank, relatives

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
