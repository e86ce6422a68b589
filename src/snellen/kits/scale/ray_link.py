"""A replica as an actor of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from ...core.errors import EnvironmentProblem, SnellenError
from ...core.registry import foreign_code
from .host import Host
from .items import Content, Hello, pack_lease, read_lease, write_wire_error
from .leases import Waiting
from .links import Recipe, ReplicaLost
from .processes import Opening

KEPT_BYTES = 256 * 2**20
INLINE_BYTES = 64 * 1024
"""What is smaller travels with the lease: an object of its own would cost more than it spares."""


class RayPictures:
    """Contents to object references; what is in use stays, of the rest the oldest goes."""

    def __init__(self, ray: Any, kept_bytes: int = KEPT_BYTES) -> None:
        self._ray = ray
        self._kept_bytes = kept_bytes
        self._references: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self.used_bytes = 0

    def reference(self, content: Content) -> Any:
        """Return what a lease carries for a content: its bytes where they are few, else where they lie."""
        if len(content.data) <= INLINE_BYTES:
            return content.data
        name = content.sha256
        if name not in self._references:
            self._references[name] = (self._put(content.data), len(content.data))
            self.used_bytes += len(content.data)
            self._forget_oldest()
        self._references.move_to_end(name)
        return self._references[name][0]

    def let_go(self) -> None:
        """Hold nothing any more."""
        self._references.clear()
        self.used_bytes = 0

    def _put(self, data: bytes) -> Any:
        full = (self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError)
        try:
            return self._ray.put(data)
        except full:
            self.let_go()  # what is kept for later questions must not be what has no room for this one
        try:
            return self._ray.put(data)
        except full as error:
            why = str(error).strip().splitlines()[0]
            fix = "start Ray with a larger --object-store-memory, or lower --max-workers; run it again to continue"
            raise EnvironmentProblem(f"Ray's object store takes no more pictures: {why}; {fix}") from None

    def _forget_oldest(self) -> None:
        while self.used_bytes > self._kept_bytes and len(self._references) > 1:
            _, (_, size) = self._references.popitem(last=False)
            self.used_bytes -= size


class ReplicaActor:
    """An asynchronous actor: accepts leases while it answers others."""

    def __init__(self, recipe: bytes) -> None:
        self._recipe = recipe
        self._host: Host | None = None

    async def greet(self) -> bytes:
        """Make the model; return what it is, or why it is none."""
        try:
            with foreign_code("the replica's model cannot be made:"):
                self._host = Host(Recipe.unpacked(self._recipe).make())
                return msgspec.msgpack.encode(Opening(await self._host.greet()))
        except SnellenError as error:
            return msgspec.msgpack.encode(Opening(problem=write_wire_error(error)))

    async def accept(self, lease: bytes, *contents: bytes) -> None:
        """Begin to answer a lease; Ray has fetched its pictures."""
        if self._host is not None:
            self._host.accept(read_lease(lease), contents)

    async def collect(self) -> bytes:
        """Wait until something is finished and return all that is."""
        if self._host is None:
            raise RuntimeError("collect before greet")
        return await self._host.collect()


SHOWN = 200
"""So much of what Ray says is shown."""


class Cluster(Protocol):
    """What a link needs to know of its cluster."""

    ray: Any
    gone: bool


class RayLink:
    """Starts one actor, on whichever node has room; several GPUs are reserved together, on one node."""

    def __init__(self, cluster: Cluster, pictures: RayPictures, recipe: Recipe, gpus: float, number: int) -> None:
        self._cluster = cluster
        self._ray = cluster.ray
        self._pictures = pictures
        self._recipe = recipe
        self._gpus = gpus
        self._number = number
        self._actor: Any = None
        self._group: Any = None
        self._handing: set[asyncio.Task[None]] = set()
        self._refused: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def open(self) -> Hello:
        """Start the actor, wait for a node with room, and until its model can answer."""
        options: dict[str, Any] = {"num_cpus": 1, "num_gpus": self._gpus, "max_restarts": 0, "max_concurrency": 1000}
        if self._gpus > 1:
            options["scheduling_strategy"] = await self._reserve()
        self._actor = self._ray.remote(ReplicaActor).options(**options).remote(self._recipe.packed())
        opening = msgspec.msgpack.decode(await self._result_or_loss(self._actor.greet.remote()), type=Opening)
        if opening.problem is not None:
            raise opening.problem.revive()
        if opening.hello is None:
            raise ReplicaLost("it said nothing")
        return opening.hello

    def send(self, lease: Sequence[Waiting]) -> None:
        """Hand a lease to the actor; its pictures are fetched by the node."""
        packed, contents = pack_lease((waiting.number, waiting.item) for waiting in lease)
        handed = self._actor.accept.remote(packed, *[self._pictures.reference(one) for one in contents])
        task = asyncio.ensure_future(self._confirm(handed))
        self._handing.add(task)
        task.add_done_callback(self._handing.discard)

    async def receive(self) -> bytes:
        """Wait for outcomes, or for the news that a lease never arrived."""
        outcomes: asyncio.Future[bytes] = asyncio.ensure_future(self._result_or_loss(self._actor.collect.remote()))
        try:
            await asyncio.wait({outcomes, self._refused}, return_when=asyncio.FIRST_COMPLETED)
            return outcomes.result() if outcomes.done() else self._refused.result()
        finally:
            outcomes.cancel()

    async def close(self) -> None:
        """End the actor and free what was reserved."""
        actor, self._actor = self._actor, None
        self._refused.cancel()
        for task in self._handing:
            task.cancel()
        if self._cluster.gone:
            return  # with the head goes what it kept; to ask it would be to wait for it
        with contextlib.suppress(*self._errors(), RuntimeError):
            if actor is not None:
                self._ray.kill(actor)
            if self._group is not None:
                self._ray.util.remove_placement_group(self._group)

    async def _reserve(self) -> Any:
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self._group = placement_group([{"CPU": 1, "GPU": self._gpus}], strategy="STRICT_PACK")
        await self._result_or_loss(self._group.ready())
        return PlacementGroupSchedulingStrategy(self._group, placement_group_capture_child_tasks=True)

    async def _confirm(self, handed: Any) -> None:
        try:
            await self._result_or_loss(handed)
        except ReplicaLost as loss:
            if not self._refused.done():
                self._refused.set_exception(loss)

    async def _result_or_loss(self, reference: Any) -> Any:
        try:
            return await reference
        except self._errors() as error:
            raise ReplicaLost(describe_loss(error)) from None

    def _errors(self) -> tuple[type[BaseException], ...]:
        found: tuple[type[BaseException], ...] = (self._ray.exceptions.RayError,)
        return found


_LOSSES = (
    (
        "OutOfMemoryError",
        ("low on memory", "memory pressure"),
        "its node ran out of memory: fewer --replicas, or a smaller --batch-size",
    ),
    ("NodeDiedError", ("node has died", "its node"), "its node was lost"),
    ("ActorUnavailableError", (), "its node cannot be reached"),
)
"""Kinds of errors, what their texts say, and what it means."""
_DIED = ("worker process has died", "killed")


def describe_loss(error: BaseException) -> str:
    """Return why an actor was lost, in few words: Ray's own pages of advice name causes that were not."""
    text, kind = str(error), type(error).__name__
    for name, tells, meaning in _LOSSES:
        if kind == name or any(tell in text for tell in tells):
            return meaning
    telling = [line.strip() for line in text.splitlines() if "Error: " in line]
    if telling:
        return telling[-1][:SHOWN]
    if any(tell in text for tell in _DIED):
        return "its process died"
    return " ".join(text.split())[:SHOWN] or kind
