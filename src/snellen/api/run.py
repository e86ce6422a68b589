"""The main job: plan, ask, store, score, report."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ..core.clock import SystemClock
from ..core.errors import DataError, EnvironmentProblem, SnellenError, UsageError
from ..core.event_loop import run_to_end
from ..core.garbage import rare_collections
from ..core.protocols import ImagePolicy, Model
from ..data.images.encode import ImageDoor
from ..engine.loop import Engine
from ..engine.policy import ErrorBudget, Policy
from ..engine.queued.batched_model import BatchedModel
from ..engine.spending import Spending
from ..engine.state import RunState as RunState  # noqa: PLC0414 - part of what a run returns
from ..report.finish import finish_run
from ..report.logs.teller import Teller, check_trackers
from ..report.so_far import SoFar
from ..scoring.aggregates.consistency import CONVENTIONS
from ..scoring.aggregates.quoted_figures import WHOLE_ONLY
from ..scoring.readings import META, OWN_PROFILE, Reading, check_reading
from ..scoring.spent import PRICES
from ..store.cache import ResponseCache
from ..store.picture_ledger import PictureLedger
from ..store.servers import AskedServer
from ..store.writer import RunWriter
from .batches.batch_mode import BatchMode, check_batch_settings, unheard
from .early_stop import EarlyStop
from .look.run_result import RunResult as RunResult  # noqa: PLC0414 - what a run returns
from .machine import open_cache
from .money.cost_words import check_limit
from .money.run_cost import CostEstimate, estimate_run
from .plan import Plan, make_plan
from .scale.replicas import check_executor, keeping_replicas, open_replicas, policy_for
from .settings import RunSettings

REPORTED_TRIALS = 50_000
"""Up to so many trials report.html is written by itself; a larger run is for `snellen view` or `snellen report`."""

WRITTEN = ("results.json", "records.jsonl", "report.html")
"""What a run leaves beside run.db."""


class Watcher(Protocol):
    """Whom a run tells about itself while it goes on: the terminal."""

    def planned(self, plan: Plan, estimate: CostEstimate) -> None:
        """Called once, before the first request."""
        ...

    def told(self, line: str) -> None:
        """Hear of something that happened while the run waits."""
        ...

    def agrees(self, question: str) -> bool:
        """Ask whether a run may go on although it looks dearer than it may be."""
        ...

    def watch(self, state: RunState) -> Any:
        """Return a context manager that shows `state` while the engine works."""
        ...


class Watching(NamedTuple):
    """Who hears of a run: whoever sits before it, and trackers; and who makes the figure so far for them."""

    watcher: Watcher | None
    teller: Teller
    onlooker: SoFar

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Show the state to both during the block."""
        state.onlooker = self.onlooker
        with self.teller.watch(state), watching(self.watcher, state):
            yield


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
        tasks = RunSettings(tasks=names, model=model, **settings)
    return run_settings(tasks, None)


@rare_collections()
def run_settings(settings: RunSettings, watcher: Watcher | None) -> RunResult:
    """Plan, ask, store, score and report, as the settings say; the `watcher` hears of it."""
    started = time.monotonic()
    check_trackers(settings.log)
    check_executor(settings)
    plan = make_plan(settings)
    reading = _planned_reading(plan, settings)
    policy = make_policy(settings)
    check_batch_settings(plan, settings)
    estimate = estimate_run(plan, settings)
    if watcher is not None:
        watcher.planned(plan, estimate)
    question = check_limit(settings, estimate)
    if question is not None and (watcher is None or not watcher.agrees(question)):
        raise UsageError(f"{question}: --yes starts it all the same and stops at the limit; nothing was asked")
    ends = None if settings.deadline_s is None else started + settings.deadline_s
    teller = Teller(settings.log, plan.folder, plan.folder.name, plan.header.config)
    watching = Watching(watcher, teller, SoFar([planned.task for planned in plan.tasks], plan.registry, reading))
    asked = _ask_all(plan, policy, settings, estimate, watcher=watching, ends=ends)
    state, interrupted, early = run_to_end(asked)
    results = finish(plan.folder, plan, reading)
    teller.end(results, state)
    dimensions = {planned.task.name: planned.task.dimension for planned in plan.tasks}
    return RunResult(plan.folder, results, state, interrupted, dimensions, early, teller.problems)


