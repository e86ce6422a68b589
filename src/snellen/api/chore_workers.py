"""Flags to who does work on many items: this process, processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import SnellenError, UsageError
from ..data.files.chores import Chore, Mapper, do_here
from ..fleet.chore_model import LEASE, UNIT, ChoreModel, map_by_replicas
from ..fleet.driver import Fleet
from ..fleet.leases import GIVE_UP_AFTER
from ..fleet.links import Link, Recipe
from ..fleet.process_link import ProcessLink
from .replicas import EXECUTORS

if TYPE_CHECKING:
    from ..fleet.ray_cluster import RayCluster

MAKER = f"{__name__}:make_chore_model"
ADVICE = "by hand, or the machine is out of memory: fewer --replicas"


class Workers(NamedTuple):
    """Who works: as `snellen run` means it."""

    executor: str = "local"
    replicas: int | None = None
    ray_address: str | None = None


class LeaseTerms(NamedTuple):
    """How items are leased, as `Fleet` means it."""

    lease: int = LEASE
    held: int | None = None
    most_ends: int = GIVE_UP_AFTER
    unit: str = UNIT


TERMS = LeaseTerms()


def make_chore_model(given: tuple[str, bytes]) -> ChoreModel:
    """Return the model that does a chore, in a replica."""
    return ChoreModel(Chore(*given))


def mapper_for(workers: Workers, tell: Callable[[str], None] = lambda _: None) -> Mapper:
    """Return who does chores; `tell` hears of replicas that were lost or given up."""
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
    return map_by_replicas(partial(open_workers, workers, chore, tell), items)


def open_workers(
    workers: Workers,
    chore: Chore,
    tell: Callable[[str], object] = lambda _: None,
    terms: LeaseTerms = TERMS,
    look: Callable[[RayCluster], None] = lambda _: None,
) -> Fleet:
    """Return the workers of a chore, not yet started; `look` refuses a cluster that cannot do it."""
    wanted, model = workers.replicas or 1, ChoreModel(chore)
    recipe = Recipe(MAKER, tuple(chore), str(Path.cwd()))
    if workers.executor == "processes":

        def make_process(number: int) -> Link:
            return ProcessLink(number, recipe, advice=ADVICE)

        return Fleet(model, wanted, make_process, tell=tell, **terms._asdict())
    from ..fleet.ray_cluster import RayCluster

    cluster = RayCluster(workers.ray_address)
    try:
        look(cluster)
        notes = cluster.check_room(wanted, 0.0)
    except SnellenError:
        cluster.close()
        raise
    make_actor = partial(cluster.link, recipe, 0.0)
    fleet = Fleet(model, wanted, make_actor, tell=tell, let_go=cluster.close, lost=cluster.lost, **terms._asdict())
    for words in notes:
        fleet.note(words)
    return fleet
