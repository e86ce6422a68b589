"""The trials of one task as numpy columns, with what one metric says of each: what aggregates and pages read."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.counting import is_unread as is_unread  # noqa: PLC0414 - as pages and aggregates know them
from ...core.counting import lower_is_better as lower_is_better  # noqa: PLC0414
from ...core.counting import worst_value as worst_value  # noqa: PLC0414
from ...core.tasks import Task
from ...core.types import MOST_TOKENS, Prediction, Sample, Score, TrialKey
from ...stats.intervals import Floats

if TYPE_CHECKING:
    from ...model.served.prices import Prices
    from ...store.reader import RunReader

Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
UNKNOWN = -2
"""The code of a text that no trial has; -1 is none."""
STATED, LIKELIHOOD = "stated", "confidence"
"""Where the detail of a score keeps a confidence: what the reply says, and what the likelihoods of options give."""
SOURCES = {STATED: "stated", LIKELIHOOD: "likelihood"}


class Outcome(IntEnum):
    """What became of a trial. The first three were read; what was not read counts as not right; the rest is outside."""

    RIGHT = 0
    PARTLY = 1
    """A value between the best and the worst: some lines of a chart, some words of a page."""
    WRONG = 2
    UNREAD = 3
    """There is a reply, and no answer could be read from it."""
    FAILED = 4
    PENDING = 5
    """There is a reply, and no score of this metric yet."""
    UNJUDGED = 6
    """There is a reply, and no right answer to hold it against, or nobody who could."""


def grade(values: Floats, metric: str) -> NDArray[np.int8]:
    """Return the outcome of every value of a metric; NaN is unread."""
    good = 1.0 - values if lower_is_better(metric) else values
    outcomes = np.full(values.size, Outcome.PARTLY, np.int8)  # filled in place: a million trials are many megabytes
    outcomes[good >= 1.0] = Outcome.RIGHT
    outcomes[good <= 0.0] = Outcome.WRONG
    outcomes[np.isnan(values)] = Outcome.UNREAD
    return outcomes


@dataclass(frozen=True)
class ScoreTable:
    """The trials of one task under one metric, in order of sample, variant, repeat.

    Columns are parallel. A code is the place of a text in its sorted book; -1 means none. The tables of a task share
    the books and, as a rule, the columns that do not depend on the metric.
    """

    metric: str
    sample: Codes
    variant: Codes
    repeat: Codes
    value: Floats
    """Of a trial that was not read the worst; 0 where it is outside: look at `outcome`."""
    outcome: NDArray[np.int8]
    answer: Codes
    rule: Codes
    reason: Codes
    """Why it was not read or judged, or the kind of failure."""
    row: NDArray[np.int64]
    """The trial's row in the store; empty where the trials are not from a store."""
    samples: Sequence[str]
    variants: Sequence[str]
    answers: Sequence[str]
    rules: Sequence[str]
    reasons: Sequence[str]
    cluster_of_sample: Codes
    """Which chain, document or dialogue a sample belongs to; its own cluster where it belongs to none."""
    tags: Mapping[str, tuple[Codes, Sequence[str]]] = field(default_factory=dict)
    """Per tag: a code for each sample, and the values as text."""
    groups: tuple[Codes, Sequence[str]] | None = None
    """A code of its group for each sample, and the groups; None where no sample has one."""

    def __len__(self) -> int:
        return int(self.sample.size)

    @cached_property
    def read(self) -> Mask:
        """Return which trials have a value of their own."""
        return np.asarray(self.outcome <= Outcome.WRONG)

    @cached_property
    def unread(self) -> Mask:
        """Return which trials have a reply that no answer could be read from."""
        return np.asarray(self.outcome == Outcome.UNREAD)

    @cached_property
    def scored(self) -> Mask:
        """Return which trials count in figures: all with a reply that can be judged; what was not read is not right."""
        last = Outcome.WRONG if worst_value(self.metric) is None else Outcome.UNREAD
        return np.asarray(self.outcome <= last)

    @cached_property
    def strict_value(self) -> Floats:
        """Return every trial's value; one that does not count has the worst: 0, and of an error the whole, 1."""
        return np.where(self.scored, self.value, 1.0 if lower_is_better(self.metric) else 0.0)

    @cached_property
    def unscored(self) -> Mask:
        """Return which trials have a reply and do not count."""
        return np.asarray(~self.scored & ~self.failed)

    @cached_property
    def failed(self) -> Mask:
        """Return which trials have no reply."""
        return np.asarray(self.outcome == Outcome.FAILED)

    @cached_property
    def cluster(self) -> Codes:
        """Return the cluster of every trial."""
        return self.cluster_of_sample[self.sample] if len(self) else self.sample

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return how many trials count, have a reply that does not, and failed; they add up to what was planned."""
        scored, unscored, failed = (int(np.count_nonzero(part)) for part in (self.scored, self.unscored, self.failed))
        return scored, unscored, failed

    @property
    def is_repeated(self) -> bool:
        """Return whether some prompt was sampled more than once."""
        return bool(len(self)) and bool(np.any((np.diff(self.sample) == 0) & (np.diff(self.variant) == 0)))

    @property
    def is_varied(self) -> bool:
        """Return whether there is more than one variant."""
        return bool(len(self)) and bool(np.any(self.variant != self.variant[0]))

    @property
    def asks_again(self) -> bool:
        """Return whether a question was asked more than once, with the same prompt or another."""
        return self.is_repeated or self.is_varied

    @cached_property
    def only_read(self) -> ScoreTable:
        """Return the table in which replies that were not read do not count."""
        return self._with(self.unread, Outcome.UNJUDGED) if self.unread.any() else self

    def as_if(self, *, right: bool) -> ScoreTable:
        """Return the table in which all that was not read, or failed, was right, or was wrong."""
        of_errors = lower_is_better(self.metric)
        best, worst = (0.0, 1.0) if of_errors else (1.0, 0.0)
        kind = Outcome.RIGHT if right else Outcome.WRONG
        return self._with(self.unread | self.failed, kind, best if right else worst)

    @cached_property
    def has_bounds(self) -> bool:
        """Tell whether it is known what a right and a wrong trial are worth: of shares."""
        values = self.value[self.read]
        best = float(values.min(initial=0.0)) >= 0.0 and (
            lower_is_better(self.metric) or float(values.max(initial=0.0)) <= 1.0
        )
        return best and worst_value(self.metric) is not None

    def _with(self, rows: Mask, kind: Outcome, value: float = 0.0) -> ScoreTable:
        """Return the table with some trials having become of another kind and worth."""
        return replace(
            self, outcome=np.where(rows, np.int8(kind), self.outcome), value=np.where(rows, value, self.value)
        )

    def take(self, rows: NDArray[Any]) -> ScoreTable:
        """Return the chosen trials (a mask, or row numbers) as a table with the same code books."""
        return replace(self, **self._taken(rows))

    def _taken(self, rows: NDArray[Any]) -> dict[str, Any]:
        columns = {name: getattr(self, name)[rows] for name in ROW_COLUMNS}
        return columns | ({"row": self.row[rows]} if self.row.size else {})


ROW_COLUMNS = ("sample", "variant", "repeat", "value", "outcome", "answer", "rule", "reason")


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """What an aggregate may look at: the tables of every metric, and the scores themselves."""

    task: Task
    tables: Mapping[str, ScoreTable]
    scores: Callable[[], Iterator[tuple[Sample, Score]]]
    samples: Callable[[], Iterator[Sample]] = lambda: iter(())
    """The stored samples, those whose trials all failed included."""
    confidences: Collection[str] = tuple(SOURCES)
    """Which of `SOURCES` the details of scores may hold: what none holds need not be looked for in all of them."""
    reader: RunReader | None = None
    """The run they are of; None where they are of none, as rows of a file."""
    prices: Prices | None = None
    """What its tokens cost, where that is known."""

    @property
    def main(self) -> ScoreTable | None:
        """Return the table of accuracy, or of the first metric."""
        return self.tables.get("accuracy", next(iter(self.tables.values()), None))


class SampleFacts(Struct, frozen=True):
    """The part of a sample that tables show; the rest is skipped, not decoded."""

    id: str
    question: str = ""
    group: str | None = None
    answers: tuple[str, ...] = ()
    tags: dict[str, Any] = {}


class Costs(Struct, frozen=True):
    """What the trials took, parallel to the columns; NaN and 0 where it is not known."""

    latency_s: Floats
    """Of replies that did not come from the cache."""
    tokens: NDArray[np.int64]
    """Of the reply."""
    input_tokens: NDArray[np.int64]
    """Of what was asked, pictures and frames included."""


NOTHING_KNOWN = (math.nan, 0, 0)
"""What a reply took of which nothing is known."""


def spent_on(prediction: Prediction) -> tuple[float, int, int]:
    """Return the seconds, tokens and input tokens of one prediction; NaN and 0 where they are not known."""
    timing, usage = prediction.timing, prediction.usage
    latency_s = np.nan if timing is None or prediction.cached else timing.done - timing.sent
    tokens = ((usage.output_tokens or 0), (usage.input_tokens or 0)) if usage else (0, 0)
    if max(tokens) >= MOST_TOKENS:  # a server's nonsense, stored by a version that believed it
        tokens = (tokens[0] if tokens[0] < MOST_TOKENS else 0, tokens[1] if tokens[1] < MOST_TOKENS else 0)
    return latency_s, *tokens


def costs_of(rows: Sequence[tuple[float, int, int]]) -> Costs:
    """Return what trials took as columns."""
    latency, tokens, asked = zip(*rows, strict=True) if rows else ((), (), ())
    return Costs(np.array(latency, np.float64), np.array(tokens, np.int64), np.array(asked, np.int64))


class TrialFilter(Protocol):
    """What else trials can be chosen by, beside tags, groups and variants."""

    def values(self, table: ScoreTable) -> set[str]:
        """Return every value that some trial has."""
        ...

    def rows(self, table: ScoreTable, value: str) -> Mask:
        """Return the trials that have a value."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrialColumns(ScoreTable):
    """A table of stored trials in the order of the plan, with what pages show beside the numbers."""

    task: Task
    metrics: tuple[str, ...]
    """The metrics stored for the task, the main one first."""
    facts: Sequence[SampleFacts]
    """Parallel to `samples`."""
    filters: Mapping[str, TrialFilter] = field(default_factory=dict)
    """What trials can be chosen by beside their tags, by name: what a kit knows of them."""

    @classmethod
    def of(cls, table: ScoreTable, task: Task, metrics: Sequence[str], facts: Sequence[SampleFacts]) -> TrialColumns:
        """Put a table into the order of the plan, which is that of the `facts`."""
        known = {sample.id: place for place, sample in enumerate(facts)}
        places = np.array([known.get(name, len(known)) for name in table.samples], np.int64)
        ordered = np.argsort(places[table.sample], kind="stable")  # a table is in order of variant and repeat already
        shown = [facts[known[name]] if name in known else SampleFacts(name) for name in table.samples]
        fields = {name: getattr(table, name) for name in table.__dataclass_fields__} | table._taken(ordered)
        return cls(**fields, task=task, metrics=tuple(metrics), facts=shown)

    @cached_property
    def by_sample(self) -> ScoreTable:
        """Return the same trials in the order that aggregates read, in which no figure hangs on the plan."""
        return self.take(np.lexsort((self.repeat, self.variant, self.sample)))

    @cached_property
    def flipped(self) -> Mask:
        """Return the trials whose sample has some right and some wrong ones."""
        right, wrong = (
            np.bincount(self.sample[chosen], minlength=len(self.samples)) > 0
            for chosen in (
                self.outcome == Outcome.RIGHT,
                (self.outcome == Outcome.WRONG) | (self.outcome == Outcome.PARTLY),
            )
        )
        return np.asarray((right & wrong)[self.sample], dtype=np.bool_)

    def key(self, row: int) -> TrialKey:
        """Return the key of a row."""
        variant, sample = self.variants[int(self.variant[row])], self.samples[int(self.sample[row])]
        return TrialKey(self.task.name, sample, variant, int(self.repeat[row]))

    def text(self, column: str, row: int) -> str | None:
        """Return the answer, rule or reason of a row."""
        code = int(getattr(self, column)[row])
        return getattr(self, f"{column}s")[code] if code >= 0 else None

    def rows_with(self, column: str, text: str) -> Mask:
        """Return which rows have a text in a coded column."""
        return np.asarray(getattr(self, column) == code_of(getattr(self, f"{column}s"), text), dtype=np.bool_)


def code_of(book: Sequence[str], text: str) -> int:
    """Return the code of a text in a sorted book, or UNKNOWN."""
    place = bisect_left(book, text)
    return place if place < len(book) and book[place] == text else UNKNOWN
