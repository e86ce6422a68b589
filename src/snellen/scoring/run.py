"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np

from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..core.text import plural, shorten_quote
from ..core.types import Sample, Score
from ..model.served.prices import Bill, Prices
from ..store.reader import RunReader, score_of_row, write_score_rows
from .aggregates.counted import counted_tables
from .aggregates.headline import PEER
from .protocols.readings import OWN, Reading, card_note, judge_folders, read_in
from .ranges import (
    BATCH,
    Executor,
    RangeSpec,
    ScoredRange,
    pack_scores,
    read_rows_of_scores,
    score_elsewhere,
    score_here,
)
from .results import chance_of, frame_results, summarize_task
from .tables.gathered import USAGE, GatheredTask, describe_bill, stored_prices, sum_costs, sum_extractors
from .tables.table import ScoredTask, ScoreTable

TOLD_FROM = 0.05
"""The share of the replies from which on a number says in its next line that they were not read."""
QUOTED = 3
NEXT_STEPS = (
    (("trunc", "the reply was cut"), "most were cut off: raise --max-tokens and ask again"),
    (("empty", "no answer text"), "most are empty: look at the model's template, stop words and --max-tokens"),
    (("refus",), "most are refusals: see what the model refuses before comparing it"),
)
"""How the commonest reason begins -> what to do about it."""
READ_THEM = (
    "read a few; if they do hold an answer let a model read them "
    "(`snellen score RUN --judge NAME --judge-model MODEL`), else ask for its form in the prompt"
)
EXTRACT_THEM = "let a model read them, as the protocol's own tool does: `snellen score RUN --extractor MODEL`"
_REPLY = "SELECT body FROM predictions WHERE rowid = ?"


class _Reply(msgspec.Struct):
    text: str | None = None


def add_unread(
    result: dict[str, Any], task: Task, tables: Mapping[str, ScoreTable], reader: RunReader
) -> dict[str, Any]:
    """Add to a task's results what was not read of its headline, where that is more than a few replies."""
    table = table_of_headline(task, tables)
    if table is None:
        return result
    found = describe_unread(table, _quotes(table, reader), EXTRACT_THEM if lacks_extractor(result) else READ_THEM)
    return result if found is None else result | {"unread": found, "notes": [found["why"], *result.get("notes", ())]}


def table_of_headline(task: Task, tables: Mapping[str, ScoreTable]) -> ScoreTable | None:
    """Return the table that the headline of a task is made of; without one that is known, that of most unread."""
    own = {name: table for name, table in tables.items() if not name.endswith(PEER) and len(table)}
    metric = next((figure.metric for figure in task.figures if figure.name == task.headline), task.headline)
    if metric in own:
        return own[metric]
    return max(own.values(), key=lambda table: int(np.count_nonzero(table.unread)), default=None)


def lacks_extractor(result: Mapping[str, Any]) -> bool:
    """Tell whether the protocol's own tool asks a model that nobody asked here."""
    slot = (result.get("protocol") or {}).get("extractor") or {}
    return bool(slot) and "asked" not in slot


def describe_unread(
    table: ScoreTable, quotes: Iterable[tuple[int, str]] = (), otherwise: str = READ_THEM
) -> dict[str, Any] | None:
    """Return how many replies were not read, why, some of them, and a sentence; None where they are at most a few."""
    unread, replies = int(np.count_nonzero(table.unread)), int(np.count_nonzero(table.read | table.unread))
    if unread <= TOLD_FROM * replies:
        return None
    reasons = Counter(table.reasons[code] if code >= 0 else "unparsed" for code in table.reason[table.unread].tolist())
    quoted = [
        {"sample": table.samples[table.sample[row]], "reason": table.reasons[table.reason[row]], "reply": text}
        for row, text in quotes
    ]
    step = _next_step(reasons, otherwise)
    counted = "they count as not right" if table.scored[table.unread].any() else "they are outside of the figure"
    shown = "; ".join(f"{one['sample']}: “{shorten_quote(one['reply'])}” ({one['reason']})" for one in quoted)
    what = f"{unread:,} of {plural(replies, 'reply')} ({100 * unread / replies:.1f} %) could not be read"
    why = f"{table.metric}: {what}; {counted}.{f' For example {shown}.' if shown else ''} Next: {step}."
    return {
        "metric": table.metric,
        "n": unread,
        "replies": replies,
        "reasons": dict(reasons.most_common()),
        "quoted": quoted,
        "next": step,
        "why": why,
    }


def _quoted_rows(table: ScoreTable) -> list[int]:
    """Return the rows to quote: one of each of the commonest reasons, then the first of the others."""
    unread = np.flatnonzero(table.unread)
    codes, first, counts = np.unique(table.reason[unread], return_index=True, return_counts=True)
    chosen = [int(unread[first[place]]) for place in np.argsort(-counts, kind="stable")[:QUOTED]]
    more = [int(row) for row in unread[: QUOTED + len(codes)] if row not in chosen]
    return (chosen + more)[:QUOTED]


def _quotes(table: ScoreTable, reader: RunReader) -> Iterator[tuple[int, str]]:
    """Yield the rows to quote with their replies; nothing is looked for before somebody quotes them."""
    for row in _quoted_rows(table) if table.row.size else ():
        found = next(reader.rows(_REPLY, (int(table.row[row]),)), None)
        yield row, "" if found is None else msgspec.json.decode(found[0], type=_Reply).text or ""


