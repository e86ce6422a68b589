"""The main job: plan, ask, store, score, report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..core.clock import SystemClock
from ..core.counting import CONVENTIONS
from ..core.errors import MissingData, SnellenError, UsageError
from ..core.process import rare_collections, run_to_end
from ..core.variants import variants_beside
from ..engine.limits import IntervalLimit, PrefixLimit
from ..engine.state import RunState as RunState  # noqa: PLC0414 - part of what a run returns
from ..report.pages.finish import finish_run
from ..report.so_far import SoFar
from ..scoring.protocols.readings import OWN_PROFILE, Reading, check_reading
from .batches import check_batched_plan
from .executors import check_executor
from .plan import Plan, make_plan
from .run_cost import CostEstimate, check_limit, estimate_run
from .run_result import RunResult as RunResult  # noqa: PLC0414 - what a run returns
from .session import NO_LISTENER, Listener, Session, make_limits, open_session
from .settings import RunSettings, TaskSettings, make_record, taking_tasks
from .stored_results import asked_in_parts, is_unfinished

if TYPE_CHECKING:
    from .trackers import TrackerHub


class Watcher(Listener, Protocol):
    """Whom a run tells about itself, before it and while it goes on: the terminal."""

    def planned(self, plan: Plan, estimate: CostEstimate) -> None:
        """Called once, before the first request."""
        ...

    def agrees(self, question: str) -> bool:
        """Ask whether a run may go on although it looks dearer than it may be."""
        ...


class Watching(NamedTuple):
    """Who hears of a run: whoever sits before it, and trackers if any; and who makes the figure so far for them."""

    watcher: Listener
    onlooker: SoFar
    trackers: TrackerHub | None

    def notify(self, line: str) -> None:
        """Tell whoever sits before it."""
        self.watcher.notify(line)

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Show the state to both during the block."""
        state.onlooker = self.onlooker
        with self.trackers.watch(state) if self.trackers else nullcontext(), self.watcher.watch(state):
            yield


@taking_tasks(TaskSettings)
def run(tasks: str | tuple[str, ...] | RunSettings, model: str = "", **settings: Any) -> RunResult:
    """Measure a model on tasks and return the results; the same call again continues an unfinished run.

    Settings are those of `RunSettings`: `snellen.run("eyechart", "openai/NAME", base_url="http://localhost:8000/v1")`.

    Example:
        >>> result = snellen.run("my.jsonl", "blind/longest")
        >>> result.metrics["my"]["accuracy"].value
        0.5
    """
    if not isinstance(tasks, RunSettings):
        names = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        tasks = make_record(RunSettings, "run", {"tasks": names, "model": model, **settings})
    elif model or settings:
        raise UsageError(f"snellen.run: {model or next(iter(settings))} beside a RunSettings: put it into that record")
    return run_settings(tasks, None)


@rare_collections()
def run_settings(
    settings: RunSettings, watcher: Watcher | None, stops: Callable[[Plan], PrefixLimit] | None = None
) -> RunResult:
    """Plan, ask, store, score and report, as the settings say; the `watcher` hears of it.

    `stops` makes what orders the questions and ends the run, where a caller has a rule of its own (a gate).
    """
    began = SystemClock().monotonic()
    check_executor(settings)
    if settings.shard is not None or settings.steal:
        asked_in_parts().check_part(settings)
    plan = _plan_with_data(settings, watcher)
    trackers = _open_trackers(settings, plan) if settings.log else None
    reading = _planned_reading(plan, settings)
    if reading.extractor:
        _check_asking(plan, reading, settings)
    check_batched_plan(plan, settings)
    interval = _interval(plan, settings) if stops is None else stops(plan)
    estimate = estimate_run(plan, settings)
    limits = make_limits(settings, estimate.prices, began, expected=estimate.dearest, interval=interval)
    if watcher is not None:
        watcher.planned(plan, estimate)
    so_far = SoFar([planned.task for planned in plan.tasks], plan.registry, reading)
    if settings.shard is not None:
        heard = {"listener": watcher or NO_LISTENER, "so_far": so_far, "reading": reading}
        return asked_in_parts().run_part(plan, settings, limits, **heard)
    _check_beginning(plan, settings, estimate, watcher)
    told: dict[str, Any] = {
        "listener": Watching(watcher or NO_LISTENER, so_far, trackers),
        "reading": reading,
        "data": plan.data(),
    }
    try:
        session = open_session(plan.folder, plan.header, plan.model, settings, limits, **told)
        state = run_to_end(_ask_all(session, plan))
    except SnellenError:
        if plan.fresh and not (plan.folder / "run.db").exists():  # what a loader drew for a run that never began
            shutil.rmtree(plan.folder, ignore_errors=True)
        raise
    if reading.extractor and not state.unfinished:
        from .judges import ask_extractor, asking_settings, rest_of

        told = rest_of(settings, limits.spent, SystemClock().monotonic() - began) | settings.extractor_settings
        asking = asking_settings(reading.extractor, told)
        ask_extractor(plan.folder, reading, asking, plan.registry, listener=watcher, catalogs=settings.catalogs)
    results = finish_run(plan.folder, plan.registry, reading=reading)
    if trackers is not None:
        trackers.end(results, state)
    dimensions = {planned.task.name: planned.task.dimension for planned in plan.tasks}
    early = interval.summary() if interval is not None and interval.stopped else None
    not_logged = trackers.problems if trackers else {}
    ended: dict[str, Any] = {"early_stop": early, "not_logged": not_logged, "registry": plan.registry}
    return RunResult(plan.folder, results, state, state.unfinished, dimensions, **ended)


