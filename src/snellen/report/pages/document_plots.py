"""A stored run over documents into the rows of its plots: depth × length, row × column, severity curves, variants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.types import Estimate
from ...core.vega import Spec
from ...scoring.aggregates.means import split
from ...scoring.aggregates.robustness import curve, ladders
from ...scoring.stored import stored_tables
from ...scoring.tables.table import ScoreTable
from ...stats.intervals import estimate_mean
from ...store.reader import RunReader
from .vega import curves, heat_map, interval_bars, save_plot

MAIN = "accuracy"
Rows = list[dict[str, Any]]


def write_plots(run: Path, output: Path) -> list[Path]:
    """Write every plot the run has data for, as SVG, PNG, CSV and Vega-Lite."""
    with RunReader(run) as reader:
        tables = {task.name: _table(reader, task.name) for task in reader.header().tasks}
    files: list[Path] = []
    for name, table in tables.items():
        if table is not None:
            for plot, (spec, rows) in plots_of(table).items():
                files += save_plot(spec, rows, output / f"{name}-{plot}")
    return files


def plots_of(table: ScoreTable) -> dict[str, tuple[Spec, Rows]]:
    """Return the specification and rows of every plot that the table has data for, by name."""
    found: dict[str, tuple[Spec, Rows]] = {}
    for variant, part in split(table, "variant"):
        stem = f"-{variant}".replace("=", "_").replace(":", "_") if len(table.variants) > 1 else ""
        for name, x, y in (("depth-length", "length", "depth"), ("row-column", "column", "row")):
            if x in table.tags and y in table.tags:
                rows = cells(part, x, y)
                found[name + stem] = (heat_map(rows, x, y, title=_title(name, variant), labels=_LABELS), rows)
    severities = severity_rows(table)
    if severities:
        found["severity"] = (curves(severities, "severity", title="Accuracy by severity", labels=_LABELS), severities)
    if len(table.variants) > 1:
        rows = variant_rows(table)
        found["variants"] = (interval_bars(rows, "variant", title="Accuracy by variant", axis_title="accuracy"), rows)
    return found


def cells(table: ScoreTable, x: str, y: str) -> Rows:
    """Return mean and count of every (x, y), numbers sorted as numbers; None and 0 where nobody measured.

    Failed trials are wrong.
    """
    (codes_x, values_x), (codes_y, values_y) = table.tags[x], table.tags[y]
    rows = []
    for across in _sorted(values_x):
        for down in _sorted(values_y):
            chosen = (codes_x[table.sample] == list(values_x).index(across)) & (
                codes_y[table.sample] == list(values_y).index(down)
            )
            mean = float(table.value[chosen].mean()) if chosen.any() else None
            rows.append({x: _shown(x, across), y: _shown(y, down), "value": mean, "n": int(chosen.sum())})
    return rows


def severity_rows(table: ScoreTable) -> Rows:
    """Return the curve of every perturbation family with its clustered interval."""
    rows = []
    for ladder in ladders(table):
        for severity, estimate in curve(ladder).items():
            rows.append({"series": ladder.family, "severity": severity, **_bounds(estimate)})
    return rows


def variant_rows(table: ScoreTable) -> Rows:
    """Return the accuracy of every variant with its document-clustered interval."""
    rows = []
    for variant, part in split(table, "variant"):
        rows.append({"variant": variant, **_bounds(estimate_mean(part.value.astype(np.float64), part.cluster))})
    return rows


def _table(reader: RunReader, task: str) -> ScoreTable | None:
    table = stored_tables(reader, task).get(MAIN)
    return table.take(table.scored) if table is not None and table.scored.any() else None


def _bounds(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.ci95 or (estimate.value, estimate.value)
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n}


def _sorted(values: Any) -> list[str]:
    return sorted((value for value in values if value != "(none)"), key=lambda value: (_number(value), value))


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("inf")


def _shown(tag: str, value: str) -> str:
    number = _number(value)
    if number == float("inf"):
        return value
    return f"{number:.0%}" if tag in ("depth", "row", "column") else f"{number:g}"


def _title(name: str, variant: str) -> str:
    what = {"depth-length": "Needle depth × document length", "row-column": "Where on the page the needle stands"}[name]
    return what if variant == "base" else f"{what} ({variant})"


_LABELS: Mapping[str, str] = {
    "length": "document length (tokens)",
    "depth": "needle depth",
    "row": "from top of page",
    "column": "from left of page",
    "severity": "severity",
    "value": "accuracy",
    "series": "perturbation",
}
