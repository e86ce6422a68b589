"""Fixtures every test may use."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from snellen.kits.mock.server import Running


# The same examples every time, and no clock: a loaded machine must not fail a property.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

TESTS = Path(__file__).parent
ROOMS = ("api", "bank", "core", "engine", "infer", "prompt", "scoring", "stats", "store")
RUNS = (
    *("batch_runs", "cli_docs", "engine_options", "growing_runs", "run_features", "arms", "contaminated", "extractor"),
    *("bank_command", "own_card_protocols", "parsed_pages", "parts", "pictures_as_sent", "plugin_identity"),
    *("who_answered", "audit_command", "gate_command"),
)
FOLLOWED = {
    *(TESTS / "unit" / room for room in ROOMS),
    *(TESTS / "integration" / f"test_{name}.py" for name in RUNS),
    TESTS / "e2e" / "test_documents_mock.py",
    TESTS / "golden" / "test_parsing.py",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--followed", action="store_true", help="only the tests that coverage follows")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what coverage does not follow, where only the rest is asked for."""
    if not config.getoption("--followed"):
        return None
    around = {collection_path, *collection_path.parents}
    leads_there = any(collection_path in (place, *place.parents) for place in FOLLOWED)
    return None if leads_there or not FOLLOWED.isdisjoint(around) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let coverage follow only the tests that its gate needs: those it follows take up to 1.7 times as long."""
    for item in items if config.getoption("--cov", default=None) else ():
        if FOLLOWED.isdisjoint((item.path, *item.path.parents)):
            item.add_marker(pytest.mark.no_cover)


def pytest_collection_finish() -> None:
    """Take the tests and what they have imported out of the collector's rounds: a worker holds millions of objects to its end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder of the test's own: what a command writes below `runs` stays there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mock_server() -> Iterator[Callable[..., Running]]:
    """Start mock servers on threads of this process: `mock_server("--fault", "500@first1").base_url`.

    Where a server is killed, or timed so finely that a shared interpreter would show: `snellen.kits.mock.process.mock_process`.
    """
    from emulator import mock_thread

    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(mock_thread(arguments))
