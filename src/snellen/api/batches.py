"""Asking by batches of a provider, as the core needs it: the registered way of asking `batch` does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.protocols import Model
from ..engine.limits import Policy
from ..engine.state import RunState
from .plan import Plan
from .settings import RunSettings, table

if TYPE_CHECKING:
    from .session import Session

LEDGER = "batches.json"
"""The file of a run that has batches."""
OnePass = Callable[[Model, Policy], Awaitable[RunState]]
StopOnSignals = Callable[[Callable[[], None]], AbstractContextManager[None]]


class Asking(Protocol):
    """What is registered as `asking`: another way to have requests answered than one by one."""

    def check(self, folder: Path, model: Model, settings: RunSettings) -> None:
        """Refuse what cannot be asked so, and to ask live what waits already: it would be paid for twice."""

    def check_plan(self, plan: Plan, settings: RunSettings) -> None:
        """Refuse what cannot be done with these tasks; before anything is estimated."""

    async def ask(self, session: Session, one_pass: OnePass, stop_on_signals: StopOnSignals) -> RunState:
        """Ask in passes until nothing waits, or what waits is left."""


def by_batches() -> Asking:
    """Return the registered way of asking by batches."""
    made: Asking = default_registry().get("asking", "batch")
    return made


def check_batches(folder: Path, model: Model, settings: RunSettings) -> None:
    """Refuse what batches cannot do, and to ask live what waits in batches already."""
    if settings.batch or (folder / LEDGER).exists():
        by_batches().check(folder, model, settings)
    if not settings.batch:
        _refuse_idle(settings)


def check_batched_plan(plan: Plan, settings: RunSettings) -> None:
    """Refuse, beside what batches never can, what they cannot do with these tasks."""
    check_batches(plan.folder, plan.model, settings)
    if settings.batch:
        by_batches().check_plan(plan, settings)


ONLY_BATCHES = ("batch_leave", "batch_rest", "batch_lines")
"""Settings that say how batches are made; how often one looks at them changes nothing where there are none."""


def _refuse_idle(settings: RunSettings) -> None:
    """Refuse settings of batches where none are made: who leaves --batch out would pay twice without being told."""
    for name in ONLY_BATCHES:
        row = table(RunSettings)[name]
        if getattr(settings, name) != row.default:
            raise UsageError(f"{row.flags[0]} says nothing without --batch: add --batch, or leave it out")