def finish(folder: Path, plan: Plan, reading: Reading) -> dict[str, Any]:
    """Score the stored replies and write the files."""
    return finish_run(folder, plan.registry, report=plan.trials <= REPORTED_TRIALS, reading=reading)


def reading_of(settings: RunSettings) -> Reading:
    """Return how the settings say that replies are read."""
    return check_reading(Reading(settings.profile or OWN_PROFILE, convention=settings.convention or CONVENTIONS[0]))


def _planned_reading(plan: Plan, settings: RunSettings) -> Reading:
    """Return the same; a convention where nothing has chains is refused before anything is asked."""
    if settings.convention:
        firsts = [sample for planned in plan.tasks for sample in islice(planned.dataset, 1)]
        if not any("role" in sample.tags and "step" in sample.tags for sample in firsts):
            names = ", ".join(planned.task.name for planned in plan.tasks)
            raise UsageError(f"--convention is about chains (Cf, Cb), and these tasks have none: {names}")
    return reading_of(settings)


def note_reading(writer: RunWriter, settings: RunSettings) -> None:
    """Keep how a run's first command reads it: results.json is that reading, all others stand beside it."""
    if writer.meta(META) is None:
        writer.put_meta(META, reading_of(settings))


def make_policy(settings: RunSettings) -> Policy:
    """Return the engine's limits; what the settings leave open has the engine's own defaults."""
    default = Policy()
    return Policy(
        max_workers=settings.max_workers or default.max_workers,
        max_retries=settings.max_retries,
        per_second=settings.rate,
        timeout_s=settings.timeout_s or default.timeout_s,
        max_errors=ErrorBudget.parse(settings.max_errors) if settings.max_errors else ErrorBudget(),
    )


async def _ask_all(
    plan: Plan,
    policy: Policy,
    settings: RunSettings,
    estimate: CostEstimate,
    *,
    watcher: Watching,
    ends: float | None,
) -> tuple[RunState, bool, Mapping[str, Any] | None]:
    plan = plan._replace(model=await open_replicas(plan.model, settings))
    policy = policy_for(plan.model, policy, settings)
    async with asking(plan.model, plan.folder):
        resuming = (plan.folder / "run.db").exists()
        server = AskedServer(plan.folder, plan.model, allowed=settings.same_model)
        if not resuming:
            check_folder(plan.folder)
            await _check_first(plan)
        data = {planned.task.name: planned.dataset for planned in plan.tasks}
        with closing(RunWriter(plan.folder, plan.header, data)) as writer, response_cache(settings) as cache:
            server.check_address(writer)
            ledger: PictureLedger | None = None
            if not resuming:
                note_reading(writer, settings)
            if resuming and not _is_complete(plan, writer):
                await plan.model.check()
                ledger = writer.ledger()
                await check_pictures(ledger, plan.model.image_policy)
            server.keep(writer)
            spending = open_spending(writer, settings, estimate)

            async def ask_once(model: Model, policy: Policy) -> tuple[RunState, bool, Mapping[str, Any] | None]:
                if cache is not None:  # what a batch of ours was paid for comes from that batch
                    cache.reads = not (isinstance(model, BatchedModel) and model.has_batches)
                engine = Engine(model, writer, policy, SystemClock(), cache=cache, ledger=ledger, spending=spending)
                with (
                    ending_at(ends, engine),
                    server.keeping_adjusted(writer),
                    keeping_replicas(model, engine.state, writer),
                ):
                    return await _run_engine(engine, plan, settings, writer, watcher)

            if not settings.batch:
                return await ask_once(plan.model, policy)
            say = watcher.watcher.told if watcher.watcher is not None else unheard
            mode = BatchMode(plan, settings, policy, spending, stop_on_signals, say)
            return await mode.run(ask_once, ends)


def open_spending(writer: RunWriter, settings: RunSettings, estimate: CostEstimate) -> Spending | None:
    """Keep the prices with the run, so that its results can be priced; return what holds its limit, if it has one."""
    prices = estimate.prices
    if prices is None:
        return None
    if writer.meta(PRICES) != msgspec.to_builtins(prices):
        writer.put_meta(PRICES, prices)
    return Spending(prices, settings.max_cost, estimate.dearest)


async def _check_first(plan: Plan) -> None:
    """Ask whether the model can answer, before there is a run: a mistyped model or a dead server leaves nothing behind.

    What a loader drew for the plan goes too, unless the folder was there before.
    """
    try:
        await plan.model.check()
    except SnellenError:
        if plan.fresh:
            shutil.rmtree(plan.folder, ignore_errors=True)
        raise


