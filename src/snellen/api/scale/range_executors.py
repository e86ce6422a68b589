"""Who scores the ranges of a run: this process, processes of this machine, or the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...scoring.run import Executor
from ...scoring.spread.range_pool import RangePool
from ...scoring.spread.range_process import RangeProcess
from .replicas import EXECUTORS


@contextmanager
def range_executor(
    folder: Path,
    executor: str,
    replicas: int | None,
    *,
    ray_address: str | None,
    registry: tuple[str, Any],
    say: Callable[[str], object],
) -> Iterator[Executor | None]:
    """Give who scores the ranges of a run; None is this process. `registry` is how others make theirs."""
    _check(executor, replicas, ray_address)
    if executor == "local":
        yield None
        return
    count = replicas or 1
    if executor == "processes":
        with closing(RangePool([RangeProcess() for _ in range(count)], registry, say)) as pool:
            yield pool
        return
    from ...fleet.ray_cluster import RayCluster
    from ...scoring.spread.range_ray import RayRanges, check_nodes_see

    with closing(RayCluster(ray_address)) as cluster:
        check_nodes_see(cluster, str(folder.resolve()))
        with closing(RangePool([RayRanges(cluster) for _ in range(count)], registry, say)) as pool:
            yield pool


def _check(executor: str, replicas: int | None, ray_address: str | None) -> None:
    """Refuse what would be ignored."""
    if executor not in EXECUTORS:
        raise UsageError(f"--executor {executor!r} is none of {', '.join(EXECUTORS)}")
    if executor == "local" and replicas:
        raise UsageError("--replicas is for --executor processes or ray: without one this process scores alone")
    if executor != "ray" and ray_address:
        raise UsageError("--ray-address is for --executor ray")
