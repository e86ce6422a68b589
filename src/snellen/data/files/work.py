"""Work on many items that depend on nothing but themselves: done here one by one, or by whoever is given it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from ...core.registry import resolve_target


class WorkSpec(NamedTuple):
    """What is done with every item: a function `module:attribute` that makes the work, and what it is made with.

    Work turns the bytes of an item into bytes. Its attribute `facts` holds what else its results depend on (versions,
    fonts): whoever has others must not do it.
    """

    maker: str
    settings: bytes

    def make(self) -> Work:
        """Return the work, made here."""
        made: Work = resolve_target(self.maker)(self.settings)
        return made


class Work(Protocol):
    """Turns one item into its result, the same wherever and whenever it is done."""

    facts: dict[str, Any]

    def __call__(self, item: bytes) -> bytes:
        """Return the result of one item, or raise an error of ours."""
        ...


Mapper = Callable[[WorkSpec, Iterable[bytes]], Iterator[bytes]]
"""Does work with every item and yields the results in their order; the first error in that order is raised."""


def do_here(spec: WorkSpec, items: Iterable[bytes]) -> Iterator[bytes]:
    """Do work in this process, one item at a time."""
    return map(spec.make(), items)
