"""A run by batches: checks what cannot be asked so, opens the queue, and asks in rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from ...core.clock import SystemClock
from ...core.errors import UsageError
from ...core.protocols import Capability, Inferencer, Model
from ...engine.policy import Policy
from ...engine.queued.batch_ledger import FILES, open_ledger, read_ledger
from ...engine.queued.batch_lines import LinesWriter
from ...engine.queued.batch_queue import BatchQueue, Say
from ...engine.queued.batch_rounds import ask_in_rounds
from ...engine.queued.batched_model import BatchedModel
from ...engine.spending import LimitReached, Spending
from ...engine.state import RunState
from ...model.batch.batch_services import batched_by, open_service, terms_of
from ..plan import Plan
from ..settings import RunSettings

Asked = tuple[RunState, bool, Mapping[str, Any] | None]
AskOnce = Callable[[Model, Policy], Awaitable[Asked]]
StopOnSignals = Callable[[Callable[[], None], "asyncio.Task[Any] | None"], AbstractContextManager[None]]


def unheard(line: str) -> None:
    """Say something where nobody listens."""


def check_batch_settings(plan: Plan, settings: RunSettings) -> None:
    """Refuse what batches cannot do, and to ask live what waits in batches already: it would be paid for twice."""
    kept = read_ledger(plan.folder)
    if not settings.batch:
        if kept is not None and kept.open:
            there = f"{plan.folder} has {kept.waiting} requests in batches"
            raise UsageError(f"{there}: add --batch to collect them, or `snellen batch cancel {plan.folder}` first")
        _refuse_idle(settings)
        return
    batched_by(plan.model)
    for planned in plan.tasks:
        inferencer: Inferencer = plan.registry.get("inferencer", planned.task.infer)
        if Capability.LIKELIHOOD in inferencer.needs:
            raise UsageError(f"--batch: task {planned.task.name!r} asks for likelihoods, which no batch gives")
    if settings.until_ci is not None:
        raise UsageError("--until-ci looks at replies as they come, and --batch brings them all at once: give one")
    if settings.stream:
        raise UsageError("--stream: nothing is streamed by --batch; leave one of them out")


ONLY_BATCHES = {"batch_leave": "--batch-leave", "batch_rest": "--batch-rest", "batch_lines": "--batch-lines"}
"""Settings that say how batches are made; how often one looks at them changes nothing where there are none."""


def _refuse_idle(settings: RunSettings) -> None:
    """Refuse settings of batches where none are made: who leaves --batch out would pay twice without being told."""
    usual = RunSettings(tasks=settings.tasks, model=settings.model)
    for name, flag in ONLY_BATCHES.items():
        if getattr(settings, name) != getattr(usual, name):
            raise UsageError(f"{flag} says nothing without --batch: add --batch, or leave it out")


@dataclass(frozen=True, slots=True)
class BatchMode:
    """One command's work on the batches of a run."""

    plan: Plan
    settings: RunSettings
    policy: Policy
    spending: Spending | None
    stop_on_signals: StopOnSignals
    say: Say

    async def run(self, ask_once: AskOnce, ends: float | None) -> Asked:
        """Ask until nothing waits, or the batches are left."""
        queue, model = self._open()
        policy = replace(self.policy, timeout_s=None, adaptive=False)  # waiting for a file to be sent is no silence
        task = asyncio.current_task()

        async def one_pass() -> tuple[RunState, bool]:
            state, stopped, _ = await ask_once(model, policy)
            return state, stopped

        try:
            total, left = await ask_in_rounds(
                queue,
                one_pass,
                lambda leave: self.stop_on_signals(leave, task),
                poll_s=self.settings.batch_poll_s,
                leave=self.settings.batch_leave,
                until=ends,
            )
        finally:
            await queue.close()
        return total, left, None

    def _open(self) -> tuple[BatchQueue, BatchedModel]:
        served, terms, settings = batched_by(self.plan.model), terms_of(self.plan.model), self.settings
        service, folder = open_service(served), self.plan.folder
        ledger = open_ledger(folder, served.name, str(served.identity()["base_url"]), settings.query)
        most = min(settings.batch_lines or terms.requests, terms.requests)
        bounds: dict[str, Any] = {"most_lines": most, "most_bytes": terms.most_bytes, "run": self.plan.header.id}
        writer = LinesWriter(folder / FILES, service, **bounds)
        queue = BatchQueue(folder, ledger, service, writer, clock=SystemClock(), say=self.say)

        def affords(waiting: int) -> None:
            if self.spending is not None and not self.spending.affords(waiting, terms.share):
                raise LimitReached(f"{waiting} requests wait in batches, and one more might pass the limit")

        seconds = self.policy.timeout_s or settings.timeout_s or 600.0
        options: dict[str, Any] = {"affords": affords, "timeout_s": seconds, "live_rest": settings.batch_rest == "live"}
        return queue, BatchedModel(served, queue, service.left_out, **options)
