"""A folder opened for asking: model, writer, cache, engine, signals, listener and limits, put together in one place.

Runs, exams, judges, drafts and checks are asked through a `Session`; predictions that are there already (an import,
a load of `perf`) are written through `open_store`, which a session stands on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from ..core.answerer import Answerer, whole_difference
from ..core.clock import SystemClock
from ..core.errors import DataError, EnvironmentProblem, ToldToEnd, UsageError
from ..core.homes import Part
from ..core.jobs import Job
from ..core.process import heard_again, run_to_end, stop_on_signals
from ..core.protocols import ImagePolicy, Model
from ..core.tasks import RunHeader, Task
from ..core.text import ago, plural
from ..data.images.encode import encode_moving
from ..engine.control import listening, overhearing
from ..engine.limits import Limits, Policy
from ..engine.loop import Engine
from ..engine.state import RunState
from ..engine.trust import CacheTrust
from ..model.served.prices import Prices
from ..scoring.protocols.readings import META, Reading
from ..scoring.tables.gathered import PRICES
from ..store.answerers import Answerers
from ..store.cache import OtherReplies, ResponseCache, open_cache
from ..store.database import BROKEN, connect, is_half_repaired, write_problem
from ..store.difference import Data
from ..store.owner import RunLock
from ..store.part_log import PLAN, PartWriter
from ..store.picture_ledger import PictureLedger
from ..store.sent_pictures import PartPictures, PictureKeeper, RunPictures
from ..store.writer import RunWriter, TrialWriter
from .batches import by_batches, check_batches
from .executors import Executor, executor_of
from .header import installed_versions, make_header
from .run_cost import check_priced, find_prices
from .settings import RunSettings

SET_ASIDE = (
    *("results.json", "records.jsonl", "report.html", "exam.json", "batches.json", "batch", "pictures.db"),
    *("pictures.db-wal", "pictures.db-shm", "run.db"),
)
"""What `--fresh` moves out of the way, run.db last: a kill in between leaves a run that is continued."""
WRITTEN = ("results.json", "records.jsonl", "report.html")
"""What a run leaves beside run.db."""


class Listener(Protocol):
    """Whoever hears of the asking while it goes on: the terminal, trackers."""

    def notify(self, line: str) -> None:
        """Hear of something that happened while the run waits."""
        ...

    def watch(self, state: RunState) -> AbstractContextManager[Any]:
        """Return a context manager that shows `state` while the engine works."""
        ...


class _Nobody:
    def notify(self, line: str) -> None:
        """Let it pass."""

    def watch(self, state: RunState) -> AbstractContextManager[None]:
        return nullcontext()


NO_LISTENER: Listener = _Nobody()


def make_policy(settings: RunSettings) -> Policy:
    """Return how the engine asks; what the settings leave open has the engine's own defaults."""
    default = Policy()
    return Policy(
        max_workers=settings.max_workers or default.max_workers,
        max_retries=settings.max_retries,
        per_second=settings.rate,
        timeout_s=settings.timeout_s or default.timeout_s,
    )


def make_limits(settings: RunSettings, prices: Prices | None, began: float | None = None, **more: Any) -> Limits:
    """Return what a command may use, as its settings say, with what only its caller knows (`more`).

    Its time counts from `began`, of the engine's clock; from now on where nobody says.
    """
    start = SystemClock().monotonic() if began is None else began
    ends = None if settings.deadline_s is None else start + settings.deadline_s
    return Limits(money=settings.max_cost, prices=prices, errors=settings.max_errors, ends=ends, **more)


def check_folder(folder: Path) -> None:
    """Refuse to write over files of others: a folder that has what a run writes, and no run."""
    if is_half_repaired(folder):
        raise EnvironmentProblem(f"a repair of {folder} was interrupted: `snellen repair {folder}` finishes it")
    theirs = [name for name in WRITTEN if (folder / name).exists()]
    if theirs and not ((folder / "run.db").exists() or (folder / PLAN).exists()):
        raise UsageError(f"{folder} holds {', '.join(theirs)} and no run: they would be overwritten; choose another -o")


