"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..core.registry import Registry
from ..core.tasks import Task
from ..core.types import Sample, Score
from ..model.providers.prices import Bill
from ..store.reader import RunReader, score_of_row, write_score_rows
from .gathered import GatheredTask
from .judging.accounts import add_judges
from .judging.stored_votes import stored_verdicts
from .peers.other_protocol import card_note, read_in
from .range_chore import Executor, score_elsewhere
from .ranges import BATCH, RangeErrand, RangeScorer, ScoredRange, pack_scores, read_rows_of_scores
from .readings import OWN, Reading
from .results import chance_of, results_of, summarize_task
from .spent import describe_bill, stored_prices, sum_costs
from .table import ScoredTask
from .unread import add_unread

Watch = Callable[[GatheredTask, ScoredRange], None]
"""Sees parts of a task pass, without the verdicts of judges, in the order of the plan."""


def score_run(
    folder: Path,
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
    """Score every stored trial, `keep` the scores in run.db, and return results.json as plain data.

    `more` scorers are added to those of the reading. `watch` is shown each part, and the gatherer that took it, which
    keeps what pages show if `for_pages`; a part has the records that
    `recorder` makes. `executor` scores, or this process.
    """
    with RunReader(folder) as reader, closing(RangeScorer(registry)) as here:
        header, prices = reader.header(), stored_prices(reader)
        bills: list[Bill] = []

        def score_task(task: Task) -> tuple[dict[str, Any], dict[str, int]]:
            """Score one task, and store its scores as they come."""
            from_card, task = card_note(task, reading.protocol, header), read_in(task, reading.protocol, header)
            gathered = GatheredTask(task, for_pages=for_pages, bill=Bill(prices) if prices else None)
            options = {"chance": chance_of(reader, task), **task.score_options, **reading.options()}
            scorers = (*(reading.scorers or task.scorers), *more)
            errand = RangeErrand(str(folder), task, options, scorers, prices, for_pages, recorder)
            left = reader.count_trials(task.name)
            ranges = reader.sample_ranges(task.name, len(task.variants) * task.repeats)
            scored = score_elsewhere(executor, errand, ranges) if executor else here.score_all(errand, ranges)
            parts = _counted(reader, task.name, left, scored)
            passing = gather(reader, parts, gathered, watch)
            scores = _stored(folder, reader, task.name, passing) if keep else _kept(passing)
            pairs = _scored_task(reader, gathered, scores)
            result = summarize_task(pairs, registry, options, header)
            result = add_judges(result, reader, task, gathered.tables(), header)
            result["notes"] = [*from_card, *result["notes"]]
            result = add_unread(result, task, gathered.tables(), reader)
            if gathered.bill is not None:
                result["cost"] = describe_bill(gathered.bill, result["right_answers"])
                bills.append(gathered.bill)
            return result, gathered.usage

        results = results_of(reader, reading, score_task)
        return results | {"cost": sum_costs(results["tasks"], bills)}


def _stored(folder: Path, reader: RunReader, task: str, passing: Iterator[bytes]) -> Callable[[], Iterable[Score]]:
    """Write the scores of a task to run.db; return how they are read."""
    write_score_rows(folder, task, chain.from_iterable(map(read_rows_of_scores, passing)))
    return partial(reader.scores, task)


def _kept(passing: Iterator[bytes]) -> Callable[[], Iterable[Score]]:
    """Keep the scores of a task, packed; return how they are read."""
    packed = list(passing)
    return lambda: (score_of_row(row) for each in packed for row in read_rows_of_scores(each))


def score_again(reader: RunReader, registry: Registry, *, reading: Reading = OWN) -> dict[str, Any]:
    """Score what is stored now, in memory: another reading, a run that goes on. Nothing is written."""
    return score_run(Path(reader.folder), registry, reading=reading, keep=False)


def gather(
    reader: RunReader, parts: Iterator[ScoredRange], gathered: GatheredTask, watch: Watch | None = None
) -> Iterator[bytes]:
    """Yield the packed rows of a task's scores and of its judges' verdicts; `gathered` and `watch` see them pass."""
    for part in parts:
        gathered.absorb(part.gathered)
        if watch is not None:
            watch(gathered, part)
        yield part.scores
    verdicts = stored_verdicts(reader, gathered.task.name)
    while batch := list(islice(verdicts, BATCH)):
        gathered.add_scores(batch)
        yield pack_scores(gathered.task.name, batch)


def _counted(reader: RunReader, task: str, left: int, parts: Iterator[ScoredRange]) -> Iterator[ScoredRange]:
    """Pass parts on, and refuse a run of which not every trial came."""
    for part in parts:
        left -= part.trials
        yield part
    reader.refuse_orphans(task, left)


def _scored_task(reader: RunReader, gathered: GatheredTask, scores: Callable[[], Iterable[Score]]) -> ScoredTask:
    """Return a task as aggregates see it."""
    task = gathered.task
    return ScoredTask(
        task,
        gathered.tables(),
        lambda: _pairs(reader, task.name, scores()),
        lambda: reader.samples(task.name),
    )


def _pairs(reader: RunReader, task: str, scores: Iterable[Score]) -> Iterator[tuple[Sample, Score]]:
    """Yield every score with its sample."""
    samples = {sample.id: sample for sample in reader.samples(task)}
    return ((samples[score.key.sample], score) for score in scores)
