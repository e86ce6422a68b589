"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ..core.registry import Registry
from ..core.tasks import Task
from ..core.types import Sample, Score
from ..model.providers.prices import Bill
from ..store.reader import RunReader, Trial, write_scores
from .gathered import GatheredTask, Scored
from .judging.accounts import add_judges
from .judging.stored_votes import stored_verdicts
from .peers.other_protocol import read_in
from .peers.peer_scores import ScoreTrial, score_with_peer
from .readings import OWN, Reading
from .results import chance_of, results_of, summarize_task
from .spent import describe_bill, right_count, stored_prices, sum_costs
from .table import ScoredTask

BATCH = 64
"""Trials that are scored, stored and counted together."""
Item = TypeVar("Item")
Watch = Callable[[GatheredTask, Sequence[Scored]], None]
"""Sees trials pass with what the scorers said of them (not the judges), in the order of the plan."""


def score_run(
    folder: Path,
    registry: Registry,
    *,
    reading: Reading = OWN,
    more: Sequence[str] = (),
    watch: Watch | None = None,
    for_pages: bool = False,
    keep: bool = True,
) -> dict[str, Any]:
    """Score every stored trial, `keep` the scores in run.db, and return results.json as plain data.

    `more` scorers are added to those of the reading. `watch` is shown each batch, and the gatherer that took it, which
    keeps what pages show if `for_pages`.
    """
    with RunReader(folder) as reader:
        header, prices = reader.header(), stored_prices(reader)
        bills: list[Bill] = []

        def score_task(task: Task) -> tuple[dict[str, Any], dict[str, int]]:
            """Score one task, and store its scores as they come."""
            task = read_in(task, reading.protocol)
            gathered = GatheredTask(task, for_pages=for_pages, bill=Bill(prices) if prices else None)
            options = {"chance": chance_of(reader, task), **task.score_options, **reading.options()}
            scored = scored_trials(reader, task, registry, options, [*(reading.scorers or task.scorers), *more])
            passing = gather(reader, scored, gathered, watch)
            scores: Callable[[], Iterable[Score]]
            if keep:
                write_scores(folder, task.name, passing)
                scores = partial(reader.scores, task.name)
            else:
                scores = list(passing).__iter__
            pairs = _scored_task(reader, gathered, scores)
            result = summarize_task(pairs, registry, options, header)
            result = add_judges(result, reader, task, gathered.tables(), header)
            if gathered.bill is not None:
                result["cost"] = describe_bill(gathered.bill, right_count(gathered.tables()))
                bills.append(gathered.bill)
            return result, gathered.usage

        results = results_of(reader, reading, score_task)
        return results | {"cost": sum_costs(results["tasks"], bills)}


def score_again(reader: RunReader, registry: Registry, *, reading: Reading = OWN) -> dict[str, Any]:
    """Score what is stored now, in memory: another reading, a run that goes on. Nothing is written."""
    return score_run(Path(reader.folder), registry, reading=reading, keep=False)


def scored_trials(
    reader: RunReader, task: Task, registry: Registry, options: Mapping[str, Any], scorers: Sequence[str]
) -> Iterator[Scored]:
    """Yield every stored trial with its scores, in the order of the plan; scorers are told what the task says."""
    options, score = {**task.score_options, **options}, joined_scorer(registry, scorers)
    for trial in reader.trials(task.name):
        yield trial, score_trial(task, score, trial, options)


def joined_scorer(registry: Registry, names: Sequence[str]) -> ScoreTrial:
    """Return the named scorers as one."""
    functions: list[ScoreTrial] = [registry.get("scorer", name) for name in names]
    if len(functions) == 1:
        return functions[0]
    return lambda *trial: [score for function in functions for score in function(*trial)]


def score_trial(task: Task, score: ScoreTrial, trial: Trial, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return the scores of one trial, and those that its protocol's own tool would give; a failed one has no other."""
    sample, request, prediction, _ = trial
    if task.fallback:
        return score_with_peer(task.fallback, score, (sample, request, prediction), options)
    return list(score(sample, request, prediction, options)) if prediction.failure is None else ()


def gather(
    reader: RunReader, scored: Iterator[Scored], gathered: GatheredTask, watch: Watch | None = None
) -> Iterator[Score]:
    """Yield the scores of a task and the verdicts of its judges; `gathered` and `watch` see them pass."""
    for batch in _batches(scored):
        gathered.add(batch)
        if watch is not None:
            watch(gathered, batch)
        for _, scores in batch:
            yield from scores
    for verdicts in _batches(stored_verdicts(reader, gathered.task.name)):
        gathered.add_scores(verdicts)
        yield from verdicts


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch


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
