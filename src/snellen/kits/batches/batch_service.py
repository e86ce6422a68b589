"""What every batch service must be able to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...model.served.http_client import Body

UNANSWERED = 0
"""The status of a line that was never tried: its batch expired or was cancelled first."""
NO_FIELDS: frozenset[str] = frozenset()


class LinesFile(NamedTuple):
    """A written file of requests, ready to be sent."""

    name: str
    """Unique for the run and its content: what was sent is found again by it."""
    path: Path
    lines: int


class BatchState(NamedTuple):
    """What a service says of one batch."""

    state: str
    """`running`, `ended` (there may be results), or `failed` (refused as a whole)."""
    words: str
    """The service's own word for it."""
    done: int = 0
    total: int = 0
    results: tuple[str, ...] = ()
    """Where its results are, in the service's own terms."""
    problem: str = ""
    """Why it was refused as a whole."""


class BatchResult(NamedTuple):
    """One line of results: an HTTP status and the body the same request would have brought; UNANSWERED without."""

    ident: str
    status: int
    body: bytes


class BatchService(Protocol):
    """How one kind of service is told and read."""

    opening: bytes
    between: bytes
    closing: bytes
    """What stands before, between and after the lines of a file."""
    left_out: frozenset[str]
    """Fields of a body that do not stand in its line."""

    def line(self, ident: str, body: Body) -> Body:
        """Return one request as it stands in the file."""
        ...

    async def submit(self, lines: LinesFile) -> str:
        """Send a file and make a batch of it; return the batch's name."""
        ...

    async def find(self, lines: LinesFile, known: frozenset[str]) -> str | None:
        """Return a batch that was made of this file without our hearing of it; `known` are those we heard of."""
        ...

    async def look(self, ident: str) -> BatchState:
        """Return how a batch stands."""
        ...

    async def fetch(self, ident: str, state: BatchState, into: Path) -> None:
        """Write all lines of results to a file."""
        ...

    def read(self, line: bytes) -> BatchResult:
        """Read one line of results."""
        ...

    async def cancel(self, ident: str) -> None:
        """End a batch; what is done stays done."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def named_rows(value: Any, *places: str) -> list[dict[str, Any]]:
    """Return the objects of a listing, wherever of some places it holds them."""
    for place in places:
        rows = value.get(place) if isinstance(value, dict) else None
        if isinstance(rows, list):
            return [row for row in rows if isinstance(row, dict)]
    return []
