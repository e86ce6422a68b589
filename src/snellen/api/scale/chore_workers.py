"""Flags to who does work on many items: this process, processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...core.errors import UsageError
from ...data.chores import Chore, Mapper, do_here
from ...fleet.chore_model import LEASE, ChoreModel, map_by_replicas
from ...fleet.driver import Fleet
from ...fleet.links import Link, Recipe
from ...fleet.process_link import ProcessLink
from .replicas import EXECUTORS

MAKER = f"{__name__}:make_chore_model"


class Workers(NamedTuple):
    """Who works: as `snellen run` means it."""

    executor: str = "local"
    replicas: int | None = None
    ray_address: str | None = None


def make_chore_model(given: tuple[str, bytes]) -> ChoreModel:
    """Return the model that does a chore, in a replica."""
    return ChoreModel(Chore(*given))


def mapper_for(workers: Workers, tell: Callable[[str], None] = lambda _: None) -> Mapper:
    """Return who does chores; `tell` hears, once a chore is done, of replicas that were lost or given up."""
    if workers.executor not in EXECUTORS:
        raise UsageError(f"--executor {workers.executor!r} is none of {', '.join(EXECUTORS)}")
    if workers.executor == "local":
        if workers.replicas or workers.ray_address:
            named = "--replicas" if workers.replicas else "--ray-address"
            raise UsageError(f"{named} is for --executor processes or ray: without one this process works alone")
        return do_here
    if workers.executor == "processes" and workers.ray_address:
        raise UsageError("--ray-address is for --executor ray")
    return partial(_by_replicas, workers, tell)


def _by_replicas(
    workers: Workers, tell: Callable[[str], None], chore: Chore, items: Iterable[bytes]
) -> Iterator[bytes]:
    fleets: list[Fleet] = []

    def opened() -> Fleet:
        fleets.append(open_workers(workers, chore))
        return fleets[-1]

    try:
        yield from map_by_replicas(opened, items)
    finally:
        for fleet in fleets:
            for note in fleet.notes:
                tell(note)


def open_workers(workers: Workers, chore: Chore) -> Fleet:
    """Return the workers of a chore, not yet started."""
    wanted, model = workers.replicas or 1, ChoreModel(chore)
    recipe = Recipe(MAKER, tuple(chore), str(Path.cwd()))
    if workers.executor == "processes":

        def make_process(number: int) -> Link:
            return ProcessLink(number, recipe)

        return Fleet(model, wanted, make_process, lease=LEASE)
    from ...fleet.ray_cluster import RayCluster

    cluster = RayCluster(workers.ray_address)
    make_actor = partial(cluster.link, recipe, 0.0)
    fleet = Fleet(model, wanted, make_actor, lease=LEASE, let_go=cluster.close, lost=cluster.lost)
    fleet.notes += cluster.check_room(wanted, 0.0)
    return fleet
