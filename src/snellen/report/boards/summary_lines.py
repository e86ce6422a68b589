"""Results of several tasks to one line each: what a terminal shows at the end of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from ..terminal import count_text, plain
from ..written import written, written_interval
from .headline import headline


def summary_table(results: Mapping[str, Any]) -> Table:
    """Return one line a task: its headline with the interval, on how many trials it rests, and how many were lost."""
    table = Table(title="all tasks", title_justify="left", title_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("metric", overflow="fold")
    for name in ("value", "95 % interval", "n", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for task, result in results["tasks"].items():
        metric, estimate = headline(result["metrics"], result.get("headline"))
        lost = (estimate["unscored"] or 0) + (estimate["failed"] or 0)
        cells = (written(metric or "", estimate), written_interval(metric or "", estimate), count_text(estimate["n"]))
        table.add_row(plain(task), plain(metric or "–"), *cells, count_text(lost))
    return table