def _next_step(reasons: Counter[str], otherwise: str) -> str:
    commonest = reasons.most_common(1)[0][0].lower()
    return next((step for beginnings, step in NEXT_STEPS if commonest.startswith(beginnings)), otherwise)


Watch = Callable[[GatheredTask, ScoredRange], None]
"""Sees parts of a task pass, without the verdicts of judges, in the order of the plan."""


def score_run(
    reader: RunReader,
    registry: Registry,
    *,
    reading: Reading = OWN,
    more: Sequence[str] = (),
    watch: Watch | None = None,
    for_pages: bool = False,
    keep: bool = True,
    recorder: str = "",
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Score every stored trial, `keep` the scores in run.db or write nothing, and return results.json as plain data.

    `more` scorers are added to those of the reading. `watch` is shown each part, and the gatherer that took it, which
    keeps what pages show if `for_pages`; a part has the records that
    `recorder` makes. `executor` scores, or this process.
    """
    header, prices = reader.header(), stored_prices(reader)

    def score_task(task: Task) -> tuple[GatheredTask, dict[str, Any]]:
        """Score one task, and store its scores as they come."""
        from_card, task = card_note(task, reading.protocol, header), read_in(task, reading.protocol, header)
        gathered = GatheredTask(task, for_pages=for_pages, bill=Bill(prices) if prices else None)
        options = {"chance": chance_of(reader, task), **task.score_options, **reading.options()}
        scorers = (*(reading.scorers or task.scorers), *more)
        spec = RangeSpec(
            str(reader.folder), task, options, scorers, prices, for_pages, recorder, extractor=reading.extractor
        )
        ranges = reader.sample_ranges(task.name, len(task.variants) * task.repeats)
        parts = score_elsewhere(executor, spec, ranges) if executor else score_here(reader, registry, spec, ranges)
        passing = gather(reader, parts, gathered, watch)
        scores = _stored(reader, task.name, passing) if keep else _kept(passing)
        pairs = _scored_task(reader, gathered, scores, prices)
        result = summarize_task(pairs, registry, options, header)
        result = _add_models(result, reader, gathered, header, reading.extractor)
        result["notes"] = [*from_card, *result["notes"]]
        result = add_unread(result, task, counted_tables(gathered.tables()), reader)
        if gathered.bill is not None:
            result["cost"] = describe_bill(gathered.bill, result["right_answers"])
        return gathered, result

    scored = [score_task(task) for task in header.tasks]
    gathered, tasks = [one for one, _ in scored], {one.task.name: result for one, result in scored}
    usage = {name: sum(one.usage[name] for one in gathered) for name in USAGE}
    results = frame_results(reader, header, tasks, usage, reading)
    extractors = sum_extractors(tasks)
    costs = {"cost": sum_costs(tasks, [one.bill for one in gathered if one.bill is not None])}
    return results | costs | ({"cost_of_extractors": extractors} if extractors else {})


def _add_models(
    result: dict[str, Any], reader: RunReader, gathered: GatheredTask, header: RunHeader, model: str
) -> dict[str, Any]:
    """Say in a task's results what judges and an extractor found; what reads them is imported where some were asked."""
    if judge_folders(reader.folder):
        from .judges.judged import add_judges

        result = add_judges(result, reader, gathered.task, gathered.tables(), header)
    if model:
        from .judges.extractor import add_extractor

        result = add_extractor(result, reader.folder, gathered.task, model)
    return result


def _stored(reader: RunReader, task: str, passing: Iterator[bytes]) -> Callable[[], Iterable[Score]]:
    """Write the scores of a task to run.db; return how they are read."""
    write_score_rows(reader.folder, task, chain.from_iterable(map(read_rows_of_scores, passing)))
    return partial(reader.scores, task)


def _kept(passing: Iterator[bytes]) -> Callable[[], Iterable[Score]]:
    """Keep the scores of a task, packed; return how they are read."""
    packed = list(passing)
    return lambda: (score_of_row(row) for each in packed for row in read_rows_of_scores(each))


def gather(
    reader: RunReader, parts: Iterator[ScoredRange], gathered: GatheredTask, watch: Watch | None = None
) -> Iterator[bytes]:
    """Yield the packed rows of a task's scores and of its judges' verdicts; `gathered` and `watch` see them pass.

    A run of which not every trial came is refused.
    """
    task = gathered.task.name
    left = reader.count_trials(task)
    for part in parts:
        left -= part.trials
        gathered.absorb(part.gathered)
        if watch is not None:
            watch(gathered, part)
        yield part.scores
    reader.refuse_orphans(task, left)
    if not judge_folders(reader.folder):
        return
    from .judges.verdicts import stored_verdicts

    verdicts = stored_verdicts(reader, task)
    while batch := list(islice(verdicts, BATCH)):
        gathered.add_scores(batch)
        yield pack_scores(task, batch)


def _scored_task(
    reader: RunReader, gathered: GatheredTask, scores: Callable[[], Iterable[Score]], prices: Prices | None
) -> ScoredTask:
    """Return a task as aggregates see it."""
    task = gathered.task
    return ScoredTask(
        task,
        gathered.tables(),
        lambda: _pairs(reader, task.name, scores()),
        lambda: reader.samples(task.name),
        gathered.confidences,
        reader,
        prices,
    )


def _pairs(reader: RunReader, task: str, scores: Iterable[Score]) -> Iterator[tuple[Sample, Score]]:
    """Yield every score with its sample."""
    samples = {sample.id: sample for sample in reader.samples(task)}
    return ((samples[score.key.sample], score) for score in scores)
