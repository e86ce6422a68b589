"""A stored run to columns of its trials: what tables, galleries and the viewer filter, sort and page through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.builtins import default_registry
from ..core.tasks import Task
from ..scoring.run import scored_trials
from ..store.reader import RunReader

LOWER_IS_BETTER = ("wer", "cer", "edit_distance", "word_error", "error")
_Key = tuple[str, str, int]
TrialRow = tuple[int, str, str, int, str | None]
"""Row in the store, sample, variant, repeat, kind of failure."""
ScoreFacts = tuple[float | None, str | None, str | None, str | None]
"""Value, answer, rule, reason."""
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


SIGNS = {
    Outcome.RIGHT: "✓",
    Outcome.PARTLY: "◐",
    Outcome.WRONG: "✗",
    Outcome.UNSCORED: "?",
    Outcome.FAILED: "!",
    Outcome.PENDING: "…",
}


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

    def codes(self, names: Sequence[str | None]) -> NDArray[np.int32]:
        """Return the codes of a whole column."""
        for name in dict.fromkeys(names):
            self.code(name)
        known: dict[str | None, int] = {None: -1}
        known.update(self._codes)
        return np.fromiter(map(known.__getitem__, names), np.int32, len(names))

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


class _UsageFacts(Struct):
    output_tokens: int | None = None


class _TimingFacts(Struct):
    sent: float
    done: float


class _CostFacts(Struct):
    usage: _UsageFacts | None = None
    timing: _TimingFacts | None = None
    cached: bool = False


class Costs(Struct, frozen=True):
    """What the trials took, parallel to the columns; NaN and 0 where it is not known. Read only when someone asks."""

    latency_s: NDArray[np.float64]
    """Of replies that did not come from the cache."""
    tokens: NDArray[np.int64]


class TaskFacts(NamedTuple):
    """What holds for all trials of a task."""

    task: Task
    metric: str
    metrics: tuple[str, ...]
    samples: list[SampleFacts]


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
    row_id: NDArray[np.int64]
    """The trial's row in the store."""
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
    """Read the columns of one task; `metric` defaults to the first that its first scorer gives.

    Whole columns are coded at once: a hundred thousand trials are read in well under a second.
    """
    decode = msgspec.json.Decoder(SampleFacts).decode
    samples = [
        decode(body)
        for (body,) in reader.rows("SELECT body FROM samples WHERE task = ? ORDER BY position", (task.name,))
    ]
    known = metrics_of(reader, task.name)
    scores, chosen = _scores(reader, task, metric if metric in known else next(iter(known), None))
    rows = list(reader.rows(_TRIALS, (task.name,)))
    found = [scores.get(row[1:4], NO_SCORE) for row in rows]
    return trial_columns(TaskFacts(task, chosen or "", tuple(known), samples), rows, found)


NO_SCORE: ScoreFacts = (None, None, None, None)
_TRIALS = (
    "SELECT rowid, sample, variant, repeat, "
    "CASE failed WHEN 1 THEN COALESCE(json_extract(CAST(body AS TEXT), '$.failure.kind'), 'failed') END FROM predictions WHERE task = ?"
)


def trial_columns(facts: TaskFacts, rows: Sequence[TrialRow], found: Sequence[ScoreFacts]) -> TrialColumns:
    """Return the columns of all trials, in the order of the plan; `found` are their scores, parallel to `rows`."""
    row_id, names, variants, repeats, kinds = zip(*rows, strict=True) if rows else ((),) * 5
    place = {sample.id: number for number, sample in enumerate(facts.samples)}
    book = Names()
    own: dict[str, NDArray[Any]] = {
        "row_id": np.array(row_id, np.int64),
        "sample": np.fromiter((place.get(name, -1) for name in names), np.int32, len(names)),
        "variant": book.codes(variants),
        "repeat": np.array(repeats, np.int32),
    }
    scored, books = _scored_columns(found, kinds, facts.metric)
    return _assemble(facts, own | scored, {"variants": book, **books})


