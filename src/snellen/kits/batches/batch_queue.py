"""Requests into batches and answers out of them: files are sent when full, looked after, fetched, and asked again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from ...api.plan import Plan
from ...api.settings import RunSettings
from ...core.clock import Clock, SystemClock
from ...core.errors import EnvironmentProblem, ModelError, Parked, UsageError
from ...core.ids import canonical_json, sha256_hex
from ...core.protocols import Capability, EncodedImages, Inferencer, Model
from ...core.types import FailureKind, Prediction, Request
from ...engine.limits import Policy
from ...engine.state import RunState
from ...model.served.http_client import Body
from ...model.served.served_model import ServedModel
from .batch_ledger import (
    ENDED,
    FILES,
    READ,
    SENT,
    VOID,
    WRITTEN,
    BatchLedger,
    LinesWriter,
    SentFile,
    idents_of,
    lines_file,
    open_ledger,
    read_ledger,
)
from .batch_service import UNANSWERED, BatchResult, BatchService, BatchState
from .batch_services import batched_by, open_service, terms_of

if TYPE_CHECKING:
    from ...api.session import Session


class _Named(msgspec.Struct):
    custom_id: str = ""
    key: str = ""


class BatchAnswers:
    """Where every answer stands. Of two for one request the later holds: it was asked again."""

    def __init__(self, service: BatchService) -> None:
        self._service = service
        self._files: list[IO[bytes]] = []
        self._places: dict[str, tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def load(self, path: Path, idents: frozenset[str]) -> int:
        """Take in a file of results; return how many of these requests it answers. Others' lines are not ours."""
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            return 0
        self._files.append(opened)
        number, offset, answered = len(self._files) - 1, 0, set()
        for line in opened:
            if line.strip():
                result = self._name_of(line, path)
                if result in idents and self._is_answer(line):
                    self._places[result] = number, offset, len(line)
                    answered.add(result)
            offset += len(line)
        return len(answered)

    def _name_of(self, line: bytes, path: Path) -> str:
        try:
            named = msgspec.json.decode(line, type=_Named)
        except msgspec.DecodeError as error:
            raise EnvironmentProblem(
                f"{path}: a line of results cannot be read ({error}); delete it and try again"
            ) from None
        return named.custom_id or named.key

    def _is_answer(self, line: bytes) -> bool:
        return self._service.read(line).status != UNANSWERED

    def get(self, ident: str) -> BatchResult | None:
        """Return the answer to a request, if it is here."""
        place = self._places.get(ident)
        if place is None:
            return None
        number, offset, size = place
        self._files[number].seek(offset)
        return self._service.read(self._files[number].read(size))

    def forget(self, ident: str) -> None:
        """Leave an answer out: its request is asked again."""
        self._places.pop(ident, None)

    def close(self) -> None:
        """Forget everything and close the files."""
        for opened in self._files:
            opened.close()
        self._files.clear()
        self._places.clear()


T = TypeVar("T")
Say = Callable[[str], None]
TRIES = 6
"""How often a question about a batch is put when the network or the server fails."""
MOST_ROUNDS = 5
"""How often one command asks again what batches did not answer."""
SLOWEST_POLL_S = 300.0
SENDING = "sending"


