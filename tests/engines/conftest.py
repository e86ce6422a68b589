"""Small checkpoints, and real servers with them on loopback: built and started by `make engines`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_questions import write_wide_checkpoint
from engine_servers import free_port, serving, vllm_command

ENGINE = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the engine reads from its environment, in this process and in those it starts."""
    own = {"SNELLEN_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (ENGINE | QUIET | own).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Write a small checkpoint of a kind that vLLM loads, once."""
    pytest.importorskip("vllm", reason="needs the environment of `make engines`")
    written: dict[str, Path] = {}

    def write(kind: str) -> Path:
        if kind not in written:
            written[kind] = write_wide_checkpoint(tmp_path_factory.mktemp(kind), kind)
        return written[kind]

    return write


@pytest.fixture(scope="session")
def wide_checkpoint(checkpoint_of: Callable[[str], Path]) -> Path:
    return checkpoint_of("idefics3")


@pytest.fixture(scope="session")
def server(wide_checkpoint: Path, environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real vLLM server with the small Idefics3; it ends with the tests."""
    port = free_port()
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(vllm_command(wide_checkpoint, port), port, log) as running:
        yield running.url
