"""Scored trials as they pass to the tables, tokens and costs of a task: coded some at a time, none is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from ...core.tasks import Task
from ...core.types import Prediction, Sample, Score
from ...model.served.prices import Bill, Prices
from ...store.reader import RunReader, Trial
from .table import SOURCES, Costs, SampleFacts, ScoreTable, TrialColumns, costs_of, spent_on
from .table_builder import PartColumns, ScoreRow, TableBuilder, TrialRow

PRICES = "prices"
"""Where run.db keeps the prices."""


def stored_prices(reader: RunReader) -> Prices | None:
    """Return the prices a run was last asked at, if they were known."""
    kept = reader.meta(PRICES)
    return None if kept is None else msgspec.convert(kept, Prices)


def describe_bill(bill: Bill, right: float | None) -> dict[str, Any]:
    """Return the cost of one task as results.json has it."""
    worth, unpriced = bill.worth, bill.unpriced + bill.spared_unpriced
    return {
        "value": worth,
        "currency": bill.prices.currency,
        "per_right_answer": worth / right if right and not unpriced else None,
        "right_answers": right,
        "replies": bill.replies,
        "unpriced": unpriced,
        "cached_tokens": sum(tokens.cached for tokens in (bill.billed, bill.spared, bill.batched, bill.spared_batched)),
    }


def sum_costs(tasks: Mapping[str, Mapping[str, Any]], bills: Sequence[Bill]) -> dict[str, Any] | None:
    """Return the cost of all tasks together, what was paid of it, and the prices; None where there are none.

    What was paid is of the run alone: the figures of a task are the same whether replies came from the cache.
    """
    if not bills:
        return None
    prices = bills[0].prices
    found = [task["cost"] for task in tasks.values()]
    sums = {name: sum(cost[name] for cost in found) for name in ("value", "replies", "unpriced", "cached_tokens")}
    rights = [cost["right_answers"] for cost in found]
    right = None if None in rights else sum(rights)
    share = sums["value"] / right if right and not sums["unpriced"] else None
    told: dict[str, Any] = {"paid": sum(bill.paid for bill in bills), "currency": prices.currency}
    told |= {"right_answers": right, "per_right_answer": share}
    return sums | told | {"prices": msgspec.to_builtins(prices)}


def sum_extractors(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what the models that found answers cost together; it is in no other sum, as it buys no reply."""
    found = [(task.get("protocol") or {}).get("extractor", {}).get("cost") for task in tasks.values()]
    costs = [cost for cost in found if cost]
    if not costs:
        return None
    sums = {name: sum(cost[name] for cost in costs) for name in ("value", "paid", "replies", "unpriced")}
    return sums | {"currency": costs[0]["currency"]}


Scored = tuple[Trial, Sequence[Score]]
"""A stored trial and its scores; a failed one has none."""
TOKENS = ("input_tokens", "output_tokens", "reasoning_tokens")
ROWS_AT_ONCE = 4_000
"""Rows that are coded together: what a numpy call costs is shared by many."""
USAGE = (*TOKENS, "requests")
OptionPositions = tuple[int, int, tuple[str, ...]]
"""The place of the option that was read, that of the right one, and the marks before all that were shown."""


class GatheredPart(NamedTuple):
    """What some of a task's trials add up to, as columns: it may come from another process."""

    columns: PartColumns
    usage: dict[str, int]
    metrics: tuple[str, ...]
    bill: Bill | None
    facts: list[SampleFacts]
    costs: list[tuple[float, int, int]]
    positions: Counter[tuple[str, OptionPositions]]
    confidences: set[str]


