"""What every batch service must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

from ...model.served.http_client import Body
from .batch_http import BatchHttp

UNANSWERED = 0
"""The status of a line that was never tried: its batch expired or was cancelled first."""


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


class BatchService(ABC):
    """How one kind of service is told and read."""

    opening, between, closing = b"", b"", b""
    """What stands before, between and after the lines of a file."""
    left_out: frozenset[str] = frozenset()
    """Fields of a body that do not stand in its line."""

    def __init__(self, http: BatchHttp) -> None:
        self._http = http

    @abstractmethod
    def line(self, ident: str, body: Body) -> Body:
        """Return one request as it stands in the file."""

    @abstractmethod
    async def submit(self, lines: LinesFile) -> str:
        """Send a file and make a batch of it; return the batch's name."""

    @abstractmethod
    async def find(self, lines: LinesFile, known: frozenset[str]) -> str | None:
        """Return a batch that was made of this file without our hearing of it; `known` are those we heard of."""

    @abstractmethod
    async def look(self, ident: str) -> BatchState:
        """Return how a batch stands."""

    @abstractmethod
    async def fetch(self, ident: str, state: BatchState, into: Path) -> None:
        """Write all lines of results to a file."""

    @abstractmethod
    def read(self, line: bytes) -> BatchResult:
        """Read one line of results."""

    @abstractmethod
    async def cancel(self, ident: str) -> None:
        """End a batch; what is done stays done."""

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def named_rows(value: Any, *places: str) -> list[dict[str, Any]]:
    """Return the objects of a listing, wherever of some places it holds them."""
    for place in places:
        rows = value.get(place) if isinstance(value, dict) else None
        if isinstance(rows, list):
            return [row for row in rows if isinstance(row, dict)]
    return []
