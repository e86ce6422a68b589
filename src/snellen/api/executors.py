"""Who works: this process, or an executor that a kit registers (processes of this machine, a Ray cluster)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.protocols import Model
from ..data.files.work import Mapper, do_here
from ..scoring.ranges import Executor as ScoringExecutor
from .settings import RunSettings

if TYPE_CHECKING:  # whoever scores asks nobody
    from ..engine.limits import Policy
    from ..engine.state import RunState
    from ..store.writer import TrialWriter

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


def executor_of(name: str) -> Executor | None:
    """Return the registered executor; None for this process."""
    if name == LOCAL:
        return None
    registry = default_registry()
    if registry.find("executor", name) is None:
        raise UsageError(f"--executor {name!r} is none of {', '.join([LOCAL, *registry.names('executor')])}")
    made: Executor = registry.get("executor", name)
    return made


def check_executor(settings: RunSettings) -> None:
    """Refuse settings of replicas where there are none, before anything is planned."""
    if executor_of(settings.executor) is None:
        given = [("--replicas", settings.replicas), ("--gpus-per-replica", settings.gpus_per_replica)]
        given.append(("--replica-patience", settings.replica_patience_s))
        named = [name for name, value in [*given, ("--ray-address", settings.ray_address)] if value]
        if named:
            raise UsageError(f"{named[0]} is for --executor processes or ray: without one this process answers alone")
    if settings.executor == "processes" and settings.ray_address:
        raise UsageError("--ray-address is for --executor ray")
    if settings.executor == "processes" and settings.gpus_per_replica % 1:
        raise UsageError("--gpus-per-replica of processes is a whole number: to share a GPU is for --executor ray")


def mapper_for(workers: Workers, tell: Callable[[str], None] = lambda _: None) -> Mapper:
    """Return who does work; `tell` hears of replicas that were lost or given up."""
    executor = _checked(workers, "works")
    return do_here if executor is None else executor.mapper_for(workers, tell)


def range_executor(
    folder: Path, workers: Workers, *, registry: tuple[str, Any], say: Callable[[str], object]
) -> AbstractContextManager[ScoringExecutor | None]:
    """Give who scores the ranges of a run; None is this process. `registry` is how others make theirs."""
    executor = _checked(workers, "scores")
    return nullcontext() if executor is None else executor.scoring(workers, folder, registry, say)


def _checked(workers: Workers, does: str) -> Executor | None:
    """Return the executor; refuse what it would ignore."""
    executor = executor_of(workers.executor)
    if executor is None and workers.replicas:
        raise UsageError(f"--replicas is for --executor processes or ray: without one this process {does} alone")
    if workers.executor != "ray" and workers.ray_address:
        raise UsageError("--ray-address is for --executor ray")
    return executor
