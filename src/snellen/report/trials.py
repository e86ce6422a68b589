"""A stored run to columns of its trials: what tables, galleries and the viewer filter, sort and page through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.builtins import default_registry
from ..core.types import FailureKind, RunHeader, Task
from ..score.run import score_trials
from ..store.reader import RunReader

LOWER_IS_BETTER = ("wer", "cer", "edit_distance", "word_error", "error")
LIVE_SCORING = 20_000
"""A run that was never scored is scored while it is read, up to so many trials."""


class Outcome(IntEnum):
    """What became of a trial, as shown: always with a sign and a word."""

    RIGHT = 0
    PARTLY = 1
    """A value between the best and the worst: some lines of a chart, some words of a page."""
    WRONG = 2
    UNSCORED = 3
    FAILED = 4
    PENDING = 5
    """Stored, and not scored yet."""


SIGNS = {Outcome.RIGHT: "✓", Outcome.PARTLY: "◐", Outcome.WRONG: "✗", Outcome.UNSCORED: "?", Outcome.FAILED: "!", Outcome.PENDING: "…"}


class Names:
    """A growing code book: text in, small number out."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, name: str | None) -> int:
        """Return the code of a text; -1 for none."""
        if name is None:
            return -1
        found = self._codes.get(name)
        if found is None:
            found = self._codes[name] = len(self.texts)
            self.texts.append(name)
        return found

    def find(self, name: str) -> int:
        """Return the code of a known text, or -2."""
        return self._codes.get(name, -2)

    def at(self, code: int) -> str | None:
        """Return the text of a code, None for -1."""
        return self.texts[code] if code >= 0 else None


class SampleFacts(Struct, frozen=True):
    """The part of a sample that tables show; the rest is skipped, not decoded."""

    id: str
    question: str = ""
    group: str | None = None
    answers: tuple[str, ...] = ()
    tags: dict[str, Any] = {}


class _FailureFacts(Struct):
    kind: FailureKind
    message: str = ""


class _UsageFacts(Struct):
    output_tokens: int | None = None


class _TimingFacts(Struct):
    sent: float
    done: float


class _PredictionFacts(Struct):
    failure: _FailureFacts | None = None
    usage: _UsageFacts | None = None
    timing: _TimingFacts | None = None
    finish: str | None = None
    cached: bool = False


class _ScoreRow(NamedTuple):
    value: float | None
    answer: str | None
    rule: str | None
    reason: str | None


class TrialColumns(Struct, frozen=True):
    """All trials of one task; columns are parallel, in the order of the plan. A code of -1 means none."""

    task: Task
    metric: str
    metrics: tuple[str, ...]
    samples: list[SampleFacts]
    sample: NDArray[np.int32]
    variant: NDArray[np.int32]
    repeat: NDArray[np.int32]
    outcome: NDArray[np.int8]
    value: NDArray[np.float64]
    """NaN where there is none."""
    latency_s: NDArray[np.float64]
    tokens: NDArray[np.int64]
    answer: NDArray[np.int32]
    rule: NDArray[np.int32]
    reason: NDArray[np.int32]
    flipped: NDArray[np.bool_]
    """Whether the trials of its sample disagree: some right, some wrong."""
    variants: Names
    answers: Names
    rules: Names
    reasons: Names

    def __len__(self) -> int:
        return int(self.sample.size)

    @property
    def lower_is_better(self) -> bool:
        """Tell whether 0 is the best value of the metric."""
        return self.metric.startswith(LOWER_IS_BETTER)


def read_columns(reader: RunReader, task: Task, metric: str | None = None) -> TrialColumns:
    """Read the columns of one task; `metric` defaults to the first that its first scorer gives."""
    decode_sample, decode = msgspec.json.Decoder(SampleFacts).decode, msgspec.json.Decoder(_PredictionFacts).decode
    samples = [decode_sample(body) for (body,) in reader.rows("SELECT body FROM samples WHERE task = ? ORDER BY position", (task.name,))]
    place = {sample.id: number for number, sample in enumerate(samples)}
    known = metrics_of(reader, task.name)
    scores, chosen = _scores(reader, task, metric if metric in known else next(iter(known), metric))
    books = tuple(Names() for _ in range(4))
    variants, answers, rules, reasons = books
    rows: list[tuple[Any, ...]] = []
    for sample, variant, repeat, body in reader.rows("SELECT sample, variant, repeat, body FROM predictions WHERE task = ?", (task.name,)):
        facts = decode(body)
        score = scores.get((sample, variant, repeat))
        outcome, value = _outcome(facts, score, chosen)
        rule, answer, reason = (score.rule, score.answer, score.reason) if score else (None, None, None)
        reason = facts.failure.kind.value if facts.failure else reason
        codes = (answers.code(answer), rules.code(rule), reasons.code(reason))
        rows.append((place.get(sample, -1), variants.code(variant), repeat, outcome, value, _latency(facts), _tokens(facts), *codes))
    return _assemble(task, chosen or "", tuple(known), samples, rows, books)


