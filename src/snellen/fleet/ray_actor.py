"""A replica as Ray runs it: the same host, called by messages."""

from __future__ import annotations

import msgspec

from ..core.errors import SnellenError
from ..core.registry import foreign_code
from .host import Host
from .lease_format import read_lease, write_wire_error
from .links import Recipe
from .process_main import Opening


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