def _scored_columns(
    found: Sequence[ScoreFacts], kinds: Sequence[str | None], metric: str
) -> tuple[dict[str, NDArray[Any]], dict[str, Names]]:
    """Turn scores and kinds of failure into columns and their code books."""
    values, answers, rules, reasons = zip(*found, strict=True) if found else ((), (), (), ())
    books = {"answers": Names(), "rules": Names(), "reasons": Names()}
    why = [kind or reason for kind, reason in zip(kinds, reasons, strict=True)]
    value = np.array(values, np.float64)
    pending = np.array([score is NO_SCORE for score in found], np.bool_)
    columns: dict[str, NDArray[Any]] = {
        "value": value,
        "answer": books["answers"].codes(answers),
        "rule": books["rules"].codes(rules),
        "reason": books["reasons"].codes(why),
        "outcome": _outcomes(value, pending, np.array([kind is not None for kind in kinds], np.bool_), metric),
    }
    return columns, books


def metrics_of(reader: RunReader, task: str) -> list[str]:
    """Return the metrics stored for a task, the main one first: those of its first scored trial."""
    first = next(
        reader.rows("SELECT sample, variant, repeat FROM scores WHERE +task = ? ORDER BY rowid LIMIT 1", (task,)), None
    )
    if first is None:
        return []
    query = "SELECT metric FROM scores WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? ORDER BY rowid"
    return [row[0] for row in reader.rows(query, (task, *first))]


def _scores(reader: RunReader, task: Task, metric: str | None) -> tuple[dict[_Key, ScoreFacts], str | None]:
    if metric is not None:
        query = "SELECT sample, variant, repeat, value, answer, rule, reason FROM scores WHERE task = ? AND metric = ?"
        return {row[:3]: row[3:] for row in reader.rows(query, (task.name, metric))}, metric
    stored = next(reader.rows("SELECT COUNT(*) FROM predictions WHERE task = ?", (task.name,)))[0]
    if stored > LIVE_SCORING:
        return {}, None
    found: dict[_Key, ScoreFacts] = {}
    for _, scores in scored_trials(reader, task, default_registry(), {}, task.scorers):
        for score in scores:
            metric = metric or score.metric
            if score.metric == metric:
                found[(score.key.sample, score.key.variant, score.key.repeat)] = (
                    score.value,
                    score.answer,
                    score.rule,
                    score.reason,
                )
    return found, metric


def _outcomes(
    value: NDArray[np.float64], pending: NDArray[np.bool_], failed: NDArray[np.bool_], metric: str
) -> NDArray[np.int8]:
    good = 1.0 - value if metric.startswith(LOWER_IS_BETTER) else value
    cases = [failed, pending, np.isnan(value), good >= 1.0, good <= 0.0]
    kinds = [Outcome.FAILED, Outcome.PENDING, Outcome.UNSCORED, Outcome.RIGHT, Outcome.WRONG]
    return np.select(cases, [int(kind) for kind in kinds], int(Outcome.PARTLY)).astype(np.int8)


def _assemble(facts: TaskFacts, columns: Mapping[str, Any], books: Mapping[str, Any]) -> TrialColumns:
    texts = books["variants"].texts
    rank = np.argsort(np.argsort(texts)) if texts else np.empty(0, np.int64)
    order = np.lexsort(
        (columns["repeat"], rank[columns["variant"]] if texts else columns["variant"], columns["sample"])
    )
    ordered: dict[str, Any] = {name: column[order] for name, column in columns.items()}
    flipped = _flipped(ordered["sample"], ordered["outcome"], len(facts.samples))
    return TrialColumns(**facts._asdict(), flipped=flipped, **ordered, **books)


def read_costs(reader: RunReader, columns: TrialColumns) -> Costs:
    """Read latency and tokens of every trial."""
    decode = msgspec.json.Decoder(_CostFacts).decode
    row_of = {row: place for place, row in enumerate(columns.row_id.tolist())}
    latency, tokens = np.full(len(columns), np.nan), np.zeros(len(columns), np.int64)
    for row, body in reader.rows("SELECT rowid, body FROM predictions WHERE +task = ?", (columns.task.name,)):
        place, facts = row_of.get(row), decode(body)
        if place is not None:
            latency[place] = np.nan if facts.timing is None or facts.cached else facts.timing.done - facts.timing.sent
            tokens[place] = (facts.usage.output_tokens or 0) if facts.usage else 0
    return Costs(latency, tokens)


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