class BatchQueue:
    """The batches of one run."""

    def __init__(
        self, folder: Path, ledger: BatchLedger, service: BatchService, writer: LinesWriter, *, clock: Clock, say: Say
    ) -> None:
        self._folder = folder
        self._files = folder / FILES
        self.ledger = ledger
        self._service = service
        self._writer = writer
        self._clock = clock
        self._say = say
        self.answers = BatchAnswers(service)
        self._waiting: set[str] = set()
        self._lock = asyncio.Lock()
        self._left = asyncio.Event()
        self.rounds = 0
        self.again: Counter[str] = Counter()
        """Why requests are asked again, and how many."""
        for file in ledger.open:
            self._waiting.update(idents_of(self._files, file))
        for file in ledger.unread:
            self._load(file)

    @property
    def waiting(self) -> int:
        """Return how many requests wait, in batches and in the file that is being written."""
        return self.ledger.waiting + self._writer.lines

    @property
    def has_ended_ones(self) -> bool:
        """Tell whether some batch of the run, of this command or an earlier one, has ended."""
        return any(file.state in (ENDED, READ, VOID) for file in self.ledger.files)

    @property
    def may_ask_again(self) -> bool:
        """Tell whether what was not answered may go into another batch of this command."""
        return self.rounds < MOST_ROUNDS

    def waits(self, ident: str) -> bool:
        """Tell whether a request is in a batch that has not ended."""
        return ident in self._waiting

    def answer(self, ident: str) -> BatchResult | None:
        """Return the answer to a request, if its batch has brought one."""
        return self.answers.get(ident)

    def ask_again(self, ident: str, why: str) -> None:
        """Leave an answer out that is none: its request goes into the next batch."""
        self.answers.forget(ident)
        self.again[why] += 1

    async def put(self, ident: str, body: Body) -> None:
        """Put a request into the file that is being written; one that is full is sent first."""
        line = self._service.line(ident, body)
        size_bytes = sum(map(len, line))
        while not self._writer.fits(size_bytes):  # while one file is sent, others may fill the next
            async with self._lock:
                if not self._writer.fits(size_bytes):
                    await self._send(self._close_file())
        self._writer.put(ident, line)
        self._waiting.add(ident)

    async def flush(self) -> None:
        """Send what is written, also what an earlier command wrote and did not send."""
        async with self._lock:
            self._close_file()
            written = [file for file in self.ledger.files if file.state == WRITTEN]
            for file in written:
                await self._send(file)
            if written:
                self.rounds += 1
        for why, count in self.again.items():
            self._say(f"{count} asked again: {why}")
        self.again.clear()

    def _close_file(self) -> SentFile | None:
        file = self._writer.finish(len(self.ledger.files) + 1)
        if file is not None:
            self.ledger.files.append(file)
            self.ledger.save(self._folder)
        return file

    async def _send(self, file: SentFile | None) -> None:
        """Make a batch of a written file; one that was made without our hearing of it is taken up."""
        if file is None or file.state != WRITTEN:
            return
        lines = lines_file(self._files, file)
        known = frozenset(one.batch for one in self.ledger.files if one.batch is not None)
        unsure = file.words == SENDING

        async def submit() -> str:
            nonlocal unsure
            found = await self._service.find(lines, known) if unsure else None
            unsure = True
            return found or await self._service.submit(lines)

        file.words = SENDING  # from here on a crash may leave a batch that nobody noted: then it is looked for
        self.ledger.save(self._folder)
        file.batch = await self._steadily(submit)
        file.state, file.words = SENT, "sent"
        self.ledger.save(self._folder)
        lines.path.unlink(missing_ok=True)
        self._say(f"batch {file.batch}: {file.lines:,} requests sent, {file.size_bytes / 1e6:,.1f} MB")

    async def look(self) -> None:
        """Ask how every open batch stands; fetch the results of those that have ended."""
        for file in self.ledger.files:
            if file.state == SENT and file.batch is not None:
                await self._look_at(file, file.batch)

    async def _look_at(self, file: SentFile, batch: str) -> None:
        told = await self._steadily(lambda: self._service.look(batch))
        if (told.words, told.done) != (file.words, file.done):
            file.words, file.done = told.words, told.done
            self.ledger.save(self._folder)
            self._say(f"batch {batch}: {told.words}, {told.done:,} of {told.total or file.lines:,}")
        if told.state == "failed":
            self._refuse(file, told)
        if told.state == "ended":
            await self._fetch(file, batch, told)

    def _refuse(self, file: SentFile, told: BatchState) -> None:
        file.state = VOID
        self._waiting.difference_update(idents_of(self._files, file))
        self.ledger.save(self._folder)
        what = f"batch {file.batch} of {file.lines:,} requests was refused: {told.problem}"
        raise EnvironmentProblem(f"{what}; nothing of it was answered, the same command sends it again")

    async def _fetch(self, file: SentFile, batch: str, told: BatchState) -> None:
        into = self._files / f"{file.name}.results"

        async def fetch() -> None:
            into.unlink(missing_ok=True)
            await self._service.fetch(batch, told, into)

        await self._steadily(fetch)
        file.state = ENDED
        file.answered = self._load(file)
        self.ledger.save(self._folder)
        rest = file.lines - file.answered
        lost = f", {rest:,} not answered ({told.words})" if rest else ""
        self._say(f"batch {batch}: {file.answered:,} answers{lost}")

    def _load(self, file: SentFile) -> int:
        idents = frozenset(idents_of(self._files, file))
        self._waiting -= idents
        return self.answers.load(self._files / f"{file.name}.results", idents)

    def settle(self) -> None:
        """All answers are stored: let their files go."""
        for file in self.ledger.unread:
            file.state = READ
            for ending in (".ids", ".results"):
                (self._files / f"{file.name}{ending}").unlink(missing_ok=True)
        self.answers.close()
        self.ledger.save(self._folder)

    def leave(self) -> None:
        """Wait no longer; batches go on without us."""
        self._left.set()

    async def wait(self, poll_s: float, until: float | None = None) -> bool:
        """Wait until every batch has ended; False where it was left before, or the moment `until` came."""
        pause_s = poll_s
        while True:
            await self.look()
            if not self.ledger.open:
                return True
            if self._left.is_set() or (until is not None and self._clock.monotonic() + pause_s > until):
                return False
            left = asyncio.create_task(self._left.wait())
            slept = asyncio.create_task(self._clock.sleep(pause_s))
            await asyncio.wait({left, slept}, return_when=asyncio.FIRST_COMPLETED)
            for task in (left, slept):
                task.cancel()
            pause_s = min(max(SLOWEST_POLL_S, poll_s), pause_s * 1.5)

    async def close(self) -> None:
        """Close files and connections."""
        self.answers.close()
        await self._service.close()

    async def _steadily(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a call returns; what may help is tried again, and what fails in the end is one line."""
        for attempt in range(TRIES):
            try:
                return await call()
            except ModelError as error:
                if not error.retryable or attempt == TRIES - 1:
                    kept = "what was sent stays sent, and the same command goes on"
                    raise EnvironmentProblem(f"batches: {error}; {kept}") from None
                await self._clock.sleep(max(error.retry_after_s or 0.0, 0.5 * 2.0**attempt))
        raise AssertionError("the last try returns or raises")


# A served model whose requests go into batches: answered ones come back as live replies do, others are parked.

IDENT_LENGTH = 32
Affords = Callable[[int], None]


class BatchedModel:
    """Fits the Protocol `Model`; its identity is the served model's: the same trials, the same cache, the same run."""

    cacheable = True

    def __init__(
        self,
        served: ServedModel,
        queue: BatchQueue,
        left_out: frozenset[str],
        *,
        affords: Affords,
        timeout_s: float,
        live_rest: bool = False,
    ) -> None:
        self.name = served.name
        self.capabilities = served.capabilities
        self.image_policy = served.image_policy
        self.clock = served.clock
        self._served = served
        self._queue = queue
        self._left_out = left_out
        self._affords = affords
        self._timeout_s = timeout_s
        self._live_rest = live_rest
        self._piloted = False
        self._pilot = asyncio.Lock()

    @property
    def adjusted(self) -> tuple[str, ...]:
        """What is sent otherwise than asked."""
        return self._served.adjusted

    @property
    def warnings(self) -> tuple[str, ...]:
        """What replies showed of the server."""
        return self._served.warnings

    @property
    def has_batches(self) -> bool:
        """Tell whether requests of this run are in batches whose replies are not stored yet: these are paid for."""
        return bool(self._queue.ledger.open or self._queue.ledger.unread)

    def identity(self) -> Mapping[str, Any]:
        """Return what changes the answers: what changes the served model's."""
        return self._served.identity()

    def surroundings(self) -> Mapping[str, Any]:
        """Return the served model's."""
        return self._served.surroundings()

    async def check(self) -> None:
        """Ask what the served model asks."""
        await self._served.check()

    async def close(self) -> None:
        """Close the served model; batches go on."""
        await self._served.close()

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Return the answer a batch brought, ask the first one live, or park the request in a batch."""
        ident = request_ident(request, images)
        answered = self._answered(ident, request, images)
        if answered is not None:
            return answered
        if self._queue.waits(ident):
            raise Parked
        if self._live_rest and self._queue.has_ended_ones:
            return await self._ask_live(request, images)
        async with self._pilot:
            if not self._piloted:  # one request tells what the server refuses; a batch would be refused line by line
                prediction = await self._ask_live(request, images)
                self._piloted = True
                return prediction
        if not self._queue.may_ask_again:
            raise ModelError(FailureKind.TIMEOUT, f"no batch answered it in {self._queue.rounds} rounds")
        self._affords(self._queue.waiting)
        await self._queue.put(ident, self._served.write_body(request, images, self._left_out))
        raise Parked

    def _answered(self, ident: str, request: Request, images: EncodedImages) -> Prediction | None:
        found = self._queue.answer(ident)
        if found is None:
            return None
        try:
            prediction = self._served.read_body(request, images, found.status, found.body)
        except ModelError as error:
            if not error.retryable:
                raise
            if self._queue.may_ask_again:
                self._queue.ask_again(ident, f"{error.kind.value}, {error}")
                return None
            raise ModelError(error.kind, str(error), status=error.status, detail=error.detail) from None
        return msgspec.structs.replace(prediction, detail={**prediction.detail, "batch": True})

    async def _ask_live(self, request: Request, images: EncodedImages) -> Prediction:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._served.predict(request, images)
        except TimeoutError:
            message = f"no answer within {self._timeout_s:g} s"
            raise ModelError(FailureKind.TIMEOUT, message, retryable=True) from None


def request_ident(request: Request, images: EncodedImages) -> str:
    """Return what names a request in a batch: its trial and all that is sent, however it is sent."""
    params = msgspec.structs.replace(request.params, timeout_s=None, stream=None)
    turns = [(turn.role, turn.text, turn.parts) for turn in request.messages]
    pictures = [images[image].sent.sha256 for turn in request.messages for image in turn.images]
    return sha256_hex(canonical_json((request.key, turns, pictures, params, request.prefix)))[:IDENT_LENGTH]


# Passes over a plan until no request waits: each stores what batches answered and parks what they did not.

AskOnce = Callable[[], Awaitable[RunState]]
"""One pass over the plan."""
OnSignals = Callable[[Callable[[], None]], AbstractContextManager[None]]


async def ask_in_rounds(
    queue: BatchQueue, ask_once: AskOnce, on_signals: OnSignals, *, poll_s: float, leave: bool, until: float | None
) -> RunState:
    """Run passes until all is answered, or the batches are left."""
    total: RunState | None = None
    while True:
        await queue.look()
        state = await ask_once()
        stopped = state.unfinished
        if total is None:
            total = state
        else:
            total.add_pass(state)
        if stopped and not state.over_limit:  # whoever stops it wants nothing more sent
            return _left(total, queue)
        await queue.flush()
        if stopped:
            return _left(total, queue)
        queue.settle()
        if not queue.ledger.open:
            return total
        with on_signals(queue.leave):
            if leave or not await queue.wait(poll_s, until):
                return _left(total, queue)


def _left(total: RunState, queue: BatchQueue) -> RunState:
    total.in_batches, total.unfinished = queue.ledger.waiting, True
    return total


OnePass = Callable[[Model, Policy], Awaitable[RunState]]
StopOnSignals = Callable[[Callable[[], None]], AbstractContextManager[None]]


def check(folder: Path, model: Model, settings: RunSettings) -> None:
    """Refuse what batches cannot do, and to ask live what waits in batches already: it would be paid for twice."""
    kept = read_ledger(folder)
    if settings.batch:
        batched_by(model)
        if settings.stream:
            raise UsageError("--stream: nothing is streamed by --batch; leave one of them out")
    elif kept is not None and kept.open:
        there = f"{folder} has {kept.waiting} requests in batches"
        raise UsageError(f"{there}: add --batch to collect them, or `snellen batch cancel {folder}` first")


def check_plan(plan: Plan, settings: RunSettings) -> None:
    """Refuse what batches cannot do with these tasks; before anything is estimated."""
    for planned in plan.tasks:
        inferencer: Inferencer = plan.registry.get("inferencer", planned.task.infer)
        if Capability.LIKELIHOOD in inferencer.needs:
            raise UsageError(f"--batch: task {planned.task.name!r} asks for likelihoods, which no batch gives")
    if settings.until_ci is not None:
        raise UsageError("--until-ci looks at replies as they come, and --batch brings them all at once: give one")


async def ask(session: Session, one_pass: OnePass, stop_on_signals: StopOnSignals) -> RunState:
    """Ask in passes until nothing waits, or the batches are left."""
    queue, model = _open(session)
    policy = replace(session.policy, timeout_s=None, adaptive=False)  # waiting for a file to be sent is no silence
    try:
        return await ask_in_rounds(
            queue,
            lambda: one_pass(model, policy),
            stop_on_signals,
            poll_s=session.settings.batch_poll_s,
            leave=session.settings.batch_leave,
            until=session.limits.ends,
        )
    finally:
        await queue.close()


def _name(session: Session, ledger: BatchLedger) -> str:
    return f"{session.header.id[:12]}-{ledger.folder}"


def _open(session: Session) -> tuple[BatchQueue, BatchedModel]:
    served, terms, settings = batched_by(session.model), terms_of(session.model), session.settings
    service, folder = open_service(served), session.folder
    ledger = open_ledger(folder, served.name, str(served.identity()["base_url"]), settings.query)
    most = min(settings.batch_lines or terms.requests, terms.requests)
    bounds: dict[str, Any] = {"most_lines": most, "most_bytes": terms.most_bytes, "run": _name(session, ledger)}
    writer = LinesWriter(folder / FILES, service, **bounds)
    queue = BatchQueue(folder, ledger, service, writer, clock=SystemClock(), say=session.listener.notify)

    def check_affordable(waiting: int) -> None:
        session.limits.check_batch(waiting, terms.share)

    seconds = session.policy.timeout_s or settings.timeout_s or 600.0
    rest: dict[str, Any] = {"timeout_s": seconds, "live_rest": settings.batch_rest == "live"}
    return queue, BatchedModel(served, queue, service.left_out, affords=check_affordable, **rest)
