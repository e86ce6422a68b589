"""A summary or a timeline in, text for other programs out: CSV that no spreadsheet executes, Prometheus, JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..core.errors import UsageError
from ..core.text import safe_cell
from .definitions import COMMON, DEFINITIONS
from .timeline import Timeline

_SUFFIX = {"s": "seconds", "ms": "milliseconds", "token": "tokens"}
_SUFFIX |= {"token/s": "tokens_per_second", "req/s": "requests_per_second"}
_REQUEST_COLUMNS = (
    "id", "scheduled", "start", "first_event", "first_reasoning", "first_content", "done", "input_tokens",
    "output_tokens", "reasoning_tokens", "cached_tokens", "visual_tokens", "counted_by", "images", "pixels",
    "sent_bytes", "turn", "target", "worker", "failure", "status", "message",
)  # fmt: skip


def metrics_csv(summary: Mapping[str, Any]) -> str:
    """Return one line a metric with its statistics, then one line a common figure."""
    metrics = summary["metrics"]
    stats = list(next(iter(metrics.values()), {}))
    units = summary.get("units", {})
    cells = {name: [row.get(stat) for stat in stats] for name, row in metrics.items()}
    cells |= {name: [value] for name, value in summary["common"].items()}
    rows = [[name, units.get(name, ""), summary["stage"], *row] for name, row in cells.items()]
    return _csv([["metric", "unit", "stage", *stats], *rows])


def requests_csv(timeline: Timeline) -> str:
    """Return one line a request, moments in seconds at full precision."""
    rows: list[list[Any]] = [list(_REQUEST_COLUMNS)]
    for record in timeline.requests:
        fields = msgspec.to_builtins(record)
        rows.append([fields.get(column) for column in _REQUEST_COLUMNS])
    return _csv(rows)


def _csv(rows: list[list[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def prometheus(summary: Mapping[str, Any]) -> str:
    """Return the summary in Prometheus text format: one gauge a metric, one sample a statistic."""
    units = summary.get("units", {})
    meanings = {name: text for name, _, text in COMMON}
    meanings |= {definition.name: definition.meaning for definition in DEFINITIONS}
    stage = f'stage="{summary["stage"]}"'
    lines: list[str] = []
    for name, row in summary["metrics"].items():
        gauge = _gauge(name, units.get(name, ""), meanings.get(name, name), lines)
        lines += [f'{gauge}{{{stage},stat="{stat}"}} {value!r}' for stat, value in row.items()]
    for name, value in summary["common"].items():
        if isinstance(value, int | float):
            gauge = _gauge(name, units.get(name, ""), meanings.get(name, name), lines)
            lines.append(f"{gauge}{{{stage}}} {value!r}")
    return "\n".join(lines) + "\n"


def _gauge(name: str, unit: str, meaning: str, lines: list[str]) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace(" ", "_")).lower()
    suffix = _SUFFIX.get(unit, "")
    gauge = f"snellen_perf_{words}" + (f"_{suffix}" if suffix and not words.endswith(suffix) else "")
    lines += [f"# HELP {gauge} {meaning}", f"# TYPE {gauge} gauge"]
    return gauge


def as_json(summary: Mapping[str, Any]) -> str:
    """Return the summary as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=2).decode() + "\n"


FORMATS: dict[str, Callable[[Mapping[str, Any], Timeline], str]] = {
    "json": lambda summary, timeline: as_json(summary),
    "csv": lambda summary, timeline: metrics_csv(summary),
    "requests-csv": lambda summary, timeline: requests_csv(timeline),
    "prometheus": lambda summary, timeline: prometheus(summary),
}


def export(kind: str, summary: Mapping[str, Any], timeline: Timeline) -> str:
    """Return the text of one export format by its name."""
    if kind not in FORMATS:
        raise UsageError(f"no export format {kind!r}; known: {', '.join(FORMATS)}")
    return FORMATS[kind](summary, timeline)
