"""What `snellen perf` prints: reports, sweeps, summaries and definitions, as tables or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Column, Table

from ...api.look.timelines import explain_metrics
from ...api.perf import PerfReport, Sweep, sweep_table
from ...report.console import WholeConsole
from ...report.pages.perf_page import value_words
from ...report.terminal import plain
from ..options import print_json

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


def print_summary(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a summary."""
    if as_json:
        print_json(summary)
        return
    console = WholeConsole()
    console.print(_metrics_table(summary))
    figures = Table("load", "", "unit")
    for name, value in summary["common"].items():
        figures.add_row(name, _number(value), summary["units"].get(name, ""))
    console.print(figures)
    for note in summary["notes"]:
        console.print(plain(f"note: {note}"))


def _metrics_table(summary: Mapping[str, Any]) -> Table:
    known: dict[str, float] = next(iter(summary["metrics"].values()), {})
    stats = [stat for stat in SHOWN_STATS if stat in known] if len(known) > len(SHOWN_STATS) else list(known)
    table = Table(Column("metric", no_wrap=True), *stats, title=f"{summary['profile']}, {summary['stage']}")
    for name, row in summary["metrics"].items():
        unit = summary["units"].get(name, "")
        scale, unit = (1000, "ms") if unit == "s" else (1, unit)
        label = name if unit.startswith("token") else f"{name}, {unit}"
        table.add_row(label, *(_number(row[stat] * (1 if stat == "N" else scale)) for stat in stats))
    return table


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
    console = WholeConsole()
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
        told = {name: value for name, value in level["value"].items() if value not in (None, "")}
        yield ", ".join(f"{name} {value_words(name, value) or _number(value)}" for name, value in told.items())


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
    console = WholeConsole()
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
    meanings = explain_metrics()
    if as_json:
        print_json(meanings)
        return
    console = WholeConsole()
    for title, key in (("of each request", "metrics"), ("of the load", "common")):
        _print_rows(console, Table("metric", "unit", "meaning", title=title), meanings[key])
    console.print(plain(meanings["steady"]))
    console.print(plain(meanings["file"]))
    heading = "how its figure differs from ours (--profile aisbench gives its own)"
    _print_rows(console, Table("AISBench", heading), meanings["aisbench"])


def _print_rows(console: WholeConsole, table: Table, rows: Iterable[Mapping[str, str]]) -> None:
    for row in rows:
        table.add_row(*row.values())
    console.print(table)
