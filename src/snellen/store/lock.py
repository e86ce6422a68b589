"""One writer a run: an advisory lock that the system frees when its process dies, however it dies."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from ..core.errors import EnvironmentProblem
from .owner import Owner


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
