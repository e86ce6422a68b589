"""Ranges scored by the nodes of a Ray cluster, each of which must see the run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.errors import SnellenError, UsageError
from ...fleet.links import ReplicaLost
from ...fleet.ray_cluster import RayCluster, one_line
from ...fleet.ray_survey import explain_failure
from ...store.reader import Rows, RunReader
from .range_process import RangeAnswerer

PATIENCE_S = 120.0
_answerer: list[RangeAnswerer] = []
"""Of a worker process of Ray's: the run stays open between ranges."""


def score_on_node(errand: bytes, rows: Rows) -> bytes:
    """Return the answer to one range, made on a node."""
    if not _answerer:
        _answerer.append(RangeAnswerer())
    return _answerer[0].answer(errand, rows)


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


class RayRanges:
    """One range at a time on whichever node is free."""

    def __init__(self, cluster: RayCluster) -> None:
        self._ray = cluster.ray
        self._score: Any = cluster.ray.remote(score_on_node).options(num_cpus=1, max_retries=0)

    def run(self, errand: bytes, rows: Rows) -> bytes:
        """Have one range scored; raise ReplicaLost where its process or node is gone."""
        try:
            answer: bytes = self._ray.get(self._score.remote(errand, rows))
        except self._ray.exceptions.RayError as error:
            raise ReplicaLost(explain_failure(one_line(error))) from None
        return answer

    def close(self) -> None:
        """Nothing is held: the cluster is closed by whoever opened it."""
