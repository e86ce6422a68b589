"""Jobs on disk, so that a server that was killed loses none: one file a job, one server a folder."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ...core.errors import EnvironmentProblem
from ...engine.control import write_whole

FOLDER = ".snellen-jobs"
QUEUED, RUNNING, DONE, STOPPED, CANCELLED, FAILED, INTERRUPTED = (
    *("queued", "running", "done", "stopped", "cancelled", "failed"),
    "interrupted",
)
OPEN = (QUEUED, RUNNING)


class Job(Struct, kw_only=True):
    """One run that somebody asked for."""

    id: str
    run: str
    """The name of its folder below the root."""
    task: str
    model: str
    arguments: list[str]
    """What `snellen run` is called with; keys are never among it."""
    max_cost: float
    currency: str = ""
    trials: int = 0
    billed: bool = False
    state: str = QUEUED
    created: str = ""
    ended: str = ""
    error: str = ""
    exit_code: int | None = None
    spent: float | None = None
    """What it paid, once it has ended."""

    @property
    def claim(self) -> float:
        """Return what of the limit it holds: all it may spend until it has ended, then what it spent."""
        if not self.billed:
            return 0.0
        return self.max_cost if self.spent is None or self.state in OPEN else self.spent


class Ledger:
    """The jobs below one root. Only one process may start any: it holds the lock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = root / FOLDER
        self._lock: int | None = None

    def own(self) -> None:
        """Become the one who starts jobs here, or say who is."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise EnvironmentProblem(
                f"process {owner} takes jobs for {self.root} already: use it, or stop it"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._lock = file

    def release(self) -> None:
        """Give the root free."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def add(self, job: Job) -> Job:
        """Keep a new job."""
        job.created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.keep(job)
        return job

    def keep(self, job: Job) -> None:
        """Write a job as it is now."""
        write_whole(self._folder / f"{job.id}.json", job)

    def get(self, name: str) -> Job | None:
        """Return a job by its id, or None."""
        return next((job for job in self.all() if job.id == name), None)

    def all(self) -> list[Job]:
        """Return all jobs, the oldest first; a file that is none is passed over."""
        return sorted(self._read(), key=lambda job: (job.created, job.id))

    def _read(self) -> Iterator[Job]:
        for file in sorted(self._folder.glob("*.json")):
            with suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode(file.read_bytes(), type=Job)

    def log_of(self, job: Job) -> Path:
        """Return where a job's own words go."""
        return self._folder / f"{job.id}.log"


def new_id() -> str:
    """Return an id for a job or a plan."""
    return secrets.token_hex(4)
