"""Requests to files of lines, each as full as its service takes it; pictures pass through, memory stays flat."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import IO

from ...core.errors import EnvironmentProblem
from ...model.served.http_client import Body
from .batch_ledger import SentFile
from .batch_service import BatchService, LinesFile

BUFFER_BYTES = 2**20


class LinesWriter:
    """Writes one file after another; `finish` returns the one that is open, complete and named by what it holds."""

    def __init__(self, folder: Path, service: BatchService, *, most_lines: int, most_bytes: int, run: str) -> None:
        self._folder = folder
        self._service = service
        self._most_lines = most_lines
        self._most_bytes = most_bytes
        self._run = run
        self._out: IO[bytes] | None = None
        self._names: IO[bytes] | None = None
        self._digest = sha256()
        self.lines = 0
        self.size_bytes = 0

    def fits(self, size_bytes: int) -> bool:
        """Tell whether one more line fits into the file that is open; the first always does."""
        return not self.lines or (self.lines < self._most_lines and self.size_bytes + size_bytes <= self._most_bytes)

    def put(self, ident: str, line: Body) -> None:
        """Write one line."""
        try:
            out, names = self._opened()
            if self.lines and self._service.between:
                out.write(self._service.between)
            out.writelines(line)
            names.write(ident.encode() + b"\n")
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {self._folder}: {error.strerror}") from None
        self._digest.update(ident.encode())
        self.lines += 1
        self.size_bytes += sum(map(len, line)) + len(self._service.between)

    def _opened(self) -> tuple[IO[bytes], IO[bytes]]:
        """Return the file that is open and that of its names; begin new ones where none is."""
        if self._out is None or self._names is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._out = (self._folder / "open.jsonl").open("wb", BUFFER_BYTES)
            self._names = (self._folder / "open.ids").open("wb", BUFFER_BYTES)
            self._out.write(self._service.opening)
        return self._out, self._names

    def finish(self, number: int) -> SentFile | None:
        """Close the open file and return what it is; None where nothing was written."""
        if self._out is None or self._names is None:
            return None
        try:
            self._out.write(self._service.closing)
            self._out.close()
            self._names.close()
            name = f"snellen-{self._run[:12]}-{number:04d}-{self._digest.hexdigest()[:8]}.jsonl"
            (self._folder / "open.ids").replace(self._folder / f"{name}.ids")
            (self._folder / "open.jsonl").replace(self._folder / name)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {self._folder}: {error.strerror}") from None
        made = SentFile(name, self.lines, self.size_bytes)
        self._out = self._names = None
        self._digest, self.lines, self.size_bytes = sha256(), 0, 0
        return made


def lines_file(folder: Path, sent: SentFile) -> LinesFile:
    """Return a written file as its service takes it."""
    return LinesFile(sent.name, folder / sent.name, sent.lines)


def idents_of(folder: Path, sent: SentFile) -> list[str]:
    """Return the names of a file's requests."""
    try:
        return (folder / f"{sent.name}.ids").read_text("ascii").split()
    except OSError as error:
        raise EnvironmentProblem(f"{error.filename} cannot be read: what {sent.name} asks is not known") from None