@contextmanager
def open_store(
    folder: Path,
    header: RunHeader,
    reading: Reading | None = None,
    data: Data | None = None,
    *,
    same_code: bool = False,
) -> Iterator[RunWriter]:
    """Open the store of a run for the block; `reading` says how the first command reads its replies.

    results.json is that first reading, all others stand beside it.
    """
    check_folder(folder)
    with closing(RunWriter(folder, header, data, same_code=same_code)) as writer:
        if reading is not None and writer.meta(META) is None:
            writer.put_meta(META, reading)
        yield writer


@contextmanager
def open_part(
    folder: Path, header: RunHeader, part: Part, reading: Reading | None = None, data: Data | None = None
) -> Iterator[PartWriter]:
    """Open the log of one part of a run for the block."""
    check_folder(folder)
    with closing(PartWriter(folder, header, part, data)) as writer:
        if reading is not None:
            writer.put_meta(META, reading)
        yield writer


def keep_prices(writer: TrialWriter, prices: Prices | None) -> None:
    """Keep the prices that a run was last asked at, so that its results can be priced."""
    if prices is not None and writer.meta(PRICES) != msgspec.to_builtins(prices):
        writer.put_meta(PRICES, prices)


@dataclass(slots=True)
class Session:
    """One command's asking of one model, kept in one folder. Made by `open_session`."""

    folder: Path
    header: RunHeader
    model: Model
    settings: RunSettings
    writer: TrialWriter
    cache: ResponseCache | None
    policy: Policy
    limits: Limits
    listener: Listener
    answerers: Answerers
    resumed: bool
    """Whether the folder held a run before: its server and its pictures must be the same."""
    state: RunState = field(default_factory=RunState)
    """What is going on: of the pass that goes on, or of the last one."""
    keeper: PictureKeeper | None = None
    executor: Executor | None = None
    answer: Callable[[dict[str, Any]], None] | None = None
    """Of a part: tells how things stand after a wish was heard."""
    _trust: CacheTrust | None = None
    _ledger: PictureLedger | None = None
    _is_checked: bool = False

    async def ask(self, jobs: Callable[[], Iterator[Job]], planned: int = 0) -> RunState:
        """Ask until all is answered, a limit is reached or somebody stops it; by batches where the settings say so.

        `jobs` makes the same jobs whenever it is called; those that are stored are not asked again.
        """

        async def one_pass(model: Model, policy: Policy) -> RunState:
            return await self._ask_once(model, policy, jobs(), planned)

        if self.settings.batch:
            state = await by_batches().ask(self, one_pass, stop_on_signals)
        else:
            state = await one_pass(self.model, self.policy)
        if self.resumed and not self._is_checked and not state.unfinished:  # all was stored: nobody was asked
            await check_pictures(self.writer.ledger(), self.model.image_policy)
            self.answerers.keep()
        if self.cache is not None:
            state.cached_from = self.cache.oldest
        return state

    async def _ask_once(self, model: Model, policy: Policy, jobs: Iterator[Job], planned: int) -> RunState:
        if self.cache is not None:  # what a batch of ours was paid for comes from that batch
            self.cache.reads = not getattr(model, "has_batches", False) and not self.settings.fresh
        opening = self._check_again if self.resumed else None
        asked_of: dict[str, Any] = {"answerers": self.answerers, "trust": self._make_trust(), "keeper": self.keeper}
        engine = Engine(
            model, self.writer, policy, SystemClock(), cache=self.cache, limits=self.limits, opening=opening, **asked_of
        )
        self.state = engine.state
        engine.state.planned = planned
        engine.state.pacing = lambda: getattr(self.model, "pacing", "")
        executor = self.executor
        with (
            stop_on_signals(engine.stop),
            self.answerers.keeping_adjusted(),
            nullcontext() if executor is None else executor.keeping_replicas(model, engine.state, self.writer),
            self.listener.watch(engine.state),
            self._listening(engine),
        ):
            await engine.run(jobs)
        return engine.state

    def _listening(self, engine: Engine) -> AbstractContextManager[None]:
        """Hear what is wished from outside: of a run, or of all its parts, of which each answers for itself."""
        if isinstance(self.writer, RunWriter):
            return listening(self.folder, engine)
        return nullcontext() if self.answer is None else overhearing(self.folder, engine, self.answer)

    async def _check_again(self) -> PictureLedger | None:
        """Refuse to continue with another model or other pictures, before the first request that is not stored."""
        if not self._is_checked:
            await self.model.check()
            self._ledger = self.writer.ledger()
            await check_pictures(self._ledger, self.model.image_policy)
            self._settle_answerer()
            self._is_checked = True
        return self._ledger

    def _settle_answerer(self) -> None:
        """Keep who answers, and say what the cache has of others who had his name and his address."""
        now = self.answerers.keep()
        if self.cache is not None and self.model.cacheable:
            for other in self.cache.enter(now)[:1]:
                self.listener.notify(_describe_others(other, now))

    def _make_trust(self) -> CacheTrust | None:
        """Return the checks of a cache of a server's replies; a model of this machine is known by its files."""
        count = self.settings.cache_check
        if self.cache is None or not self.model.identity().get("base_url") or self.settings.same_model:
            return None
        self._trust = self._trust or CacheTrust(count, self.listener.notify)
        return self._trust


