"""A review server in a process of its own, and a person at a browser in front of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from command_line import COMMAND


@dataclass
class ReviewServer:
    """A running `snellen curate review`."""

    process: subprocess.Popen[str]
    links: dict[str, str]
    port: int

    @property
    def root(self) -> str:
        """Where the server answers."""
        return f"http://127.0.0.1:{self.port}"

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it, by default without a chance to tidy up."""
        os.kill(self.process.pid, number)
        self.process.wait()


@contextmanager
def review_server(folder: Path, *arguments: str) -> Iterator[ReviewServer]:
    """Start the server and wait for its line; it is ended with the block."""
    process = subprocess.Popen(
        [*COMMAND, "curate", "review", str(folder), "--json", *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        yield ReviewServer(process, ready["links"], ready["port"])
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
