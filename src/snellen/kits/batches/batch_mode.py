"""Asking by batches of a provider: checks what cannot be asked so, opens the queue, and asks in rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ...api.plan import Plan
from ...api.settings import RunSettings
from ...core.clock import SystemClock
from ...core.errors import ModelError, Parked, UsageError
from ...core.ids import canonical_json, sha256_hex
from ...core.protocols import Capability, EncodedImages, Inferencer, Model
from ...core.types import FailureKind, Prediction, Request
from ...engine.policy import Policy
from ...engine.state import RunState
from ...model.served.served_model import ServedModel
from .batch_ledger import FILES, BatchLedger, open_ledger, read_ledger
from .batch_lines import LinesWriter
from .batch_queue import BatchQueue
from .batch_services import batched_by, open_service, terms_of

if TYPE_CHECKING:
    from ...api.session import Session


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


def price_share(model: Model) -> float:
    """Return the part of the live price that a reply of a batch costs."""
    return terms_of(model).share


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
