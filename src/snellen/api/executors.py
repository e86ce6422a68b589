"""Who works: this process, or an executor that a kit registers (processes of this machine, a Ray cluster)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.protocols import Model
from ..data.files.work import Mapper, do_here
from ..engine.limits import Policy
from ..engine.state import RunState
from ..scoring.ranges import Executor as ScoringExecutor
from ..store.writer import TrialWriter
from .settings import RunSettings

LOCAL = "local"


class Workers(NamedTuple):
    """Who works: as `snellen run` means it."""

    executor: str = LOCAL
    replicas: int | None = None
    ray_address: str | None = None


class Executor(Protocol):
    """What is registered as `executor`: it answers requests, does work and scores ranges in place of this process."""

    async def open_replicas(self, model: Model, settings: RunSettings) -> Model:
        """Return who answers: to the engine one model, not yet started."""

    def policy_for(self, model: Model, policy: Policy, settings: RunSettings) -> Policy:
        """Return the engine's limits with such a model."""

    def keeping_replicas(self, model: Model, state: RunState, writer: TrialWriter) -> AbstractContextManager[None]:
        """Show the replicas while they work, and keep what became of them with the run."""

    def mapper_for(self, workers: Workers, tell: Callable[[str], None]) -> Mapper:
        """Return who does work; `tell` hears of replicas that were lost or given up."""

    def scoring(
        self, workers: Workers, folder: Path, registry: tuple[str, Any], say: Callable[[str], object]
    ) -> AbstractContextManager[ScoringExecutor]:
        """Give who scores the ranges of a run; `registry` is how others make theirs."""


def executor_names() -> list[str]:
    """Return who may work, this process first."""
    return [LOCAL, *default_registry().names("executor")]


def executor_of(name: str) -> Executor:
    """Return a registered executor."""
    made: Executor = default_registry().get("executor", name)
    return made


def check_executor(settings: RunSettings) -> None:
    """Refuse settings of replicas where there are none, before anything is planned."""
    _check_name(settings.executor)
    if settings.executor == LOCAL:
        given = [("--replicas", settings.replicas), ("--gpus-per-replica", settings.gpus_per_replica)]
        given.append(("--replica-patience", settings.replica_patience_s))
        named = [name for name, value in [*given, ("--ray-address", settings.ray_address)] if value]
        if named:
            raise UsageError(f"{named[0]} is for --executor processes or ray: without one this process answers alone")
    if settings.executor == "processes" and settings.ray_address:
        raise UsageError("--ray-address is for --executor ray")
    if settings.executor == "processes" and settings.gpus_per_replica % 1:
        raise UsageError("--gpus-per-replica of processes is a whole number: to share a GPU is for --executor ray")


def _check_name(name: str) -> None:
    if name not in (known := executor_names()):
        raise UsageError(f"--executor {name!r} is none of {', '.join(known)}")


async def open_replicas(model: Model, settings: RunSettings) -> Model:
    """Return who answers: the model itself, or an executor's replicas that have not been started."""
    return model if settings.executor == LOCAL else await executor_of(settings.executor).open_replicas(model, settings)


def policy_for(model: Model, policy: Policy, settings: RunSettings) -> Policy:
    """Return the engine's limits, with replicas those that fit them."""
    return policy if settings.executor == LOCAL else executor_of(settings.executor).policy_for(model, policy, settings)


def keeping_replicas(model: Model, state: RunState, writer: TrialWriter, executor: str) -> AbstractContextManager[None]:
    """Show the replicas of an executor while they work, and keep what became of them with the run."""
    return nullcontext() if executor == LOCAL else executor_of(executor).keeping_replicas(model, state, writer)


def mapper_for(workers: Workers, tell: Callable[[str], None] = lambda _: None) -> Mapper:
    """Return who does work; `tell` hears of replicas that were lost or given up."""
    _check_workers(workers, "works")
    return do_here if workers.executor == LOCAL else executor_of(workers.executor).mapper_for(workers, tell)


def range_executor(
    folder: Path, workers: Workers, *, registry: tuple[str, Any], say: Callable[[str], object]
) -> AbstractContextManager[ScoringExecutor | None]:
    """Give who scores the ranges of a run; None is this process. `registry` is how others make theirs."""
    _check_workers(workers, "scores")
    if workers.executor == LOCAL:
        return nullcontext()
    return executor_of(workers.executor).scoring(workers, folder, registry, say)


def _check_workers(workers: Workers, does: str) -> None:
    """Refuse what would be ignored."""
    _check_name(workers.executor)
    if workers.executor == LOCAL and workers.replicas:
        raise UsageError(f"--replicas is for --executor processes or ray: without one this process {does} alone")
    if workers.executor != "ray" and workers.ray_address:
        raise UsageError("--ray-address is for --executor ray")
