"""A job: trials that belong together, and how to ask them. The engine runs jobs side by side, a job asks in order."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

from ..core.types import Prediction, Request, Sample, TrialKey


class Item(NamedTuple):
    """A sample and its place in the plan."""

    position: int
    sample: Sample


class Ask(Protocol):
    """Sends one request down the line: cache, limits, retries, store. A finished trial answers from the store."""

    def __call__(
        self, item: Item, request: Request, settled: Prediction | None = None, *, keep: bool = True
    ) -> Awaitable[Prediction]:
        """Return the trial's prediction; a failure is a Prediction too.

        `settled` is stored as it is and nothing is sent; without `keep` the reply is only a part of a trial and not stored.
        """
        ...


class Job(Protocol):
    """Some trials that must be asked one after another; a single trial in the simplest case."""

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return the trials this job will produce, known before anything is asked."""
        ...

    async def run(self, ask: Ask) -> None:
        """Ask them in order."""
        ...
