"""What `snellen perf` prints: reports, sweeps, summaries and definitions, as tables or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Column, Table

from ...api.perf import PerfReport
from ...perf.definitions import COMMON, DEFINITIONS, FILE_FORM, STEADY_RULE
from ...perf.metrics import STATS, summarize
from ...perf.profile_aisbench import DIFFERENCES, summarize_aisbench
from ...perf.read import read_timeline
from ...perf.slo import parse_objectives
from ...perf.stored import timeline_of_run
from ...perf.sweep import Sweep, sweep_table
from ...perf.timeline import Timeline
from ...report.terminal import plain

LATENCIES = ("TTFT", "TTFTScheduled", "TPOT", "ITL", "E2EL", "E2ELScheduled", "QueueTime")
FIGURES = {
    "requests ok": "Success Requests",
    "failed": "Failed Requests",
    "cancelled": "Cancelled Requests",
    "requests/s": "Request Throughput",
    "output tokens/s": "Output Token Throughput",
    "input tokens/s": "Input Token Throughput",
    "mean in flight": "Concurrency",
    "goodput, requests/s": "Goodput",
    "goodput share": "Goodput Share",
}
SHOWN_STATS = ("Average", "Median", "P90", "P99", "P99.9", "N")


def read_any(path: Path) -> Timeline:
    """Read a timeline file, or the timings of a run folder."""
    return (
        timeline_of_run(path)
        if (path / "run.db").is_file() and not (path / "timeline.json").is_file()
        else read_timeline(_file(path))
    )


def _file(path: Path) -> Path:
    return path / "timeline.json" if path.is_dir() else path


def summary_of(timeline: Timeline, *, profile: str, stage: str, stats: str | None, slo: str | None) -> dict[str, Any]:
    """Return the summary by the definitions of a profile."""
    names = [name.strip() for name in stats.split(",")] if stats else []
    if profile == "aisbench":
        return summarize_aisbench(timeline, stage, names)
    return summarize(timeline, stage, names or STATS, parse_objectives(slo) if slo else None)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(msgspec.json.encode(value, enc_hook=str).decode() + "\n")


def print_summary(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a summary."""
    if as_json:
        print_json(summary)
        return
    console = Console()
    units = summary["units"]
    known: dict[str, float] = next(iter(summary["metrics"].values()), {})
    stats = [stat for stat in SHOWN_STATS if stat in known] if len(known) > len(SHOWN_STATS) else list(known)
    table = Table(Column("metric", no_wrap=True), *stats, title=f"{summary['profile']}, {summary['stage']}")
    for name, row in summary["metrics"].items():
        scale, unit = _shown_unit(units.get(name, ""))
        table.add_row(
            name if unit.startswith("token") else f"{name}, {unit}",
            *(_number(row[stat] * (1 if stat == "N" else scale)) for stat in stats),
        )
    console.print(table)
    figures = Table("load", "", "unit")
    for name, value in summary["common"].items():
        figures.add_row(name, _number(value), units.get(name, ""))
    console.print(figures)
    for note in summary["notes"]:
        console.print(plain(f"note: {note}"))


def _shown_unit(unit: str) -> tuple[int, str]:
    return (1000, "ms") if unit == "s" else (1, unit)


def _number(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.1f}" if abs(value) < 10_000 else f"{value:,.0f}"


def print_report(report: PerfReport, *, as_json: bool) -> None:
    """Print a measurement: one line a level, then what must be known to trust it."""
    if as_json:
        print_json(report)
        return
    console = Console()
    measured = [level for level in report.levels if level.get("total")]
    table = Table("", *(level["level"] for level in measured), title=f"{report.task} · {report.model}")
    for row in (*_figures(measured), *_latencies(measured)):
        table.add_row(*row)
    console.print(table)
    for level in report.levels:
        for line in _remarks(level):
            console.print(plain(f"{level['level']}: {line}"))
    if report.interrupted:
        console.print(plain("stopped by hand: the report holds what was measured until then"))
    console.print(plain(f"report {report.folder / 'perf.json'}"))


def _remarks(level: Mapping[str, Any]) -> Iterator[str]:
    yield from level.get("notes", ())
    for kind, count in ((level.get("total") or {}).get("errors") or {}).items():
        yield f"{count} × {kind}"
    if level.get("value"):
        yield ", ".join(f"{name} {_number(value)}" for name, value in level["value"].items() if value is not None)


def _figures(levels: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the figures of the load: one line a figure, one cell a level."""
    common = [level["total"]["common"] for level in levels]
    steady = [(level.get("steady") or {}).get("common", {}).get("Request Throughput") for level in levels]
    for label, name in FIGURES.items():
        if any(name in table for table in common):
            yield [label, *(_number(table.get(name)) for table in common)]
    yield ["requests/s, steady state", *map(_number, steady)]


def _latencies(levels: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield median and P99 of every latency, in milliseconds."""
    for name, (label, stat) in product(LATENCIES, (("p50", "Median"), ("p99", "P99"))):
        values = [level["total"]["metrics"].get(name, {}).get(stat) for level in levels]
        if any(value is not None for value in values):
            yield [f"{name} {label}, ms", *(_number(None if value is None else value * 1000) for value in values)]


def print_sweep(sweep: Sweep, folder: Path, *, as_json: bool) -> None:
    """Print the points of a sweep and its answer."""
    if as_json:
        print_json({**msgspec.to_builtins(sweep), "folder": str(folder)})
        return
    console = Console()
    rows = sweep_table(sweep)
    headings = list(rows[-1]) if rows else []
    table = Table(*(f"{key} ms" if " " in key else key for key in headings), title=f"load in {sweep.unit}")
    for row in rows:
        table.add_row(*(_cell(key, row.get(key)) for key in headings))
    console.print(table)
    for line in _conclusion(sweep):
        console.print(plain(line))
    console.print(plain(f"report {folder / 'sweep.json'}"))


def _conclusion(sweep: Sweep) -> Iterator[str]:
    bounds = ", ".join(f"{name} ≤ {bound * 1000:g} ms" for name, bound in sweep.objectives.items())
    best = f"{sweep.best:.4g} {sweep.unit}" if sweep.best is not None else "no load"
    yield f"{best} meets {bounds} for {sweep.attainment:.0%} of requests"
    if sweep.note:
        yield f"note: {sweep.note}"


def _cell(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value * 1000 if " " in key and value is not None else value)


def print_definitions(*, as_json: bool) -> None:
    """Print what every metric means."""
    metrics = [{"name": each.name, "unit": each.unit, "meaning": each.meaning} for each in DEFINITIONS]
    common = [{"name": name, "unit": unit, "meaning": meaning} for name, unit, meaning in COMMON]
    if as_json:
        aisbench = [{"name": name, "difference": text} for name, text in DIFFERENCES]
        print_json(
            {"metrics": metrics, "common": common, "steady": STEADY_RULE, "file": FILE_FORM, "aisbench": aisbench}
        )
        return
    console = Console()
    for title, rows in (("of each request", metrics), ("of the load", common)):
        table = Table("metric", "unit", "meaning", title=title)
        for row in rows:
            table.add_row(row["name"], row["unit"], row["meaning"])
        console.print(table)
    console.print(plain(STEADY_RULE))
    console.print(plain(FILE_FORM))
    table = Table("AISBench", "how its figure differs from ours (--profile aisbench gives its own)")
    for name, text in DIFFERENCES:
        table.add_row(name, text)
    console.print(table)