def metrics_of(reader: RunReader, task: str) -> list[str]:
    """Return the metrics stored for a task, the main one first."""
    rows = reader.rows("SELECT metric FROM scores WHERE task = ? GROUP BY metric ORDER BY MIN(rowid)", (task,))
    return [row[0] for row in rows]


def _scores(reader: RunReader, task: Task, metric: str | None) -> tuple[dict[tuple[str, str, int], _ScoreRow], str | None]:
    if metric is not None:
        query = "SELECT sample, variant, repeat, value, answer, rule, reason FROM scores WHERE task = ? AND metric = ?"
        rows = reader.rows(query, (task.name, metric))
        return {(sample, variant, repeat): _ScoreRow(*rest) for sample, variant, repeat, *rest in rows}, metric
    found: dict[tuple[str, str, int], _ScoreRow] = {}
    stored = next(reader.rows("SELECT COUNT(*) FROM predictions WHERE task = ?", (task.name,)))[0]
    if stored > LIVE_SCORING:
        return found, None
    for score in score_trials(reader, task, default_registry(), {}, ()):
        metric = metric or score.metric
        if score.metric == metric:
            key = score.key
            found[(key.sample, key.variant, key.repeat)] = _ScoreRow(score.value, score.answer, score.rule, score.reason)
    return found, metric


def _outcome(facts: _PredictionFacts, score: _ScoreRow | None, metric: str | None) -> tuple[int, float]:
    if facts.failure is not None:
        return Outcome.FAILED, np.nan
    if score is None:
        return Outcome.PENDING, np.nan
    if score.value is None:
        return Outcome.UNSCORED, np.nan
    good = 1.0 - score.value if (metric or "").startswith(LOWER_IS_BETTER) else score.value
    return (Outcome.RIGHT if good >= 1.0 else Outcome.WRONG if good <= 0.0 else Outcome.PARTLY), score.value


def _latency(facts: _PredictionFacts) -> float:
    return np.nan if facts.timing is None or facts.cached else facts.timing.done - facts.timing.sent


def _tokens(facts: _PredictionFacts) -> int:
    return (facts.usage.output_tokens or 0) if facts.usage else 0


def _assemble(
    task: Task, metric: str, metrics: tuple[str, ...], samples: list[SampleFacts], rows: list[tuple[Any, ...]], books: Sequence[Names]
) -> TrialColumns:
    kinds = (np.int32, np.int32, np.int32, np.int8, np.float64, np.float64, np.int64, np.int32, np.int32, np.int32)
    columns = [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    if not rows:
        columns = [np.empty(0, kind) for kind in kinds]
    rank = np.argsort(np.argsort(books[0].texts)) if books[0].texts else np.empty(0, np.int64)
    order = np.lexsort((columns[2], rank[columns[1]] if rows else columns[1], columns[0]))
    sample, variant, repeat, outcome, value, latency, tokens, answer, rule, reason = (column[order] for column in columns)
    return TrialColumns(
        task=task, metric=metric, metrics=metrics, samples=samples, sample=sample, variant=variant, repeat=repeat, outcome=outcome,
        value=value, latency_s=latency, tokens=tokens, answer=answer, rule=rule, reason=reason, flipped=_flipped(sample, outcome, len(samples)),
        variants=books[0], answers=books[1], rules=books[2], reasons=books[3],
    )  # fmt: skip


def _flipped(sample: NDArray[np.int32], outcome: NDArray[np.int8], samples: int) -> NDArray[np.bool_]:
    if not sample.size:
        return np.empty(0, np.bool_)
    size = samples + 1
    right = np.bincount(sample[outcome == Outcome.RIGHT] + 1, minlength=size) > 0
    wrong = np.bincount(sample[(outcome == Outcome.WRONG) | (outcome == Outcome.PARTLY)] + 1, minlength=size) > 0
    return np.asarray((right & wrong)[sample + 1], dtype=np.bool_)


def group_values(columns: TrialColumns) -> dict[str, list[str]]:
    """Return the keys one can filter by (tags, group, variant) and their values, sorted; one value is no choice."""
    found: dict[str, set[str]] = {}
    for sample in columns.samples:
        for key, value in sample.tags.items():
            found.setdefault(key, set()).add(str(value))
        if sample.group is not None:
            found.setdefault("group", set()).add(sample.group)
    found["variant"] = set(columns.variants.texts)
    return {key: sorted(values) for key, values in sorted(found.items()) if len(values) > 1}


def tasks_of(header: RunHeader) -> Iterator[Task]:
    """Yield the tasks of a run in their order."""
    yield from header.tasks
