"""What was sent in batches, kept in the run's folder: another terminal, day or machine goes on from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...core.errors import EnvironmentProblem, RunMismatch

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
        return BatchLedger(model, base_url, dict(query))
    if kept.open and (kept.model, kept.base_url) != (model, base_url):
        there = f"{kept.waiting} requests in batches of {kept.model} at {kept.base_url}"
        raise RunMismatch(f"{folder} has {there}, and this is {model} at {base_url}: collect or cancel those first")
    return msgspec.structs.replace(kept, model=model, base_url=base_url, query=dict(query))
