"""A small checkpoint, and vLLM's server with it on loopback: real engines, built and started by `make engines`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_questions import NAME, write_wide_checkpoint
from waiting import wait_until

START_S = 600.0
ENGINE = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session", autouse=True)
def environment() -> Iterator[None]:
    """What the engine reads from its environment, in this process and in those it starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (ENGINE | QUIET).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def wide_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("vllm", reason="needs the environment of `make engines`")
    return write_wide_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def server(wide_checkpoint: Path, environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real vLLM server; it ends with the tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = ["--model", str(wide_checkpoint), "--served-model-name", NAME, "--dtype", "float32"]
    limits = ["--max-model-len", "512", "--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *model, *limits]
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=dict(os.environ), stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: process.poll() is not None or _serves(port), "vLLM's server", START_S)
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _serves(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as response:
            return NAME.encode() in response.read()
    except (urllib.error.URLError, OSError):
        return False
