"""Lines of a batch to what becomes of them: a service that takes its time, loses some, and gives the rest back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.errors import UsageError, did_you_mean
from ...core.ids import rng

FATES = ("answered", "errored", "expired", "canceled")


class BatchLine(NamedTuple):
    """One request of a batch: its name, the path it would have gone to, its body."""

    ident: str
    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class BatchScript:
    """How batches go here: how long they take, which share of lines meets what in its first batch."""

    seconds: float = 0.0
    expire: float = 0.0
    """Share of lines that are not answered before the end; those asked a second time are."""
    error: float = 0.0
    """Share of lines that end with a server's error, the first time."""
    reject: str = ""
    """Refuse every batch as a whole after its validation, with this code."""
    lose: int = 0
    """So many batches are made without the client hearing of it: the connection breaks after they were."""


def parse_batch_script(text: str | None) -> BatchScript:
    """Read `seconds=2,expire=0.3,error=0.1,reject=token_limit_exceeded,lose=1`."""
    known = {"seconds": float, "expire": float, "error": float, "reject": str, "lose": int}
    values: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, _, value = part.partition("=")
        if name not in known:
            raise UsageError(
                f"--batch {text!r}: unknown {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}"
            )
        try:
            values[name] = known[name](value)
        except ValueError:
            raise UsageError(f"--batch {text!r}: {name} is a number") from None
    return BatchScript(**values)


@dataclass(slots=True)
class BatchJob:
    """One batch: its lines, and their results once it has ended."""

    ident: str
    lines: Sequence[BatchLine]
    facts: dict[str, Any]
    """What the client said of it: metadata, endpoint, file."""
    script: BatchScript
    created: float = field(default_factory=time.monotonic)
    canceled_after: float | None = None
    """The share that was done when it was canceled."""
    results: list[tuple[BatchLine, str, int, Any]] | None = None
    """Line, fate, status and body of each, in no order of the lines."""

    @property
    def share_done(self) -> float:
        """Return how far it is, 0 to 1."""
        if self.canceled_after is not None:
            return self.canceled_after
        return min(1.0, (time.monotonic() - self.created) / self.script.seconds) if self.script.seconds else 1.0

    @property
    def ended(self) -> bool:
        """Tell whether nothing more will happen to it."""
        return self.canceled_after is not None or self.share_done >= 1.0

    @property
    def state(self) -> str:
        """Return running, completed, expired, canceled or rejected."""
        if self.script.reject:
            return "rejected"
        if not self.ended:
            return "running"
        if self.canceled_after is not None:
            return "canceled"
        return "expired" if any(fate == "expired" for _, fate, _, _ in self.results or ()) else "completed"

    def count(self, fate: str) -> int:
        """Return how many lines met this."""
        return sum(met == fate for _, met, _, _ in self.results or ())

    def cancel(self) -> None:
        """End it now; what is done stays done."""
        if not self.ended:
            self.canceled_after = self.share_done


Answer = Callable[[BatchLine], tuple[int, Any]]


class BatchBook:
    """All batches of a server; answers are made when somebody looks at a batch that has ended."""

    def __init__(self, script: BatchScript, answer: Answer, seed: int) -> None:
        self.jobs: dict[str, BatchJob] = {}
        self._script = script
        self._answer = answer
        self._seed = seed
        self._asked: Counter[str] = Counter()
        self._lost = 0

    def add(self, prefix: str, lines: Sequence[BatchLine], facts: dict[str, Any]) -> BatchJob:
        """Take a batch."""
        job = BatchJob(f"{prefix}{len(self.jobs) + 1}", lines, facts, self._script)
        self.jobs[job.ident] = job
        return job

    def loses_reply(self) -> bool:
        """Tell whether the client must not hear that its batch was made."""
        self._lost += 1
        return self._lost <= self._script.lose

    def find(self, ident: str) -> BatchJob | None:
        """Return a batch as it stands now."""
        job = self.jobs.get(ident)
        if job is not None and job.ended and job.results is None and not job.script.reject:
            job.results = [self._settle(job, place, line) for place, line in enumerate(job.lines)]
            rng(self._seed, "batch", ident).shuffle(job.results)  # no service promises an order
        return job

    def _settle(self, job: BatchJob, place: int, line: BatchLine) -> tuple[BatchLine, str, int, Any]:
        self._asked[line.ident] += 1
        draw, first = rng(self._seed, "fate", line.ident).random(), self._asked[line.ident] == 1
        if job.canceled_after is not None and place >= job.canceled_after * len(job.lines):
            return line, "canceled", 0, None
        if first and draw < self._script.expire:
            return line, "expired", 0, None
        if first and draw < self._script.expire + self._script.error:
            return line, "errored", 500, {"error": {"message": "engine died", "type": "server_error", "code": None}}
        status, body = self._answer(line)
        return line, "answered" if status == 200 else "errored", status, body
