"""A stored run in, the tables of one task out; only the few columns they need are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import msgspec

from ..core.builtins import default_registry, parts_of
from ..core.registry import Registry
from ..core.tasks import Task
from ..core.types import Prediction, Score
from ..store.reader import RunReader
from .protocols.readings import Reading, read_in
from .ranges import scored_trials
from .results import chance_of
from .tables.gathered import score_row
from .tables.table import NOTHING_KNOWN, Costs, SampleFacts, ScoreTable, TrialColumns, TrialFilter, costs_of, spent_on
from .tables.table_builder import SampleRow, ScoreRow, read_tables

LIVE_SCORING = 20_000
"""A run that was never scored is scored while it is read, up to so many trials."""
# `+task`: read the table itself. An index holds copies of its columns, and nothing checks those.
_TRIALS = (
    "SELECT sample, variant, repeat, CASE failed WHEN 1 "
    "THEN coalesce(json_extract(CAST(body AS TEXT), '$.failure.kind'), 'failed') END{} "
    "FROM predictions WHERE +task = ?"
)
_SAMPLES = "SELECT body FROM samples WHERE +task = ? ORDER BY position"


def stored_tables(reader: RunReader, task: str, *, tag_keys: Sequence[str] | None = None) -> dict[str, ScoreTable]:
    """Return one table a metric of a stored task."""
    trials = reader.rows(_TRIALS.format(""), (task,))
    return read_tables(_scores(reader, task), trials, _labels(_facts(reader, task)), tag_keys=tag_keys)


def live_tables(
    reader: RunReader, task: Task, reading: Reading, *, tag_keys: Sequence[str] | None = None
) -> tuple[dict[str, ScoreTable], list[Score]]:
    """Return the tables of a task by another reading, and the scores they are made of; computed, not stored."""
    task = read_in(task, reading.protocol, reader.header())
    options = {"chance": chance_of(reader, task), **reading.options()}
    trials = scored_trials(reader, task, default_registry(), options, reading.scorers or task.scorers)
    scores = [score for _, found in trials for score in found]
    stored = reader.rows(_TRIALS.format(""), (task.name,))
    rows = map(score_row, scores)
    return read_tables(rows, stored, _labels(_facts(reader, task.name)), tag_keys=tag_keys), scores


def _scores(reader: RunReader, task: str, metric: str = "") -> Iterator[ScoreRow]:
    """Yield the stored scores of a task, of one metric or of all, in one pass with the check of their sum."""
    for batch in reader.score_rows(task):
        yield from [row[1:9] for row in batch if not metric or row[4] == metric]


def _facts(reader: RunReader, task: str) -> Iterator[SampleFacts]:
    """Yield what is shown of every sample, in the order of the plan."""
    decode = msgspec.json.Decoder(SampleFacts).decode
    return (decode(body) for (body,) in reader.rows(_SAMPLES, (task,)))


def _labels(facts: Iterable[SampleFacts]) -> Iterator[SampleRow]:
    return ((sample.id, sample.group, sample.tags) for sample in facts)


def read_columns(
    reader: RunReader, task: Task, metric: str | None = None, registry: Registry | None = None
) -> TrialColumns:
    """Read the trials of one task under one metric; `metric` defaults to the first that its first scorer gives."""
    known = metrics_of(reader, task.name)
    chosen = metric if metric in known else next(iter(known), "")
    scores: Iterable[ScoreRow]
    if chosen:
        scores = _scores(reader, task.name, chosen)
    else:
        scores = _live_scores(reader, task, registry or default_registry())
        chosen = scores[0][3] if scores else ""
    facts = list(_facts(reader, task.name))
    trials = reader.rows(_TRIALS.format(", rowid"), (task.name,))
    tables = read_tables(scores, trials, _labels(facts), metrics=(chosen,))
    columns = TrialColumns.of(tables[chosen], task, known, facts)
    filters: dict[str, TrialFilter] = {}
    for _, filters_of in parts_of(task, "filters", registry):
        filters |= filters_of(reader, task)
    return replace(columns, filters=filters)


def _live_scores(reader: RunReader, task: Task, registry: Registry) -> list[ScoreRow]:
    """Score a run that never was, in memory, where that is quick: under the metric that comes first."""
    stored = next(reader.rows("SELECT COUNT(*) FROM predictions WHERE task = ?", (task.name,)))[0]
    if stored > LIVE_SCORING:
        return []
    trials = scored_trials(reader, task, registry, {}, task.scorers)
    rows = [score_row(score) for _, scores in trials for score in scores]
    return [row for row in rows if row[3] == rows[0][3]]


def metrics_of(reader: RunReader, task: str) -> list[str]:
    """Return the metrics stored for a task, the main one first: those of its first scored trial that has a reply.

    Where every call failed, those of the first: the number of a protocol's own tool alone.
    """
    query = "SELECT sample, variant, repeat FROM scores{} WHERE +scores.task = ?{} ORDER BY scores.rowid LIMIT 1"
    answered = query.format(" JOIN predictions USING (task, sample, variant, repeat)", " AND failed = 0")
    rows = chain.from_iterable(reader.rows(each, (task,)) for each in (answered, query.format("", "")))
    first = next(rows, None)
    if first is None:
        return []
    query = "SELECT metric FROM scores WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? ORDER BY rowid"
    return [row[0] for row in reader.rows(query, (task, *first))]


def read_costs(reader: RunReader, columns: TrialColumns) -> Costs:
    """Read latency and tokens of every trial."""
    decode = msgspec.json.Decoder(Prediction).decode
    places = {row: place for place, row in enumerate(columns.row.tolist())}
    costs = [NOTHING_KNOWN] * len(columns)
    for row, body in reader.rows("SELECT rowid, body FROM predictions WHERE +task = ?", (columns.task.name,)):
        if row in places:  # else the trial was stored after the columns were read
            costs[places[row]] = spent_on(decode(body))
    return costs_of(costs)
