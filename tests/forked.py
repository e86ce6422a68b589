"""Commands by fork from a process that has everything imported: a start costs milliseconds, so a hundred kills are cheap.

As a program it reads one command a line, starts it, and prints its pid and then its exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from waiting import CEILING_S

IMPORTED = (
    "snellen.cli.run",
    "snellen.kits.curate.commands",
    "snellen.api.run",
    "snellen.kits.curate.library",
    "snellen.api.perf",
)


class Forge:
    """Starts commands one at a time; each is a process of its own that may be killed."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self._process, self._said = process, said

    def start(self, arguments: Sequence[object], **environment: str) -> int:
        """Start `snellen ARGUMENTS` and return its pid."""
        told = {"arguments": list(map(str, arguments)), "environment": environment, "said": str(self._said)}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def wait(self, timeout_s: float = CEILING_S) -> int | None:
        """Return the exit code (negative: the signal), or None when it still runs after so long."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        return int(self._process.stdout.readline()) if ready else None

    def run(self, arguments: Sequence[object], **environment: str) -> float:
        """Run a command to its good end and return how long it took."""
        started = monotonic()
        self.start(arguments, **environment)
        code = self.wait()
        assert code == 0, f"exit {code}: {self.said()[-3000:]}"
        return monotonic() - started

    def stop_after(self, pid: int, delay_s: float, number: int = signal.SIGKILL) -> int:
        """Send the signal after so long unless the command has ended; return its exit code."""
        code = self.wait(delay_s)
        if code is None:
            os.kill(pid, number)
            code = self.wait()
        assert code is not None, "the command does not end"
        return code

    def watch(self, pid: int, moment: Callable[[], bool]) -> float | None:
        """Return when the moment came, or None if the command ended well before it."""
        deadline = monotonic() + CEILING_S
        while not moment():
            code = self.wait(0.005)
            assert code in (None, 0), f"exit {code}: {self.said()[-3000:]}"
            if code == 0:
                return None
            assert monotonic() < deadline, f"{pid} does not come to the awaited moment"
        return monotonic()

    def stop_between(self, pid: int, done: Callable[[], int], place: int, known: int, delay_s: float) -> int:
        """Kill the command so long after it has done so much unless it has ended; return its exit code.

        At a place that lies behind it is killed while it starts: so long after its start, and at the latest when it does more.
        """
        if place > known:
            return 0 if self.watch(pid, lambda: done() >= place) is None else self.stop_after(pid, delay_s)
        latest = monotonic() + delay_s
        if self.watch(pid, lambda: monotonic() >= latest or done() > known) is None:
            return 0
        return self.stop_after(pid, 0.0)

    def said(self) -> str:
        """Return what the last command wrote to stdout and stderr."""
        return self._said.read_text(errors="replace")


@contextmanager
def forge(said: Path, *modules: str) -> Iterator[Forge]:
    """Start the process that forks, with these modules imported beside those every command needs."""
    command = [sys.executable, __file__, *IMPORTED, *modules]
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, bufsize=0) as process:
        try:
            yield Forge(process, said)
        finally:
            process.kill()


def main() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


def become(told: dict[str, object]) -> None:
    """Be the command, in a process group of its own, with files for its streams."""
    from snellen.cli.main import main as command

    os.setsid()
    os.environ.update(told["environment"])  # type: ignore[arg-type]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(
            os.open(str(told["said"]), os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if stream == 1 else 0) | os.O_APPEND),
            stream,
        )
    if "KILL_AT" in os.environ:
        kill_at_change(int(os.environ["KILL_AT"]), os.environ["KILL_IN"])
    command(told["arguments"])  # type: ignore[arg-type]
    raise AssertionError("the command must end by an exit code")


CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "sqlite3.connect")


def kill_at_change(number: int, folder: str) -> None:
    """Kill this process before the n-th time that it changes something below a folder."""
    count = 0

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event == "open":
            changes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            changes = event in CHANGES
        if changes and (folder in str(arguments[0]) or (event in ("os.remove", "os.rmdir") and arguments[1] != -1)):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


if __name__ == "__main__":
    main()
