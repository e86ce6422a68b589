"""A Ray cluster of several nodes in one machine, whose replicas and nodes can be killed."""

from __future__ import annotations

import os
import random
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from executor_runs import descendants
from waiting import wait_until

ACTOR = "ray::ReplicaActor"


class Nodes:
    """The nodes of one cluster; the first is the head, which is never killed."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.address = str(cluster.address)
        self.others: list[Any] = []

    def add(self, **more: Any) -> None:
        """Let one more node join."""
        self.others.append(self.cluster.add_node(num_cpus=2, object_store_memory=80 * 2**20, **more))

    def kill_node(self) -> None:
        """Kill the oldest node that is not the head, with all that runs on it."""
        self.cluster.remove_node(self.others.pop(0), allow_graceful=False)

    def kill_head(self) -> None:
        """Kill what keeps the cluster together."""
        for name in ("gcs_server", "raylet"):
            for info in self.cluster.head_node.all_processes[name]:
                info.process.kill()

    def replicas(self) -> list[int]:
        """Return the processes of all replicas."""
        raylets = [node.all_processes["raylet"][0].process.pid for node in (self.cluster.head_node, *self.others)]
        return [pid for raylet in raylets for pid in descendants(raylet, ACTOR)]

    def kill_replica(self, draw: random.Random) -> None:
        """Kill one replica as soon as there is one."""
        wait_until(self.replicas, "a replica lives")
        for pid in draw.sample(found := self.replicas(), min(1, len(found))):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def ray_nodes(count: int, **head_has: Any) -> Iterator[Nodes]:
    """Start a cluster of so many nodes with two CPUs each, and end it."""
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        head: dict[str, Any] = {
            "num_cpus": 2,
            "object_store_memory": 80 * 2**20,
            "include_dashboard": False,
            **head_has,
        }
        cluster = Cluster(initialize_head=True, head_node_args=head)
        nodes = Nodes(cluster)
        try:
            for _ in range(count - 1):
                nodes.add()
            yield nodes
        finally:
            cluster.shutdown()
