"""One replica as the driver sees it, and how long any of them may be silent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from .links import Link

PATIENCE_S = 60.0
"""No silence is shorter: a model's first answer, or a long one among short ones, may take so long."""
GIVEN_AFTER, ENDED_AFTER = 10.0, 30.0
"""So many times longer than any answer took: then its trials are given to others too, then it is ended."""
LONGEST_PATIENCE = 10.0
"""So many times the patience pass at least before a replica is ended, or a start without any answer is said."""


@dataclass(slots=True)
class Replica:
    """One replica as the driver sees it."""

    number: int
    link: Link | None = None
    """None while it starts, and once it is given up."""
    place: str = ""
    answered: int = 0
    lost: int = 0
    strikes: int = 0
    given_up: str = ""
    heard: float = 0.0
    """When it answered last."""
    silent_since: float | None = None
    """Since when it holds what it does not answer, once that was noticed."""
    ended: asyncio.Future[bytes] | None = None
    """Takes why the driver ends it."""

    @property
    def can_take(self) -> bool:
        """Tell whether it may be given trials."""
        return self.link is not None and self.silent_since is None

    def __str__(self) -> str:
        return f"replica {self.number} {self.place}".strip()


class Patience:
    """What is too long: a multiple of the longest that any answer of any replica took, and never less than a minute."""

    def __init__(self, least_s: float = PATIENCE_S) -> None:
        self.least_s = least_s
        self.longest_s: float | None = None

    @property
    def look_every_s(self) -> float:
        """Return how often to look."""
        return min(5.0, self.least_s / 4)

    def note(self, taken_s: float) -> None:
        """Learn from an answer, counted from its lease: also of a slow replica that was thought to hang."""
        if self.longest_s is None or taken_s > self.longest_s:
            self.longest_s = taken_s

    def given_after(self) -> float | None:
        """Return after how long trials are given to others too; None while no answer tells how long one takes."""
        return None if self.longest_s is None else max(self.least_s, GIVEN_AFTER * self.longest_s)

    def ended_after(self) -> float:
        """Return after how long a silent replica is ended."""
        return max(LONGEST_PATIENCE * self.least_s, ENDED_AFTER * (self.longest_s or 0.0))
