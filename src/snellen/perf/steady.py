"""Request records in, the window of steady state and what each request contributes to it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .timeline import RequestRecord


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, in seconds on the records' clock."""

    start: float
    end: float
    whole: bool = False
    """Whether it is the whole run, to which everything belongs."""

    @property
    def length(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start

    def holds(self, record: RequestRecord) -> bool:
        """Tell whether a request was sent inside; the end does not belong to the window."""
        return self.start <= record.sent < self.end

    def overlap(self, record: RequestRecord) -> float:
        """Return how many seconds of a request's life (send -> end) lie inside."""
        return max(0.0, min(record.end, self.end) - max(record.sent, self.start))

    def delivered(self, record: RequestRecord) -> float:
        """Return which share of a reply came inside: of its events with text; of one that came whole, all or nothing.

        What comes at the very start belongs before it: the send that opens the window followed from it.
        """
        if self.whole:
            return 1.0
        if not record.chunks:
            return float(self.start < record.done <= self.end)
        return sum(self.start < moment <= self.end for moment in record.chunks) / len(record.chunks)


def whole_run(records: Sequence[RequestRecord]) -> Window:
    """Return the window from the first send to the last end."""
    return Window(min(record.sent for record in records), max(record.end for record in records), whole=True)


def concurrency_steps(records: Sequence[RequestRecord]) -> list[tuple[float, int]]:
    """Return (moment, requests in flight from then on), in order; at one moment ends go before sends."""
    events = sorted([(record.sent, 1) for record in records] + [(record.end, -1) for record in records])
    steps: list[tuple[float, int]] = []
    level = 0
    for moment, change in events:
        level += change
        if steps and steps[-1][0] == moment:
            steps[-1] = (moment, level)
        else:
            steps.append((moment, level))
    return steps


def plateau(steps: Sequence[tuple[float, int]]) -> int:
    """Return the time-weighted median of the concurrency."""
    spans = sorted((level, later[0] - moment) for (moment, level), later in pairwise(steps))
    half = sum(length for _, length in spans) / 2
    passed = 0.0
    for level, length in spans:
        passed += length
        if passed >= half:
            return level
    return 0


def steady_window(records: Sequence[RequestRecord]) -> Window | None:
    """Return the steady-state window (the rule is in `definitions.STEADY_RULE`), or None if there is none."""
    if len(records) < 3:
        return None
    steps = concurrency_steps(records)
    level_wanted = plateau(steps)
    ramp_end = next((moment for moment, level in steps if level >= level_wanted), steps[-1][0])
    ramp_count = sum(record.sent <= ramp_end for record in records)
    ends = sorted(record.end for record in records)
    ramped = ends[min(ramp_count, len(ends)) - 1]
    sends = sorted(record.sent for record in records if record.sent >= ramped)
    return Window(sends[0], sends[-1]) if len(sends) > 2 and sends[-1] > sends[0] else None
