"""The moment on the wall, as every reply is noted with it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from snellen.core.clock import wall_time


@pytest.mark.parametrize("nanoseconds", [0, 999_999, 1_763_445_599_999_999_999, 1_763_445_600_000_000_000, 4 * 10**18])
def test_the_moment_is_written_as_the_standard_library_writes_it(
    nanoseconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds)
    assert wall_time() == moment.isoformat(timespec="milliseconds")