@asynccontextmanager
async def open_session(
    folder: Path,
    header: RunHeader,
    model: Model,
    settings: RunSettings,
    limits: Limits,
    *,
    listener: Listener | None = None,
    reading: Reading | None = None,
    data: Data | None = None,
    part: Part | None = None,
) -> AsyncIterator[Session]:
    """Open a folder for asking; what cannot be asked there is refused before anything is written.

    A folder that was asked at another server, or of another model, is refused; `--same-model` goes on. A `part` of a
    run is written to a log of its own.
    """
    check_batches(folder, model, settings)
    policy, executor = make_policy(settings), executor_of(settings.executor)
    if executor is not None:
        model = await executor.open_replicas(model, settings)
        policy = executor.policy_for(model, policy, settings)
    async with _closing_model(model, folder):
        if settings.fresh:
            set_aside(folder)
        resumed = (folder / "run.db").exists()
        if not resumed:  # before there is a run: a mistyped model or a dead server leaves nothing behind
            check_folder(folder)
            await model.check()
        first, same = None if resumed else reading, settings.same_model
        opened = (
            open_store(folder, header, first, data, same_code=same)
            if part is None
            else open_part(folder, header, part, reading, data)
        )
        with (
            opened as writer,
            closing(open_cache()) if settings.cache else nullcontext() as cache,
            _opened_keeper(folder, settings, writer) as keeper,
        ):
            answerers = Answerers(folder, model, writer, allowed=settings.same_model)
            answerers.check(listed=not resumed)
            resumed = resumed or (isinstance(writer, PartWriter) and writer.resumed)
            if settings.same_model and part is not None:
                writer.put_meta("same_model", True)
            keep_prices(writer, limits.prices)
            heard = listener or NO_LISTENER
            session = Session(folder, header, model, settings, writer, cache, policy, limits, heard, answerers, resumed)
            session.keeper, session.executor = keeper, executor
            if not resumed:
                session._settle_answerer()
            yield session


@asynccontextmanager
async def _closing_model(model: Model, folder: Path) -> AsyncIterator[None]:
    """Close the model after the block; a second Ctrl-C and a disk that takes nothing leave as what they are."""
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {error.filename or folder}: {error.strerror}") from None
    except BROKEN as error:  # wherever the store was asked: what helps is the same
        raise write_problem(folder / "run.db", error) from None
    finally:
        await model.close()