class GatheredTask:
    """What a task's trials add up to; `for_pages` also keeps what pages show of them."""

    def __init__(self, task: Task, *, for_pages: bool = False, bill: Bill | None = None) -> None:
        self.task = task
        self.usage = dict.fromkeys(USAGE, 0)
        self.metrics: tuple[str, ...] = ()
        """Those of the first scored trial: the main one first."""
        self.bill = bill
        self._for_pages = for_pages
        self._builder = TableBuilder()
        self._trials: list[TrialRow] = []
        self._scores: list[ScoreRow] = []
        self._tables: dict[str, ScoreTable] = {}
        self._facts: dict[str, SampleFacts] = {}
        self._costs: list[tuple[float, int, int]] = []
        self._positions: Counter[tuple[str, OptionPositions]] = Counter()
        """How often options stood so, by the metric that read them."""
        self.confidences: set[str] = set()
        """Which of `SOURCES` scores hold."""

    def add(self, batch: Sequence[Scored]) -> None:
        """Take trials with their scores."""
        samples = {trial.sample.id: trial.sample for trial, _ in batch}
        self._builder.name_samples(samples)
        self._builder.add_samples([(name, sample.group, sample.tags) for name, sample in samples.items()])
        self._trials += [_trial_row(trial) for trial, _ in batch]
        self._count([trial.prediction for trial, _ in batch])
        self.metrics = self.metrics or _first_metrics(batch)
        if self._for_pages:
            self._keep_for_pages(batch, samples.values())
        self.add_scores([score for _, scores in batch for score in scores])

    def part(self) -> GatheredPart:
        """Return all that was gathered as a part of a task; nothing may be added any more."""
        self._encode()
        facts, packed = list(self._facts.values()), self._builder.packed()
        beside = self._costs, self._positions, self.confidences
        return GatheredPart(packed, self.usage, self.metrics, self.bill, facts, *beside)

    def absorb(self, part: GatheredPart) -> None:
        """Take a part, whose samples are in no other; parts come in the order of the plan."""
        self._encode()
        self._builder.absorb(part.columns)
        for name in USAGE:
            self.usage[name] += part.usage[name]
        self.metrics = self.metrics or part.metrics
        if self.bill is not None and part.bill is not None:
            self.bill.include(part.bill)
        self._facts |= {facts.id: facts for facts in part.facts}
        self._costs += part.costs
        self._positions.update(part.positions)
        self.confidences |= part.confidences

    def _keep_for_pages(self, batch: Sequence[Scored], samples: Iterable[Sample]) -> None:
        for sample in samples:
            facts = SampleFacts(sample.id, sample.question, sample.group, sample.answers, sample.tags)
            self._facts.setdefault(sample.id, facts)
        self._costs += [spent_on(trial.prediction) for trial, _ in batch]
        self._positions.update(_option_positions(batch))

    def _count(self, predictions: Sequence[Prediction]) -> None:
        """Add up the tokens, and what they cost."""
        known = [one.usage for one in predictions if one.usage is not None]
        for name in TOKENS:
            self.usage[name] += sum([getattr(usage, name) or 0 for usage in known])
        self.usage["requests"] += len(predictions)
        if self.bill is not None:
            for prediction in predictions:
                self.bill.add(prediction)

    def add_scores(self, scores: Sequence[Score]) -> None:
        """Take more scores of trials."""
        self.confidences |= SOURCES.keys() & set[str]().union(*[score.detail for score in scores if score.detail])
        self._scores += [score_row(score) for score in scores]
        if len(self._scores) + len(self._trials) > ROWS_AT_ONCE:
            self._encode()

    def _encode(self) -> None:
        self._builder.add_scores(self._scores)
        self._builder.add_trials(self._trials)
        self._scores, self._trials = [], []

    def tables(self) -> dict[str, ScoreTable]:
        """Return one table a metric, after the last trial; where nothing was scored, one of accuracy that says so."""
        if not self._tables:
            self._encode()
            self._tables = self._builder.tables() or self._builder.tables(("accuracy",))
            del self._builder  # the tables live until the report is written; what they were made of need not
        return self._tables

    def tables_so_far(self) -> dict[str, ScoreTable]:
        """Return one table a metric of the trials up to now; more may follow."""
        self._encode()
        return self._builder.tables()

    def columns(self) -> TrialColumns:
        """Return the trials under their main metric, as `read_columns` would read them."""
        tables = self.tables()
        table = tables[self.metrics[0]] if self.metrics else replace(next(iter(tables.values())), metric="")
        return TrialColumns.of(table, self.task, self.metrics, list(self._facts.values()))

    def costs(self) -> Costs:
        """Return what the trials took, in the order of the columns: that of the plan, in which trials pass."""
        return costs_of(self._costs)

    def positions(self) -> Mapping[OptionPositions, int]:
        """Return how often options stood so, of the trials scored under the main metric."""
        return {
            positions: count for (metric, positions), count in self._positions.items() if metric in self.metrics[:1]
        }


def _option_positions(batch: Iterable[Scored]) -> Iterator[tuple[str, OptionPositions]]:
    """Yield where the option read and the right one stood, of trials that were shown both and have one right one."""
    for (sample, request, _, _), scores in batch:
        shown, answers = request.shown, sample.answers
        if len(answers) != 1 or answers[0] not in shown:
            continue
        for score in scores:
            if score.value is not None and score.answer in shown:
                yield score.metric, (shown.index(score.answer), shown.index(answers[0]), request.marks)


def _trial_row(trial: Trial) -> TrialRow:
    key, failure = trial.prediction.key, trial.prediction.failure
    return key.sample, key.variant, key.repeat, failure.kind.value if failure else None, trial.row


def score_row(score: Score) -> ScoreRow:
    """Return a score as a row of a table."""
    key = score.key
    return key.sample, key.variant, key.repeat, score.metric, score.value, score.answer, score.rule, score.reason


def _first_metrics(batch: Sequence[Scored]) -> tuple[str, ...]:
    answered = ((trial, scores) for trial, scores in batch if trial.prediction.failure is None)
    return next((tuple(score.metric for score in scores) for _, scores in answered if scores), ())
