"""Finished requests of a load to a file while the load goes on, so that a killed process leaves what it measured."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from ..core.errors import DataError
from .timeline import RequestRecord, Timeline

PARTIAL = "timeline.partial"
"""How the files of a level that is not finished begin; one for each process of the generator."""
WRITE_EVERY_S = 0.25
"""A kill loses at most what came since; to write each record at once would disturb the load it times."""


class Journal:
    """Lines of JSON, a request each. Nothing is written when it has no path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._encode = msgspec.json.Encoder().encode
        self._timer: asyncio.TimerHandle | None = None

    def note(self, record: RequestRecord) -> None:
        """Keep one finished request; it is in the file a quarter of a second later."""
        if not self._path:
            return
        self._lines.append(self._encode(record) + b"\n")
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_EVERY_S, self.write)

    def write(self) -> None:
        """Append what is waiting, whole lines at once."""
        self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            with Path(self._path).open("ab", buffering=0) as file:
                file.write(b"".join(lines))


def partial_files(folder: Path) -> list[Path]:
    """Return what processes of a killed load left in a folder."""
    return sorted(folder.glob(f"{PARTIAL}*.jsonl"))


def read_partial(folder: Path) -> Timeline:
    """Return what a killed load had measured; a last line that was cut is left out, what was in flight is missing."""
    decode, records = msgspec.json.Decoder(RequestRecord).decode, []
    for path in partial_files(folder):
        try:
            records += [decode(line) for line in path.read_bytes().rpartition(b"\n")[0].splitlines()]
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path} is damaged: {error}; what stands before it can be kept by cutting the file"
            ) from None
    return Timeline(
        requests=tuple(sorted(records, key=lambda record: record.due)), interrupted=True, load={"killed": True}
    )
