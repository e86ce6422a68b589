"""Timelines of a load as files: read, summarized by a profile's definitions, exported; and what these mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.errors import DataError
from ..perf.collect import partial_files, read_partial
from ..perf.files import export, read_json, read_timeline
from ..perf.metrics import COMMON, DEFINITIONS, DIFFERENCES, FILE_FORM, STATS, STEADY_RULE, parse_objectives, summarize
from ..perf.profile_aisbench import summarize_aisbench
from ..perf.stored import timeline_of_run
from ..perf.timeline import Timeline

__all__ = ["explain_metrics", "export", "parse_objectives", "read_any", "read_trace", "summary_of"]


def read_any(path: Path) -> Timeline:
    """Read a timeline file, the timings of a run folder, or what a killed load left."""
    file = path / "timeline.json" if path.is_dir() else path
    if path.is_dir() and not file.is_file() and partial_files(path):
        return read_partial(path)
    return timeline_of_run(path) if (path / "run.db").is_file() and not file.is_file() else read_timeline(file)


def summary_of(timeline: Timeline, *, profile: str, stage: str, stats: str | None, slo: str | None) -> dict[str, Any]:
    """Return the summary by the definitions of a profile."""
    names = [name.strip() for name in stats.split(",")] if stats else []
    if profile == "aisbench":
        return summarize_aisbench(timeline, stage, names)
    return summarize(timeline, stage, names or STATS, parse_objectives(slo) if slo else None)


def explain_metrics() -> dict[str, Any]:
    """Return what every metric means, the rule of the steady state, the file form, and how AISBench differs."""
    return {
        "metrics": [{"name": metric.name, "unit": metric.unit, "meaning": metric.meaning} for metric in DEFINITIONS],
        "common": [{"name": name, "unit": unit, "meaning": meaning} for name, unit, meaning in COMMON],
        "steady": STEADY_RULE,
        "file": FILE_FORM,
        "aisbench": [{"name": name, "difference": text} for name, text in DIFFERENCES],
    }


def read_trace(path: Path) -> tuple[float, ...]:
    """Read send moments in seconds: one number a line, a JSON list, or objects with `timestamp`.

    Whole timestamps in objects are milliseconds, as Mooncake writes them.
    """
    rows = read_json(path)
    rows = rows if isinstance(rows, list) else [rows]
    moments: list[Any] = [row.get("timestamp") if isinstance(row, dict) else row for row in rows]
    wrong = next((number for number, moment in enumerate(moments, 1) if type(moment) not in (int, float)), None)
    if wrong is not None:
        raise DataError(f"{path}: entry {wrong} has no send moment (a number, or an object with `timestamp`)")
    in_ms = isinstance(rows[0], dict) and all(type(moment) is int for moment in moments)
    return tuple(moment / (1000 if in_ms else 1) for moment in moments)