def _opened_keeper(
    folder: Path, settings: RunSettings, writer: TrialWriter
) -> AbstractContextManager[PictureKeeper | None]:
    """Open where pictures are kept as they are sent; nothing where that is switched off."""
    if settings.keep_pictures == "off":
        return nullcontext()
    everything = settings.keep_pictures == "all"
    if isinstance(writer, PartWriter):
        return closing(PartPictures(writer.path, everything=everything, parts=writer.part.count))
    return closing(RunPictures(folder, everything=everything))


def set_aside(folder: Path) -> None:
    """Move a run out of the way, within its folder: nothing that was paid for is deleted."""
    if not (folder / "run.db").exists():
        return
    lock = RunLock(folder)
    try:
        with closing(connect(folder / "run.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # its log is folded in: one file is moved, or none
        aside = folder / f"before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        aside.mkdir()
        for name in SET_ASIDE:
            if (folder / name).exists():
                (folder / name).rename(aside / name)
    finally:
        lock.release()


def _describe_others(other: OtherReplies, now: Answerer) -> str:
    """Say that stored replies are not used, because another gave them."""
    how = whole_difference(other.who, now)
    replies = f"{plural(other.replies, 'reply')} of {now.model} from {ago(time.time() - other.last)} in the cache"
    return f"{replies}: not used, because the model {how}"


async def check_pictures(ledger: PictureLedger, policy: ImagePolicy) -> None:
    """Refuse to continue with other pictures: some of those already sent are looked at again, if they are there."""
    for image in ledger.some:
        with contextlib.suppress(DataError):  # gone, or no longer readable: its trials are finished
            encoded = await asyncio.to_thread(encode_moving, image, policy)
            ledger.check_sent([(image, encoded.sent)])


class ModelJobs(NamedTuple):
    """Jobs that are no task's trials (drafts, checks, votes): for which model, and where the replies are kept."""

    folder: Path
    model: Model
    jobs: Iterable[Job]
    planned: Mapping[str, int]
    """Requests by task, at least."""
    config: dict[str, Any]
    """What changes the replies, beside the model."""
    tasks: tuple[Task, ...] = ()
    versions: Mapping[str, str] = MappingProxyType({})


def ask_jobs(
    work: ModelJobs, settings: RunSettings, listener: Listener | None = None, *, limits: Limits | None = None
) -> RunState:
    """Ask everything that is not stored yet, within the limits of the settings; the same call again continues."""
    return run_to_end(_ask_jobs(work, settings, listener, limits or limits_for(work.model, settings)))


def check_finished(state: RunState, what: str) -> None:
    """Refuse to go on with a part of the replies; after a signal as that signal does."""
    why = state.limits.reached or (state.limits.closed if state.overdue else "")
    if state.in_batches:
        why = f"{state.in_batches} requests wait in batches"
    if why:
        raise EnvironmentProblem(f"{what} is not finished ({why}); the same command continues it")
    if state.unfinished:
        raise ToldToEnd if heard_again() else KeyboardInterrupt


def limits_for(model: Model, settings: RunSettings, **more: Any) -> Limits:
    """Return the limits of a command whose cost is not known before; one in money needs a price."""
    return make_limits(settings, check_priced(settings, *find_prices(model, settings)), **more)


async def _ask_jobs(work: ModelJobs, settings: RunSettings, listener: Listener | None, limits: Limits) -> RunState:
    header = make_header(
        work.model,
        work.config,
        versions=work.versions or installed_versions(),
        command=settings.command,
        tasks=work.tasks,
        planned=work.planned,
    )
    async with open_session(work.folder, header, work.model, settings, limits, listener=listener) as session:
        return await session.ask(lambda: iter(work.jobs), sum(work.planned.values()))
