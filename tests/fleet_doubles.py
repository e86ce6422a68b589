"""Replicas without processes: the real host behind a line that can be cut at will."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from snellen.core.protocols import Model
from snellen.kits.scale.driver import Fleet
from snellen.kits.scale.host import Answers, Host, Worker
from snellen.kits.scale.items import Hello, pack_lease, read_lease
from snellen.kits.scale.leases import Waiting
from snellen.kits.scale.links import ReplicaLost


class NearLink:
    """A replica in this event loop; `cut` loses it as a kill would."""

    def __init__(self, what: Model | Worker, number: int) -> None:
        self.number = number
        self.host = Host(what if isinstance(what, Worker) else Answers(what))
        self.leases: list[list[str]] = []
        self._cut: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def open(self) -> Hello:
        return await self.host.greet()

    def send(self, lease: Sequence[Waiting]) -> None:
        self.leases.append([waiting.item.name for waiting in lease])
        packed, contents = pack_lease((waiting.number, waiting.item) for waiting in lease)
        if not self._cut.done():
            self.host.accept(read_lease(packed), [content.data for content in contents])

    async def receive(self) -> bytes:
        finished = asyncio.ensure_future(self.host.collect())
        try:
            await asyncio.wait({finished, self._cut}, return_when=asyncio.FIRST_COMPLETED)
            return self._cut.result() if self._cut.done() else finished.result()
        finally:
            finished.cancel()

    async def close(self) -> None:
        self._cut.cancel()

    def cut(self, why: str = "killed by SIGKILL") -> None:
        if not self._cut.done():
            self._cut.set_exception(ReplicaLost(why))


class Fleeting:
    """A fleet of near replicas, and every link that was ever made."""

    def __init__(self, model: Callable[[], Model], replicas: int, lease: int = 4) -> None:
        self.links: list[NearLink] = []

        def make(number: int) -> NearLink:
            self.links.append(NearLink(model(), number))
            return self.links[-1]

        self.fleet = Fleet(model(), replicas, make, lease=lease)

    def current(self, number: int) -> NearLink:
        return next(link for link in reversed(self.links) if link.number == number)
