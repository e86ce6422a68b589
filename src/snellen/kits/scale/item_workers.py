"""Flags to who does work on many items: this process, processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...api.executors import Workers
from ...core.errors import SnellenError
from ...data.files.work import Mapper, WorkSpec
from .driver import Fleet
from .leases import GIVE_UP_AFTER
from .links import Link, Recipe
from .process_link import ProcessLink
from .work_model import LEASE, UNIT, WorkModel, map_by_replicas

if TYPE_CHECKING:
    from .ray_cluster import RayCluster

MAKER = f"{__name__}:make_work_model"
ADVICE = "by hand, or the machine is out of memory: fewer --replicas"


class LeaseTerms(NamedTuple):
    """How items are leased, as `Fleet` means it."""

    lease: int = LEASE
    held: int | None = None
    most_ends: int = GIVE_UP_AFTER
    unit: str = UNIT


TERMS = LeaseTerms()


def make_work_model(given: tuple[str, bytes]) -> WorkModel:
    """Return the model that does work, in a replica."""
    return WorkModel(WorkSpec(*given))


def mapper_for(workers: Workers, tell: Callable[[str], None] = lambda _: None) -> Mapper:
    """Return who does work; `tell` hears of replicas that were lost or given up."""
    return partial(_by_replicas, workers, tell)


def _by_replicas(
    workers: Workers, tell: Callable[[str], None], spec: WorkSpec, items: Iterable[bytes]
) -> Iterator[bytes]:
    return map_by_replicas(partial(open_workers, workers, spec, tell), items)


def open_workers(
    workers: Workers,
    spec: WorkSpec,
    tell: Callable[[str], object] = lambda _: None,
    terms: LeaseTerms = TERMS,
    look: Callable[[RayCluster], None] = lambda _: None,
) -> Fleet:
    """Return the workers, not yet started; `look` refuses a cluster that cannot do it."""
    wanted, model = workers.replicas or 1, WorkModel(spec)
    recipe = Recipe(MAKER, tuple(spec), str(Path.cwd()))
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
