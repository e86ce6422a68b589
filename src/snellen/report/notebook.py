"""Results as a notebook or a Python prompt shows them: one line, or the tables of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.markup import join, tag
from .boards.headline import headline
from .pages.parts import metric_table
from .written import written, written_interval


def headline_words(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield for each task its headline metric with interval and number of trials."""
    for task, result in results["tasks"].items():
        name, estimate = headline(result["metrics"], result.get("headline"))
        if name is None:
            yield f"{task}: nothing measured"
            continue
        interval = f" [{written_interval(name, estimate)}]" if estimate.get("ci95") else ""
        failed = f", {estimate['failed']} failed" if estimate["failed"] else ""
        yield f"{task} {name} {written(name, estimate)}{interval}, n {estimate['n']}{failed}"


def results_html(results: Mapping[str, Any]) -> str:
    """Return one table a task, without any script or style of its own."""
    title = tag("p", f"{results['model']} · run {results['run']['id']}")
    tables = (metric_table(result["metrics"], task) for task, result in results["tasks"].items())
    return str(join((title, *tables)))
