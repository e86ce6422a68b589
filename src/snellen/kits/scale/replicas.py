"""Settings to who answers: the model itself, or a fleet of replicas in processes or on a Ray cluster."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...api.chosen_model import create_model
from ...api.plan import registry_for
from ...api.settings import RunSettings
from ...core.errors import UsageError
from ...core.protocols import Model
from ...engine.limits import Policy
from ...engine.state import RunState
from ...store.writer import TrialWriter
from .driver import Fleet
from .links import Recipe
from .process_link import ProcessLink
from .replica_state import PATIENCE_S

MAKER = f"{__name__}:make_replica_model"
META = "replicas"
"""Under this name a run keeps who answered: one entry a command."""


def make_replica_model(settings: RunSettings) -> Model:
    """Return the model of a run's settings, in a replica."""
    return create_model(settings, registry_for(settings))


async def open_replicas(model: Model, settings: RunSettings) -> Model:
    """Return who answers: a fleet that has not been started."""
    wanted, patience_s = settings.replicas or 1, settings.replica_patience_s or PATIENCE_S
    recipe = Recipe(MAKER, msgspec.structs.replace(settings, tasks=(), command=""), str(Path.cwd()))
    if settings.executor == "processes":
        make_process = partial(_process_link, recipe, int(settings.gpus_per_replica))
        return Fleet(model, wanted, make_process, patience_s=patience_s)
    from .ray_cluster import RayCluster

    cluster = await asyncio.to_thread(RayCluster, settings.ray_address)
    try:
        notes = cluster.check_room(wanted, settings.gpus_per_replica)
    except UsageError:
        await asyncio.to_thread(cluster.close)
        raise
    make_link = partial(cluster.link, recipe, settings.gpus_per_replica)
    over: dict[str, Any] = {"ships_files": True, "let_go": cluster.close, "lost": cluster.lost}
    fleet = Fleet(model, wanted, make_link, patience_s=patience_s, **over)
    fleet.notes += notes
    return fleet


def _process_link(recipe: Recipe, gpus: int, number: int) -> ProcessLink:
    devices = ",".join(str(gpus * (number - 1) + place) for place in range(gpus))
    return ProcessLink(number, recipe, {"CUDA_VISIBLE_DEVICES": devices} if gpus else {})


def policy_for(model: Model, policy: Policy, settings: RunSettings) -> Policy:
    """Return the engine's limits with a fleet: enough under way for all replicas; waiting for a lease is no silence."""
    if not isinstance(model, Fleet) or model.holds is None:
        return policy
    workers = settings.max_workers or max(policy.max_workers, model.holds)
    return dataclasses.replace(policy, max_workers=workers, timeout_s=None, adaptive=False)


@contextmanager
def keeping_replicas(model: Model, state: RunState, writer: TrialWriter) -> Iterator[None]:
    """Show the replicas while they work and keep what became of them with the run."""
    if not isinstance(model, Fleet):
        yield
        return
    state.replicas = model.describe_replicas
    try:
        yield
    finally:
        words = model.describe_replicas()  # who answered at the end, not who is left once all are closed
        state.replicas = lambda: words
        told: list[dict[str, Any]] = writer.meta(META) or []
        writer.put_meta(META, [*told, model.summary() | {"notes": model.notes}])
