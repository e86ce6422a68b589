"""What is going on: counters the engine keeps and the terminal reads a few times a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..core.types import Prediction, Request, Sample, Usage
from .limits import Limits


class Onlooker(Protocol):
    """Makes a figure of replies while a run goes on."""

    def take(self, sample: Sample, request: Request, prediction: Prediction) -> None:
        """Hear of one new reply; costs next to nothing."""
        ...

    def look(self) -> None:
        """Work on what was taken, for a moment."""
        ...

    @property
    def words(self) -> str:
        """Return what the replies say so far; empty where they say nothing."""
        ...


@dataclass(slots=True)
class RunState:
    """Counts of one run; planned = done + what is left."""

    planned: int = 0
    resumed: int = 0
    done: int = 0
    failed: int = 0
    cached: int = 0
    cached_from: float | None = None
    """When the oldest reply was made that came from the cache."""
    cut_off: int = 0
    """Replies that ended at the token limit: most of these cannot be read."""
    empty: int = 0
    retries: int = 0
    in_flight: int = 0
    slots: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    last_error: str = ""
    paused_until: float = 0.0
    """When the pool may send again, on the engine's monotonic clock: the time a server asked for."""

    limits: Limits = field(default_factory=Limits)
    """What the command may use and has used: its requests, tokens and money, without what came from the cache."""
    unfinished: bool = False
    """True where something was left to ask: somebody stopped it, a limit held it back, or it waits in batches."""
    parked: int = 0
    """Jobs that wait for a batch."""
    in_batches: int = 0
    """Requests whose batches were left running; the same command collects them."""
    not_kept: int = 0
    """Replies that the cache could not keep; the run has them."""
    why_not_kept: str = ""
    pacing: Callable[[], str] = str
    """Says why requests leave one by one, while they do."""
    replicas: Callable[[], str] = str
    """Says who answers and how much each did, where several do; nothing where one process does all."""

    onlooker: Onlooker | None = None
    """Who makes a figure of replies; is told of them only while somebody sees it."""
    is_drawn: bool = False
    """True while a terminal shows this state."""

    @property
    def over_limit(self) -> bool:
        """Tell whether a limit of requests, tokens or money held something back."""
        return bool(self.limits.reached)

    @property
    def overdue(self) -> bool:
        """Tell whether the time that the command was given is over."""
        return self.limits.overdue

    def add_pass(self, later: RunState) -> None:
        """Take over what a later pass over the same plan did: it met as stored what this one asked."""
        for name in ("done", "failed", "cached", "cut_off", "empty", "retries", "input_tokens", "output_tokens"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        for kind, count in later.failures.items():
            self.failures[kind] = self.failures.get(kind, 0) + count
        self.parked, self.last_error = later.parked, later.last_error or self.last_error
        self.limits, self.unfinished = later.limits, later.unfinished  # of one command: counted on
        self.not_kept, self.why_not_kept = later.not_kept, later.why_not_kept  # of one cache: counted on

    def count(self, prediction: Prediction) -> None:
        """Count one finished trial."""
        self.done += 1
        self.cached += prediction.cached
        if prediction.failure is not None:
            self.failed += 1
            kind = prediction.failure.kind.value
            self.failures[kind] = self.failures.get(kind, 0) + 1
            self.last_error = prediction.failure.message
        self.cut_off += prediction.finish == "length"
        self.empty += prediction.text is not None and not prediction.text.strip()
        self.count_tokens(prediction.usage)

    def count_tokens(self, usage: Usage | None) -> None:
        """Count what one reply used: a trial may have several."""
        if usage is not None:
            self.input_tokens += usage.input_tokens or 0
            self.output_tokens += usage.output_tokens or 0
