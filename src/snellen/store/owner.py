"""A process as others can name it, and one writer a run: a lock that the system frees when its process dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import socket
from pathlib import Path

import msgspec

from ..core.errors import EnvironmentProblem

JOB_NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_COMPLETION_INDEX")


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process as others can name it."""

    host: str
    pid: int
    started: str = ""
    """When the process began, by its machine's count: a number that was given again is another process."""
    job: str = ""

    @classmethod
    def me(cls) -> Owner:
        """Return this process."""
        job = next((os.environ[name] for name in JOB_NUMBERS if os.environ.get(name)), "")
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()), job)

    @classmethod
    def read(cls, path: Path) -> Owner | None:
        """Return who is named in a file; None where nobody is."""
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(path.read_bytes(), type=cls)
        return None

    @property
    def is_here(self) -> bool:
        """Tell whether it is a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Tell whether it still runs; only of a process of this machine."""
        return Path(f"/proc/{self.pid}").exists() and _started(self.pid) == self.started

    def __str__(self) -> str:
        """Return it in words, for people who look for it."""
        return f"process {self.pid} {self.place}"

    @property
    def place(self) -> str:
        """Return where it runs, in words."""
        return f"on {self.host}" + (f" (job {self.job})" if self.job else "")


def _started(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def own_name() -> str:
    """Return a name for a file that no other process uses."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def is_left_over(name: str) -> bool | None:
    """Tell whether whoever made a name by `own_name` is gone; None of a process of another machine."""
    host, _, process = name.rpartition("-")[0].rpartition("-")
    return not Path(f"/proc/{process}").exists() if host == socket.gethostname() and process.isdecimal() else None


def sweep(folder: Path, prefix: str) -> int:
    """Remove what killed processes of this machine left of drafts `prefix` + `own_name()`; return how many files."""
    with contextlib.suppress(OSError):
        left = [path for path in folder.iterdir() if path.name.startswith(prefix)]
        gone = [path for path in left if is_left_over(path.name.removeprefix(prefix))]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)
    return 0


class RunLock:
    """Holds `run.lock`; a second writer is refused with the owner's process, machine and job."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "run.lock"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):  # the number in the file may be a dead process's
                os.close(self._file)
                why = f"the file system of {folder} cannot lock a file ({error.strerror})"
                raise EnvironmentProblem(f"{why}: write the run to a local disk with -o") from None
            pid, *where = os.pread(self._file, 200, 0).decode("utf-8", "replace").splitlines() or ["unknown"]
            os.close(self._file)
            owner = " ".join([f"process {pid}", *where])
            raise EnvironmentProblem(f"run {folder} is being written by {owner}: wait for it or stop it") from None
        os.ftruncate(self._file, 0)
        me = Owner.me()
        os.pwrite(self._file, f"{me.pid}\n{me.place}\n".encode(), 0)

    def release(self) -> None:
        """Give the run free. The file stays: removing it would let two writers hold two files."""
        os.close(self._file)
