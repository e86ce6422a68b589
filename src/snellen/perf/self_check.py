"""The load generator looks at itself: CPU, event-loop lag and dispatch delay in, whether it was the bottleneck out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Self

import numpy as np
from msgspec import Struct

from .collect import Outcome

INTERVAL_S = 0.05
CPU_LIMIT = 0.85
"""Above this share of one core the generator itself queues."""
LAG_LIMIT_S = 0.010
DELAY_LIMIT_S = 0.020


class WatchReport(Struct, omit_defaults=True):
    """How busy one process of the generator was. `limited` says why its figures cannot be trusted, or is empty."""

    wall_s: float
    cpu_s: float
    cpu_share: float
    lag_p50_s: float
    lag_p99_s: float
    delay_p50_s: float
    delay_p99_s: float
    processes: int = 1
    limited: str = ""


class Watch:
    """Samples the event loop while a load runs."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._task: asyncio.Task[None] | None = None
        self._began = (0.0, 0.0)

    async def __aenter__(self) -> Self:
        self._began = (time.perf_counter(), time.process_time())
        self._task = asyncio.create_task(self._sample())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended = (time.perf_counter(), time.process_time())
        if self._task is not None:
            self._task.cancel()

    async def _sample(self) -> None:
        while True:
            due = time.perf_counter() + INTERVAL_S
            await asyncio.sleep(INTERVAL_S)
            self._lags.append(max(0.0, time.perf_counter() - due))

    def report(self, outcomes: Sequence[Outcome], *, capped: bool) -> WatchReport:
        """Sum up. With a cap or slots the wait before a send is meant, so it is no sign against the generator."""
        wall = max(self._ended[0] - self._began[0], 1e-9)
        cpu = self._ended[1] - self._began[1]
        delays = [outcome.record.sent - outcome.record.due for outcome in outcomes]
        lag, delay = _percentiles(self._lags), _percentiles(delays)
        report = WatchReport(wall, cpu, cpu / wall, *lag, *delay)
        report.limited = verdict(report, capped=capped)
        return report


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 0.0
    middle, tail = np.percentile(values, [50, 99])
    return float(middle), float(tail)


def verdict(report: WatchReport, *, capped: bool) -> str:
    """Return in words why the generator was the bottleneck, or the empty string."""
    if report.cpu_share > CPU_LIMIT:
        return f"it used {report.cpu_share:.0%} of a core (limit {CPU_LIMIT:.0%})"
    if report.lag_p99_s > LAG_LIMIT_S and report.cpu_share > CPU_LIMIT / 2:
        return f"its event loop lagged by {report.lag_p99_s * 1000:.1f} ms at P99 (limit {LAG_LIMIT_S * 1000:.0f} ms)"
    if not capped and report.delay_p99_s > DELAY_LIMIT_S:
        return f"it sent {report.delay_p99_s * 1000:.1f} ms late at P99 (limit {DELAY_LIMIT_S * 1000:.0f} ms)"
    return ""


def merge_reports(reports: Sequence[WatchReport]) -> WatchReport:
    """Join the reports of several processes: times add up, the worst of each figure counts."""
    names = ("wall_s", "cpu_share", "lag_p50_s", "lag_p99_s", "delay_p50_s", "delay_p99_s")
    worst = {name: max(getattr(report, name) for report in reports) for name in names}
    limited = next((report.limited for report in reports if report.limited), "")
    return WatchReport(cpu_s=sum(report.cpu_s for report in reports), processes=len(reports), limited=limited, **worst)
