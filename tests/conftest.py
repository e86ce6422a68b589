"""Fixtures every test may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from snellen.mock.process import ServerProcess, mock_process

# The same examples every time, and no clock: a loaded machine must not fail a property.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

TESTS = Path(__file__).parent
ROOMS = ("api", "core", "engine", "infer", "prompt", "scoring", "stats", "store")
RUNS = ("batch_runs", "cli_docs", "engine_options", "growing_runs", "run_features")
FOLLOWED = {
    *(TESTS / "unit" / room for room in ROOMS),
    *(TESTS / "integration" / f"test_{name}.py" for name in RUNS),
    TESTS / "e2e" / "test_documents_mock.py",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let coverage follow only the tests that its gate needs: those it follows take up to 1.7 times as long.

    The environment of `make engines` has no coverage, so no such mark either.
    """
    for item in items if config.pluginmanager.has_plugin("pytest_cov") else ():
        if FOLLOWED.isdisjoint((item.path, *item.path.parents)):
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder of the test's own: what a command writes below `runs` stays there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mock_server() -> Iterator[Callable[..., ServerProcess]]:
    """Start mock servers in processes of their own: `mock_server("--fault", "500@first1").base_url`."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(mock_process([str(argument) for argument in arguments]))
