"""A timeline in, every metric by our own definitions out: whole run or steady state, full precision, seconds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError, UsageError
from .definitions import COMMON, DEFINITIONS, output_tokens
from .slo import Objectives, is_good
from .steady import Window, concurrency_steps, steady_window, whole_run
from .timeline import CANCELLED, RequestRecord, Timeline

STATS = ("Average", "Min", "Max", "Median", "P75", "P90", "P95", "P99", "P99.9")
STAGES = ("total", "stable")
_PERCENTILE = re.compile(r"P(\d{1,2}(?:\.\d+)?)\Z")

Table = dict[str, dict[str, float]]


def describe(values: Sequence[float] | np.ndarray[Any, Any], stats: Sequence[str] = STATS) -> dict[str, float]:
    """Return the statistics of `values` (linear interpolation between order statistics) and `N`."""
    array = np.asarray(values, dtype=np.float64)
    result: dict[str, float] = {stat: statistic(array, stat) for stat in stats}
    result["N"] = int(array.size)
    return result


def statistic(array: np.ndarray[Any, Any], stat: str) -> float:
    """Return one statistic by name: Average, Min, Max, Median, Std or P1 … P99.99."""
    named = {"Average": np.mean, "Min": np.min, "Max": np.max, "Median": np.median, "Std": np.std}
    if stat in named:
        return float(named[stat](array))
    match = _PERCENTILE.match(stat)
    if not match:
        raise UsageError(f"no statistic {stat!r}; known: {', '.join(named)}, P1 to P99.99")
    return float(np.percentile(array, float(match.group(1))))


def summarize(timeline: Timeline, stage: str = "total", stats: Sequence[str] = STATS, objectives: Objectives | None = None) -> dict[str, Any]:
    """Return `{profile, stage, metrics, common, errors, units, notes}` of the whole run or of the steady state."""
    records = timeline.requests
    if not records:
        raise DataError("the timeline holds no request: there is nothing to summarize")
    window = choose_window(records, stage)
    members = [record for record in records if stage == "total" or window.holds(record)]
    return {
        "profile": "snellen",
        "stage": stage,
        "window": [window.start, window.end],
        "metrics": metric_table(members, stats, timeline.every_event),
        "common": common_table(timeline, window, members, objectives),
        "errors": dict(Counter(record.failure for record in members if record.failure)),
        "units": {definition.name: definition.unit for definition in DEFINITIONS} | {name: unit for name, unit, _ in COMMON if unit},
        "notes": notes(timeline),
    }


def choose_window(records: Sequence[RequestRecord], stage: str) -> Window:
    """Return the window of a stage; an absent steady state is an error that says what to do."""
    if stage == "total":
        return whole_run(records)
    if stage != "stable":
        raise UsageError(f"no stage {stage!r}; known: {', '.join(STAGES)}")
    window = steady_window(records)
    if window is None:
        raise DataError("no steady state in this timeline: fewer than three requests were sent after the ramp; run it longer")
    return window


def metric_table(members: Sequence[RequestRecord], stats: Sequence[str], every_event: bool = True) -> Table:
    """Return {metric: {statistic: value, N}}; a metric no request has is left out."""
    table: Table = {}
    for definition in DEFINITIONS:
        if definition.name == "ITL" and not every_event:
            continue
        values = [value for record in members for value in definition.values(record)]
        if values:
            table[definition.name] = describe(values, stats)
    return table


def common_table(timeline: Timeline, window: Window, members: Sequence[RequestRecord], objectives: Objectives | None) -> dict[str, Any]:
    """Return the figures of the load as a whole, by the words of `definitions.COMMON`."""
    records = timeline.requests
    shares = np.array([window.share(record) for record in records])
    good = [record.ok for record in records]
    tokens_in = _shared(shares, good, [record.input_tokens or 0 for record in records])
    tokens_out = _shared(shares, good, [output_tokens(record) or 0 for record in records])
    failures = Counter(record.failure for record in members)
    table: dict[str, Any] = {
        "Benchmark Duration": window.length,
        "Total Requests": len(members),
        "Success Requests": failures[None],
        "Failed Requests": len(members) - failures[None] - failures[CANCELLED],
        "Cancelled Requests": failures[CANCELLED],
        "Concurrency": _rate(float(np.dot(shares, [record.end - record.sent for record in records])), window),
        "Peak Concurrency": max(level for moment, level in concurrency_steps(records) if moment <= window.end),
        "Max Concurrency": timeline.max_concurrency,
        "Request Throughput": _rate(_shared(shares, good, [1] * len(records)), window),
        "Total Input Tokens": tokens_in,
        "Total Generated Tokens": tokens_out,
        "Input Token Throughput": _rate(tokens_in, window),
        "Output Token Throughput": _rate(tokens_out, window),
        "Total Token Throughput": _rate(tokens_in + tokens_out, window),
    }
    table.update(_image_rates(records, shares, good, window))
    if objectives:
        met = [is_good(record, objectives) for record in records]
        table["Goodput"] = _rate(_shared(shares, met, [1] * len(records)), window)
        table["Goodput Share"] = sum(is_good(record, objectives) for record in members) / len(members)
    return table


def _image_rates(records: Sequence[RequestRecord], shares: np.ndarray[Any, Any], good: Sequence[bool], window: Window) -> dict[str, Any]:
    if not any(record.images for record in records):
        return {}
    return {
        "Image Throughput": _rate(_shared(shares, good, [record.images for record in records]), window),
        "Pixel Throughput": _rate(_shared(shares, good, [record.pixels for record in records]), window),
    }


def _shared(shares: np.ndarray[Any, Any], counts: Sequence[bool], amounts: Sequence[float]) -> float:
    return float(np.sum(shares * np.asarray(counts) * np.asarray(amounts, dtype=np.float64)))


def _rate(amount: float, window: Window) -> float | None:
    return amount / window.length if window.length > 0 else None


def notes(timeline: Timeline) -> list[str]:
    """Say what a reader must know before trusting the figures."""
    records = timeline.requests
    found = []
    if timeline.interrupted:
        found.append("stopped by hand: a partial run")
    guessed = sum(record.ok and (record.output_tokens is None or record.counted_by != "server") for record in records)
    if guessed:
        found.append(f"{guessed} replies came without usage: their output tokens are counted by event or by word, not by the server")
    whole = sum(record.ok and not record.streamed for record in records)
    if whole and timeline.stream:
        found.append(f"{whole} replies came whole though a stream was asked for: they have no TTFT, TPOT or ITL")
    if not timeline.every_event:
        found.append("only first and last event are known: no ITL")
    if timeline.watch.get("limited"):
        found.append(f"the load generator was the bottleneck: {timeline.watch['limited']}")
    return found
