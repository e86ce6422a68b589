"""A mock server in a process of its own, for tests and benchmarks that must not share an event loop with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from ...core.errors import EnvironmentProblem


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running `snellen mock-server`."""

    base_url: str
    port: int
    pid: int


@contextmanager
def mock_process(arguments: Sequence[str] = ()) -> Iterator[ServerProcess]:
    """Run `snellen mock-server ARGUMENTS` until the block ends; wait for its ready line first."""
    program = "from snellen.cli.main import main; main()"
    command = [sys.executable, "-c", program, "mock-server", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own command
        try:
            line = process.stdout.readline() if process.stdout else b""
            if not line:
                raise EnvironmentProblem(f"the mock server did not start: {' '.join(arguments)}")
            ready = msgspec.json.decode(line)
            yield ServerProcess(ready["base_url"], ready["port"], process.pid)
        finally:
            process.terminate()
            process.wait(timeout=10)
