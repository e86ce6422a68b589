"""A Ray cluster: connected to, looked at, and what it says when something is missing, in one line."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import socket
import warnings
from typing import Any, NamedTuple

from ...core.errors import EnvironmentProblem, MissingExtra, UsageError
from .links import Recipe
from .ray_link import RayLink, RayPictures

CONNECT_ERRORS = (ConnectionError, RuntimeError, ValueError, TimeoutError, OSError)
"""What Ray raises when it cannot connect, or when its version is not the cluster's."""

SHOWN = 300
"""So much of what Ray says is shown."""
CONNECT_S = 10.0
LOOK_EVERY_S, SILENCES = 5.0, 4
"""A head that was silent so often in a row is gone; Ray itself gives up after a minute."""


class RayNode(NamedTuple):
    """One node as Ray knows it."""

    id: str
    address: str
    cpus: float
    gpus: float
    store_bytes: float


class RayCluster:
    """The connection of this process to a cluster; without an address and none in $RAY_ADDRESS, Ray is started here."""

    def __init__(self, address: str | None) -> None:
        self.ray = import_ray()
        if address is not None and address.startswith("ray://"):
            raise UsageError("--ray-address ray://… is Ray's client: start the run on a node of the cluster, with auto")
        self.gone = False
        self._mine = not self.ray.is_initialized()
        try:
            if self._mine:
                reach(address)
                self._connect(address)
        except CONNECT_ERRORS as error:
            where = address or "this machine"
            fix = "start one with `ray start --head`, and the same Ray and Python versions everywhere"
            raise EnvironmentProblem(f"no Ray cluster at {where}: {one_line(error)}; {fix}") from None
        self._pictures = RayPictures(self.ray)

    def nodes(self) -> list[RayNode]:
        """Return the nodes that live."""
        return [_node(found) for found in self.ray.nodes() if found["Alive"]]

    def check_room(self, replicas: int, gpus: float) -> list[str]:
        """Refuse replicas that fit on no node; return what to say where not all of them fit now."""
        nodes = self.nodes()
        most = max((node.gpus for node in nodes), default=0.0)
        if gpus > most:
            have = f"the largest of {len(nodes)} nodes has {most:g}"
            raise UsageError(f"--gpus-per-replica {gpus:g}: no node has so many GPUs, {have}")
        fit = sum(int(node.gpus // gpus) for node in nodes) if gpus else sum(int(node.cpus) for node in nodes)
        if fit >= replicas:
            return []
        return [f"{fit} of {replicas} replicas fit into the cluster now; the others join when there is room"]

    def link(self, recipe: Recipe, gpus: float, number: int) -> RayLink:
        """Return the line to a replica that is not started yet."""
        return RayLink(self, self._pictures, recipe, gpus, number)

    async def lost(self) -> str:
        """Wait until the cluster's head is gone, and say so: Ray would end this process without a word of ours."""
        address, silent = str(self.ray.get_runtime_context().gcs_address), 0
        while silent < SILENCES:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await asyncio.to_thread(reach, address)
                silent = 0
            except OSError:
                silent += 1
        self.gone = True
        return f"the head of the Ray cluster at {address} is gone; all replies are kept, run it again to continue"

    def close(self) -> None:
        """Leave the cluster, if this made the connection and there is one to leave."""
        self._pictures.let_go()
        if self.gone:
            _leave_without_goodbye()
        elif self._mine:
            with contextlib.suppress(*CONNECT_ERRORS):
                self.ray.shutdown()

    def _connect(self, address: str | None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray warns of its own future
            self.ray.init(address, include_dashboard=None if address else False, log_to_driver=False, logging_level=40)
        _say_nothing()


def reach(address: str | None) -> None:
    """Raise OSError if nothing listens at HOST:PORT: Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()


def _leave_without_goodbye() -> None:
    """Spare the end of this process from waiting for a head that is gone."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private import worker

        atexit.unregister(worker.shutdown)


def _say_nothing() -> None:
    """Keep Ray from printing deaths of processes on stdout, where results may stand: the fleet says each itself."""
    with contextlib.suppress(ImportError):
        from ray._private import worker

        worker.print_to_stdstream = lambda *_, **__: None


def import_ray() -> Any:
    """Return Ray, or say how it is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError:
        raise MissingExtra("ray", "--executor ray") from None
    return ray


def one_line(error: BaseException) -> str:
    """Return what an error of Ray's says, without its traceback: the last line that says anything.

    Versions that differ are told in several lines, all of which matter.
    """
    _, differ, versions = str(error).partition("Version mismatch: ")
    if differ:
        return " ".join(f"{differ}{versions}".split())[:SHOWN]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:SHOWN] if lines else type(error).__name__


def _node(found: dict[str, Any]) -> RayNode:
    resources = found.get("Resources", {})
    return RayNode(
        str(found["NodeID"]),
        str(found.get("NodeManagerAddress", "")),
        float(resources.get("CPU", 0.0)),
        float(resources.get("GPU", 0.0)),
        float(resources.get("object_store_memory", 0.0)),
    )
