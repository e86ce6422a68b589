"""Asking by batches of a provider: checks what cannot be asked so, opens the queue, and asks in rounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.plan import Plan
from ...api.settings import RunSettings
from ...core.clock import SystemClock
from ...core.errors import UsageError
from ...core.protocols import Capability, Inferencer, Model
from ...engine.policy import Policy
from ...engine.state import RunState
from .batch_ledger import FILES, open_ledger, read_ledger
from .batch_lines import LinesWriter
from .batch_queue import BatchQueue
from .batch_rounds import ask_in_rounds
from .batch_services import batched_by, open_service, terms_of
from .batched_model import BatchedModel

if TYPE_CHECKING:
    from ...api.session import Session

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


def _open(session: Session) -> tuple[BatchQueue, BatchedModel]:
    served, terms, settings = batched_by(session.model), terms_of(session.model), session.settings
    service, folder = open_service(served), session.folder
    ledger = open_ledger(folder, served.name, str(served.identity()["base_url"]), settings.query)
    most = min(settings.batch_lines or terms.requests, terms.requests)
    bounds: dict[str, Any] = {"most_lines": most, "most_bytes": terms.most_bytes, "run": session.header.id}
    writer = LinesWriter(folder / FILES, service, **bounds)
    queue = BatchQueue(folder, ledger, service, writer, clock=SystemClock(), say=session.listener.notify)

    def check_affordable(waiting: int) -> None:
        session.limits.check_batch(waiting, terms.share)

    seconds = session.policy.timeout_s or settings.timeout_s or 600.0
    rest: dict[str, Any] = {"timeout_s": seconds, "live_rest": settings.batch_rest == "live"}
    return queue, BatchedModel(served, queue, service.left_out, affords=check_affordable, **rest)