async def check_pictures(ledger: PictureLedger, policy: ImagePolicy) -> None:
    """Refuse to continue with other pictures: some of those already sent are looked at again, if they are there."""
    with closing(ImageDoor()) as door:
        for image in ledger.some:
            with contextlib.suppress(DataError):  # gone, or no longer readable: its trials are finished
                encoded = await door.encode(image, policy)
                ledger.check_sent([(image, encoded.sent)])


def check_folder(folder: Path) -> None:
    """Refuse to write over files of others: a folder that has what a run writes, and no run."""
    theirs = [name for name in WRITTEN if (folder / name).exists()]
    if theirs:
        raise UsageError(f"{folder} holds {', '.join(theirs)} and no run: they would be overwritten; choose another -o")


@asynccontextmanager
async def asking(model: Model, folder: Path) -> AsyncIterator[None]:
    """Close the model after the block; a second Ctrl-C and a disk that takes nothing leave as what they are."""
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {error.filename or folder}: {error.strerror}") from None
    finally:
        await model.close()


async def _run_engine(
    engine: Engine, plan: Plan, settings: RunSettings, writer: RunWriter, watcher: Watching
) -> tuple[RunState, bool, Mapping[str, Any] | None]:
    """Run the plan; return the counts, whether it was interrupted before its end, and what stopped it early."""
    engine.state.planned = plan.trials
    early = _early_stop(plan, settings, engine)
    with stop_on_signals(engine.stop, asyncio.current_task()), watcher.watch(engine.state):
        await engine.run(plan.jobs(early.shuffle if early else None), early.observe if early else None)
    if early is None:
        if writer.meta("until_ci"):  # what stopped it once no longer counts: all was asked for now
            writer.put_meta("until_ci", None)
        return engine.state, engine.stopping, None
    writer.put_meta("until_ci", early.summary())
    return engine.state, engine.stopping and not early.stopped, early.summary() if early.stopped else None


@contextmanager
def ending_at(moment: float | None, engine: Engine) -> Iterator[None]:
    """Let the engine take nothing new after a moment of `time.monotonic`; what is in flight drains, all is kept."""
    if moment is None:
        yield
        return

    def end() -> None:
        engine.state.overdue = True
        engine.stop()

    timer = asyncio.get_running_loop().call_later(max(0.0, moment - time.monotonic()), end)
    try:
        yield
    finally:
        timer.cancel()


def _early_stop(plan: Plan, settings: RunSettings, engine: Engine) -> EarlyStop | None:
    if settings.until_ci is None:
        return None
    if len(plan.tasks) != 1:
        raise UsageError("--until-ci works on one task at a time: each task has its own interval")
    task = plan.tasks[0].task
    grouped = [figure.name for figure in task.figures if figure.rule in WHOLE_ONLY]
    if grouped:
        raise UsageError(f"--until-ci says nothing of {', '.join(grouped)}: groups must be asked whole; leave it out")
    scorer = plan.registry.get("scorer", task.scorers[0])
    stop = EarlyStop(settings.until_ci, scorer, len(task.variants) * task.repeats, engine.stop)
    stop.options = task.score_options
    return stop


@contextmanager
def response_cache(settings: RunSettings) -> Iterator[ResponseCache | None]:
    """Open the response cache for the block, or nothing where it is switched off."""
    if not settings.cache:
        yield None
        return
    with closing(open_cache()) as cache:
        yield cache


def _is_complete(plan: Plan, writer: RunWriter) -> bool:
    return all(len(writer.finished_keys(planned.task.name)) >= planned.trials for planned in plan.tasks)


@contextmanager
def stop_on_signals(stop: Callable[[], None], task: asyncio.Task[Any] | None) -> Iterator[None]:
    """First Ctrl-C: take nothing new and drain; second: leave at once. Nothing stored is lost either way."""
    if threading.current_thread() is not threading.main_thread() or task is None:
        yield
        return
    loop, seen = asyncio.get_running_loop(), []

    def on_signal() -> None:
        seen.append(1)
        if len(seen) == 1:
            stop()
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextmanager
def watching(watcher: Watcher | None, state: RunState) -> Iterator[None]:
    """Show the state to the watcher, if there is one, during the block."""
    if watcher is None:
        yield
    else:
        with watcher.watch(state):
            yield