def _check_beginning(plan: Plan, settings: RunSettings, estimate: CostEstimate, watcher: Watcher | None) -> None:
    """Refuse to ask what parts hold already, and a run that is dearer than it may be where nobody agrees to it."""
    if is_unfinished(plan.folder):
        asked_in_parts().refuse_unmerged(plan.folder)
    question = check_limit(settings, estimate)
    if question is not None and (watcher is None or not watcher.agrees(question)):
        raise UsageError(f"{question}: --yes starts it all the same and stops at the limit; nothing was asked")


def _open_trackers(settings: RunSettings, plan: Plan) -> TrackerHub:
    """Return the trackers that the settings name; what is not there is refused before anything is asked."""
    from .trackers import TrackerHub, find_trackers  # most runs have none

    return TrackerHub(find_trackers(settings.log, plan.registry), plan.folder, plan.header.config)


def _plan_with_data(settings: RunSettings, watcher: Watcher | None) -> Plan:
    """Return the plan; benchmarks whose data is not here are fetched first, where that is agreed to."""
    brought: set[str] = set()
    while True:
        try:
            return make_plan(settings)
        except MissingData as lack:
            if lack.card in brought:
                raise
            from .card_data import bring_data  # most runs have their data

            brought.add(lack.card)
            told = watcher or NO_LISTENER
            bring_data(lack, settings, watcher.agrees if watcher else lambda _: False, told.notify)


def _check_asking(plan: Plan, reading: Reading, settings: RunSettings) -> None:
    """Refuse an extractor that could not be asked, before the first reply is paid for."""
    from .judges import asking_settings, check_extractor, check_reachable

    check_extractor(plan.header, reading.extractor, catalogs=settings.catalogs)
    asking = asking_settings(reading.extractor, settings.extractor_settings)
    if not (plan.folder / "run.db").exists():
        check_reachable(asking, plan.registry)


def reading_of(settings: RunSettings) -> Reading:
    """Return how the settings say that replies are read."""
    if settings.extractor_settings and not settings.extractor:
        raise UsageError("--extractor-arg says how the extracting model is asked: name it by --extractor")
    convention, extractor = settings.convention or CONVENTIONS[0], settings.extractor or ""
    return check_reading(Reading(settings.profile or OWN_PROFILE, convention=convention, extractor=extractor))


def _planned_reading(plan: Plan, settings: RunSettings) -> Reading:
    """Return the same; a convention where nothing has chains is refused before anything is asked."""
    if settings.convention:
        firsts = [sample for planned in plan.tasks for sample in islice(planned.dataset, 1)]
        if not any("role" in sample.tags and "step" in sample.tags for sample in firsts):
            names = ", ".join(planned.task.name for planned in plan.tasks)
            raise UsageError(f"--convention is about chains (Cf, Cb), and these tasks have none: {names}")
    return reading_of(settings)


async def _ask_all(opening: AbstractAsyncContextManager[Session], plan: Plan) -> RunState:
    async with opening as session:
        interval, writer = session.limits.interval, session.writer
        order = None if interval is None else interval.shuffle
        state = await session.ask(lambda: plan.jobs(order), plan.trials)
        if interval is not None or writer.meta("until_ci"):  # what stopped it once no longer counts where all is asked
            writer.put_meta("until_ci", interval and interval.summary())
        return state


def _interval(plan: Plan, settings: RunSettings) -> PrefixLimit | None:
    """Return the interval that ends the run once it is narrow enough, if the settings name one."""
    if settings.bank is None and settings.until_ci is None:
        if settings.budget is not None:
            raise UsageError("--budget is a number of questions for --bank: name a bank, or use --sample")
        return None
    from ..scoring.aggregates.quoted_figures import WHOLE_ONLY

    if settings.extractor:
        raise UsageError("--until-ci looks at every reply as it comes, --extractor reads after the last: leave one out")
    if len(plan.tasks) != 1:
        raise UsageError("--until-ci and --bank work on one task at a time: each task has its own interval")
    task = plan.tasks[0].task
    grouped = [figure.name for figure in task.figures if figure.rule in WHOLE_ONLY]
    if grouped:
        raise UsageError(f"--until-ci says nothing of {', '.join(grouped)}: groups must be asked whole; leave it out")
    scorer = plan.registry.get("scorer", task.scorers[0])
    beside = variants_beside(task.variants)
    trials = (len(task.variants) - len(beside)) * task.repeats
    limit: PrefixLimit
    if settings.bank is not None:
        limit = plan.registry.get("stop", "bank").bank_limit(plan, settings, settings.bank, scorer)
    else:
        limit = IntervalLimit(settings.until_ci or 0.0, scorer, trials, task.score_options)
    limit.leave_beside(beside, task.repeats)
    return limit
