"""The line to one replica, whatever runs it: started, talked to, and lost."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ...core.registry import resolve_target
from .items import Hello
from .leases import Waiting


class ReplicaLost(Exception):
    """A replica is gone: killed, out of memory, its node lost. What it held is given to others."""


class Recipe(NamedTuple):
    """How a replica makes what it does: a function `module:attribute`, and what it is called with."""

    maker: str
    argument: Any
    folder: str = ""
    """Where the driver works; a replica goes there if there is such a folder, so that relative paths mean the same."""

    def make(self) -> Any:
        """Return what it makes, made here."""
        if self.folder and os.path.isdir(self.folder):  # noqa: PTH112 - no path is kept
            os.chdir(self.folder)
        return resolve_target(self.maker)(self.argument)

    def packed(self) -> bytes:
        """Return it as bytes for another process of the same program."""
        return pickle.dumps(tuple(self))

    @classmethod
    def unpacked(cls, data: bytes) -> Recipe:
        """Return what was packed; only the driver's own bytes come here."""
        return cls(*pickle.loads(data))  # noqa: S301


class Link(Protocol):
    """One replica from its start to its end; a new one is made for the next attempt."""

    async def open(self) -> Hello:
        """Start the replica and wait until its model can answer; raise ReplicaLost, or the error that it met."""
        ...

    def send(self, lease: Sequence[Waiting]) -> None:
        """Hand over a lease; that the replica is gone is learned by `receive`."""
        ...

    async def receive(self) -> bytes:
        """Wait until requests are finished and return their outcomes; raise ReplicaLost when there will be none."""
        ...

    async def close(self) -> None:
        """End the replica; may be called at any time and again."""
        ...
