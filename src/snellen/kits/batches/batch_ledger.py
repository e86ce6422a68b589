"""What was sent in batches, kept in the run's folder: another terminal, day or machine goes on from it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO

import msgspec

from ...core.errors import EnvironmentProblem, RunMismatch
from ...model.served.http_client import Body
from .batch_service import BatchService, LinesFile

LEDGER = "batches.json"
FILES = "batch"
WRITTEN, SENT, ENDED, READ, VOID = "written", "sent", "ended", "read", "void"
"""A file's way: complete on disk, a batch was made of it, its results are here, all are stored; or it was refused."""


class SentFile(msgspec.Struct):
    """One file of requests and the batch that was made of it."""

    name: str
    lines: int
    size_bytes: int
    state: str = WRITTEN
    batch: str | None = None
    words: str = ""
    """The service's own word for how it stands."""
    done: int = 0
    answered: int | None = None
    """How many of its lines came back with a response; None before they were fetched."""


class BatchLedger(msgspec.Struct):
    """All files of a run. `save` after every change, before anything else happens."""

    model: str
    base_url: str
    query: dict[str, str] = {}
    files: list[SentFile] = []
    folder: str = ""
    """What names this folder in the names of its files: a batch of another folder is never taken for one of ours."""

    @property
    def open(self) -> list[SentFile]:
        """Return those whose results are not here yet."""
        return [file for file in self.files if file.state in (WRITTEN, SENT)]

    @property
    def unread(self) -> list[SentFile]:
        """Return those whose results are here and not yet stored."""
        return [file for file in self.files if file.state == ENDED]

    @property
    def waiting(self) -> int:
        """Return how many requests wait in batches."""
        return sum(file.lines for file in self.open)

    def save(self, folder: Path) -> None:
        """Write it so that a crash leaves the old one or the new one."""
        path = folder / LEDGER
        beside = path.with_suffix(".new")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as out:
                out.write(msgspec.json.format(msgspec.json.encode(self), indent=1))
                out.flush()
                os.fsync(out.fileno())
            beside.replace(path)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None


def read_ledger(folder: Path) -> BatchLedger | None:
    """Return the ledger of a run's folder, if it has one."""
    path = folder / LEDGER
    try:
        return msgspec.json.decode(path.read_bytes(), type=BatchLedger)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise EnvironmentProblem(f"{path} cannot be read ({error}): what was sent in batches is not known") from None


def open_ledger(folder: Path, model: str, base_url: str, query: Mapping[str, str]) -> BatchLedger:
    """Return the ledger of a run, a new one where there is none; one of another server is refused."""
    kept = read_ledger(folder)
    if kept is None:
        return BatchLedger(model, base_url, dict(query), folder=secrets.token_hex(4))
    if kept.open and (kept.model, kept.base_url) != (model, base_url):
        there = f"{kept.waiting} requests in batches of {kept.model} at {kept.base_url}"
        raise RunMismatch(f"{folder} has {there}, and this is {model} at {base_url}: collect or cancel those first")
    own = kept.folder or secrets.token_hex(4)  # 0.2 gave none
    return msgspec.structs.replace(kept, model=model, base_url=base_url, query=dict(query), folder=own)


BUFFER_BYTES = 2**20


class LinesWriter:
    """Writes one file after another; `finish` returns the one that is open, complete and named by what it holds."""

    def __init__(self, folder: Path, service: BatchService, *, most_lines: int, most_bytes: int, run: str) -> None:
        """`run` names the run and its folder."""
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
            name = f"snellen-{self._run}-{number:04d}-{self._digest.hexdigest()[:8]}.jsonl"
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
