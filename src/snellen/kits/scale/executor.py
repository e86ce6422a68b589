"""The executors `processes` and `ray`: who answers a run, who scores its ranges, and who works on many items."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ...api.chosen_model import create_model
from ...api.executors import Workers
from ...api.plan import registry_for
from ...api.settings import RunSettings
from ...core.errors import EnvironmentProblem, SnellenError, UsageError
from ...core.protocols import Model
from ...data.files.work import Mapper, WorkSpec
from ...engine.limits import Policy
from ...engine.state import RunState
from ...scoring.ranges import Executor, Name, pack_item, scoring_spec
from ...store.reader import RunReader
from ...store.writer import TrialWriter
from .driver import PATIENCE_S, Fleet, Replicas
from .host import Answers, Worker
from .leases import GIVE_UP_AFTER
from .links import Link, Recipe
from .processes import ProcessLink
from .work_fleet import LEASE, ItemLost, WorkFleet, map_by_replicas

if TYPE_CHECKING:
    from .ray_cluster import RayCluster

# A run: the model itself, or a fleet of replicas in processes or on a Ray cluster.

MAKER = f"{__name__}:make_replica_model"
META = "replicas"
"""Under this name a run keeps who answered: one entry a command."""


def make_replica_model(settings: RunSettings) -> Answers:
    """Return the model of a run's settings, in a replica."""
    return Answers(create_model(settings, registry_for(settings)))


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


# Work on many items: this process, processes of this machine, or actors of a Ray cluster.

WORKER_MAKER = f"{__name__}:make_worker"
ADVICE = "by hand, or the machine is out of memory: fewer --replicas"


class LeaseTerms(NamedTuple):
    """How items are leased, as `Replicas` means it."""

    lease: int = LEASE
    held: int | None = None
    most_ends: int = GIVE_UP_AFTER
    unit: str = "item"


def make_worker(given: tuple[str, bytes]) -> Worker:
    """Return who does work, in a replica."""
    return Worker(WorkSpec(*given))


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
    terms: LeaseTerms | None = None,
    look: Callable[[RayCluster], None] = lambda _: None,
) -> Replicas:
    """Return the workers, not yet started; `look` refuses a cluster that cannot do it."""
    wanted, worker, terms = workers.replicas or 1, Worker(spec), terms or LeaseTerms()
    recipe = Recipe(WORKER_MAKER, tuple(spec), str(Path.cwd()))
    if workers.executor == "processes":

        def make_process(number: int) -> Link:
            return ProcessLink(number, recipe, advice=ADVICE)

        return Replicas(worker, wanted, make_process, tell=tell, **terms._asdict())
    from .ray_cluster import RayCluster

    cluster = RayCluster(workers.ray_address)
    try:
        look(cluster)
        notes = cluster.check_room(wanted, 0.0)
    except SnellenError:
        cluster.close()
        raise
    make_actor = partial(cluster.link, recipe, 0.0)
    made = Replicas(worker, wanted, make_actor, tell=tell, let_go=cluster.close, lost=cluster.lost, **terms._asdict())
    for words in notes:
        made.note(words)
    return made


# The ranges of a run scored by replicas: a range alone in a lease, and a folder that every node sees.

TERMS = LeaseTerms(lease=1, held=1, most_ends=2)
"""A range alone, so that it is known which one ended a process; one that ends two would end all of them."""
AHEAD = 2
"""Ranges a process that may be done or under way before their turn; each is some megabytes."""
KEPT = "nothing was changed, every reply is stored; fewer --replicas, or --executor local"
NODE_ANSWERS_S = 120.0


class LeasedScoring:
    """Has the work of a scoring done by a fleet, which stays from task to task."""

    def __init__(self, open_fleet: Callable[[], Replicas], registry: tuple[str, Any]) -> None:
        self.registry = registry
        self._fleet = WorkFleet(open_fleet, AHEAD)

    def work_through(self, spec: WorkSpec, items: Iterable[bytes], name: Name) -> Iterator[bytes]:
        """Yield the results of work on these items, in their order."""
        try:
            yield from self._fleet.results_of((pack_item(spec, item) for item in items), name)
        except ItemLost as loss:
            raise EnvironmentProblem(f"{loss}; {KEPT}") from None

    def close(self) -> None:
        """End the processes."""
        self._fleet.close()


@contextmanager
def scoring(
    workers: Workers, folder: Path, registry: tuple[str, Any], say: Callable[[str], object]
) -> Iterator[Executor]:
    """Give who scores the ranges of a run; `registry` is how others make theirs."""
    look = partial(check_nodes_see, folder=str(folder.resolve()))
    leased = LeasedScoring(lambda: open_workers(workers, scoring_spec(folder), say, TERMS, look), registry)
    try:
        yield leased
    finally:
        leased.close()


def describe_run_here(folder: str) -> tuple[str, int] | str:
    """Return which run lies at a path of this machine and how large it is, or why there is none."""
    try:
        with RunReader(folder) as reader:
            return reader.header().id, (Path(folder) / "run.db").stat().st_size
    except SnellenError as error:
        return str(error)


def check_nodes_see(cluster: RayCluster, folder: str) -> None:
    """Refuse a folder that is not the same run on every node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    from .ray_cluster import one_line
    from .ray_survey import explain_failure

    here, look = describe_run_here(folder), cluster.ray.remote(describe_run_here)
    asked = [
        (node, look.options(num_cpus=0, max_retries=0, scheduling_strategy=On(node.id, soft=False)).remote(folder))
        for node in cluster.nodes()
    ]
    for node, reference in asked:
        try:
            found = cluster.ray.get(reference, timeout=NODE_ANSWERS_S)
        except cluster.ray.exceptions.RayError as error:
            found = explain_failure(one_line(error))
        if found != here:
            told = found if isinstance(found, str) else "another run.db lies there"
            fix = "put the run on a path that all nodes see, or score with --executor processes"
            raise UsageError(f"node {node.address} does not see {folder}: {told}; {fix}")


class FleetExecutor:
    """Fits `api.executors.Executor`; processes and actors differ only in what a fleet is linked to."""

    open_replicas = staticmethod(open_replicas)
    policy_for = staticmethod(policy_for)
    keeping_replicas = staticmethod(keeping_replicas)
    mapper_for = staticmethod(mapper_for)
    scoring = staticmethod(scoring)


FLEET = FleetExecutor()
