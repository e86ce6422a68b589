"""Flags to who does work on many items: this process, processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...api.executors import Workers
from ...core.errors import SnellenError
from ...data.files.chores import Chore, Mapper
from .chore_model import LEASE, UNIT, ChoreModel, map_by_replicas
from .driver import Fleet
from .leases import GIVE_UP_AFTER
from .links import Link, Recipe
from .process_link import ProcessLink

if TYPE_CHECKING:
    from .ray_cluster import RayCluster

MAKER = f"{__name__}:make_chore_model"
ADVICE = "by hand, or the machine is out of memory: fewer --replicas"


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
    from .ray_cluster import RayCluster

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
