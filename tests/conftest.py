"""Fixtures every test may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from snellen.mock.process import ServerProcess, mock_process

# The same examples every time, and no clock: a loaded machine must not fail a property.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture
def mock_server() -> Iterator[Callable[..., ServerProcess]]:
    """Start mock servers in processes of their own: `mock_server("--fault", "500@first1").base_url`."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(mock_process([str(argument) for argument in arguments]))
