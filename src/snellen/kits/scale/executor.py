"""The executors `processes` and `ray`: what the core asks of one, by the modules that do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.executors import Workers
from ...core.errors import EnvironmentProblem, SnellenError, UsageError
from ...data.files.work import WorkSpec
from ...scoring.ranges import Executor, Name, pack_item, scoring_spec
from ...store.reader import RunReader
from .driver import Fleet
from .item_workers import LeaseTerms, mapper_for, open_workers
from .replicas import keeping_replicas, open_replicas, policy_for
from .work_model import ItemLost, WorkFleet

if TYPE_CHECKING:
    from .ray_cluster import RayCluster


# The ranges of a run scored by replicas: a range alone in a lease, and a folder that every node sees.

TERMS = LeaseTerms(lease=1, held=1, most_ends=2)
"""A range alone, so that it is known which one ended a process; one that ends two would end all of them."""
AHEAD = 2
"""Ranges a process that may be done or under way before their turn; each is some megabytes."""
KEPT = "nothing was changed, every reply is stored; fewer --replicas, or --executor local"
PATIENCE_S = 120.0


class LeasedScoring:
    """Has the work of a scoring done by a fleet, which stays from task to task."""

    def __init__(self, open_fleet: Callable[[], Fleet], registry: tuple[str, Any]) -> None:
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
            found = cluster.ray.get(reference, timeout=PATIENCE_S)
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
