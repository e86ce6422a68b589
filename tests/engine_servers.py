"""Real servers on loopback, started by the tests of `make engines` and ended by their process id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine_questions import NAME
from waiting import wait_until

START_S = 600.0
END_S = 60.0
CONTEXT = 512
"""Tokens that fit a served checkpoint."""


@dataclass
class Served:
    """A server that answers, and its process: the first of a session of its own, so that a kill takes all of it."""

    process: subprocess.Popen[bytes]
    host: str

    @property
    def url(self) -> str:
        """What is given as --base-url."""
        return f"{self.host}/v1"

    def kill(self) -> None:
        """End it without a warning, its engine included."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=END_S)

    def end(self) -> None:
        """Ask it to end, and see to it that nothing is left."""
        self.process.terminate()
        try:
            self.process.wait(timeout=END_S)
        finally:
            _kill_rest(self.process.pid)


def _kill_rest(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def free_port() -> int:
    """A port of loopback that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(
    command: Sequence[str], port: int, log: Path, ready: str = "/health", **environment: str
) -> Iterator[Served]:
    """Start a server, wait until it says it is ready, and end it."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    served = Served(process, f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: process.poll() is not None or _answers(served.host + ready), command[-1], START_S)
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        yield served
    finally:
        served.end()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def vllm_command(checkpoint: Path, port: int) -> list[str]:
    """What serves a checkpoint by vLLM, in float32 and without compiling."""
    model = ["--model", str(checkpoint), "--served-model-name", NAME, "--dtype", "float32"]
    limits = ["--max-model-len", str(CONTEXT), "--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *model, *limits]


def transformers_command(checkpoint: Path, port: int) -> list[str]:
    """What serves a checkpoint by `transformers serve`; it is known by its folder there."""
    program = str(Path(sys.executable).parent / "transformers")
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    return [program, "serve", str(checkpoint), *where]
