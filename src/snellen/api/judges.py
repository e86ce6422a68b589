"""A model asked about the replies of a run: a judge about all of them, an extractor about those a rule left unread.

Both are runs of their own beside it: asked through a `Session`, kept, resumed, priced and limited as any run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import EnvironmentProblem, RunMismatch, UsageError
from ..core.event_loop import run_to_end
from ..core.jobs import Item, ReadyRequests
from ..core.protocols import Model
from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..data.catalog import Catalog
from ..engine.limits import Limits
from ..engine.state import RunState
from ..model.served.prices import money
from ..scoring.judges.asking import plan_votes
from ..scoring.judges.extractor import extractor_folder, left_by_rule, slot_of, tasks_by_card
from ..scoring.judges.judge_card import Judge, judge_identity, read_judge
from ..scoring.judges.stored_votes import trials_to_judge
from ..scoring.protocols.readings import Reading, judge_folder
from ..scoring.ranges import joined_scorer
from ..store.reader import RunReader, Trial
from .chosen_model import create_model
from .session import Listener, ModelJobs, ask_jobs, check_finished, limits_for
from .settings import RunSettings, make_record, refuse_others

Wanted = Callable[[Task], Callable[[Trial], bool]]
"""Of a task: which of its trials a model is asked about."""


def load_judge(name: str, catalogs: Sequence[Path] = ()) -> Judge:
    """Return a judge of the catalog."""
    return read_judge(Catalog(catalogs).card("judges", name), name)


def asking_settings(model: str, told: Mapping[str, Any]) -> RunSettings:
    """Return how a judge or an extractor is asked; what its card says, and what means nothing there, is refused."""
    settings = make_record(RunSettings, "judge", {"tasks": (), "model": model, **told})
    refuse_others(settings, "judge")
    return settings


def ask_judge(
    folder: Path, judge: Judge, model: Model, settings: RunSettings, limits: Limits | None = None
) -> RunState:
    """Ask a judge about every reply of a run; what was asked before is not asked again. Returns counts and tokens.

    A judge that comes after another is asked about what that one extracted, within the same limits.
    """
    limits = limits or limits_for(model, settings)
    if judge.after:
        ask_judge(folder, load_judge(judge.after), model, settings, limits)
    with RunReader(folder) as run:
        votes = _Votes(run, judge, run.header().tasks)
        return _ask(votes, f"judge {judge.name!r}", judge_folder(folder, judge.name), model, settings, limits=limits)


def _ask(votes: _Votes, who: str, into: Path, model: Model, settings: RunSettings, *, limits: Limits) -> RunState:
    """Ask for all votes that are not stored yet; half of them are refused, as they give no score."""
    header, judge = votes.run.header(), votes.judge
    work = ModelJobs(
        into,
        model,
        votes,
        planned={},
        config={"run": header.id, "judge": judge_identity(judge)},
        tasks=tuple(Task(f"{task.name}@{judge.name}", {"loader": "judge"}, task.form) for task in votes.tasks),
        versions=header.versions,
    )
    try:
        state = ask_jobs(work, settings, votes.listener, limits=limits)
    except RunMismatch as mismatch:
        fix = f"to ask otherwise, move {into} away first: verdicts of two judges are never mixed"
        raise RunMismatch(f"{who} was asked otherwise before ({mismatch}); {fix}") from None
    check_finished(state, who)
    return state


def _every_reply(task: Task) -> Callable[[Trial], bool]:
    return lambda trial: True


@dataclass(frozen=True, slots=True)
class _Votes:
    """A job a vote, made anew whenever they are gone through: the votes on one reply need not wait for each other."""

    run: RunReader
    judge: Judge
    tasks: Sequence[Task]
    wanted: Wanted = _every_reply
    listener: Listener | None = None

    def __iter__(self) -> Iterator[ReadyRequests]:
        for task in self.tasks:
            is_wanted = self.wanted(task)
            for position, trial in enumerate(trials_to_judge(self.run, self.judge, task.name)):
                if not is_wanted(trial):
                    continue
                for request in plan_votes(self.judge, [(trial.sample, trial.prediction)], trial.request):
                    yield ReadyRequests(Item(position, trial.sample), (request,))


def check_extractor(header: RunHeader, model: str, protocol: str = "", *, catalogs: Sequence[Path] = ()) -> None:
    """Refuse an extractor where no task has a slot for one, before anything is asked."""
    cards = tasks_by_card(header, protocol)
    for card in cards:
        load_judge(card, catalogs)
    if not cards:
        names = ", ".join(f"{task.name} ({protocol or task.protocol or 'no protocol'})" for task in header.tasks)
        what = f"--extractor {model}: no tool of these protocols asks a model for the answer"
        raise UsageError(f"{what}: {names}; leave it out, or --protocol names another")


def check_reachable(settings: RunSettings, registry: Registry) -> None:
    """Refuse an extractor that cannot be asked (a mistyped name, a dead server) before a run is paid for."""
    run_to_end(_look_at(create_model(settings, registry)))


async def _look_at(model: Model) -> None:
    try:
        await model.check()
    finally:
        await model.close()


def ask_extractor(
    folder: Path,
    reading: Reading,
    settings: RunSettings,
    registry: Registry,
    *,
    listener: Listener | None = None,
    catalogs: Sequence[Path] = (),
) -> None:
    """Ask the extractor of a reading about every reply that the protocols' own rules leave unread, each once.

    All cards of a run's tasks are asked within the same limits.
    """
    with RunReader(folder) as run:
        header = run.header()
        check_extractor(header, reading.extractor, reading.protocol, catalogs=catalogs)
        limits: Limits | None = None
        for card, tasks in tasks_by_card(header, reading.protocol).items():
            model = create_model(settings, registry)  # a session closes its model
            limits = limits or limits_for(model, settings)
            votes = _Votes(run, load_judge(card, catalogs), tasks, left_to_model(registry, reading), listener)
            into = extractor_folder(folder, card, reading.extractor)
            _ask(votes, f"extractor {reading.extractor}", into, model, settings, limits=limits)


def left_to_model(registry: Registry, reading: Reading) -> Wanted:
    """Return which trials of a task its protocol's own rule leaves to the model."""

    def of_task(task: Task) -> Callable[[Trial], bool]:
        slot, score = slot_of(task), joined_scorer(registry, reading.scorers or task.scorers)
        if slot is None:
            raise ValueError(f"task {task.name!r} has no slot for an extractor")
        options = {**task.score_options, **reading.options()}
        return lambda trial: left_by_rule(score, slot, (trial.sample, trial.request, trial.prediction), options)[1]

    return of_task


def rest_of(settings: RunSettings, spent: float, seconds: float) -> dict[str, float]:
    """Return what a run that spent so much and took so long leaves its extractor of its own limits."""
    rest: dict[str, float] = {}
    if settings.max_cost is not None:
        rest["max_cost"] = settings.max_cost - spent
    if settings.deadline_s is not None:
        rest["deadline_s"] = settings.deadline_s - seconds
    if min(rest.values(), default=1.0) <= 0:
        what = f"the limits of the run leave its extractor nothing ({money(spent)} spent, {seconds:.0f} s gone)"
        raise EnvironmentProblem(f"{what}; every reply is kept, the same command with more continues it")
    return rest
