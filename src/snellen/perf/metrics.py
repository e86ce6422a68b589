"""A timeline in, every metric by our own definitions out: whole run or steady state, full precision, seconds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError, UsageError
from ..core.text import plural
from .definitions import COMMON, DEFINITIONS, output_tokens
from .slo import Objectives, is_good
from .steady import Window, concurrency_steps, steady_window, whole_run
from .timeline import CANCELLED, RequestRecord, Timeline

STATS = ("Average", "Min", "Max", "Median", "P75", "P90", "P95", "P99", "P99.9")
STAGES = ("total", "stable")
_PERCENTILE = re.compile(r"P(\d{1,2}(?:\.\d+)?)\Z")

_Statistic = Callable[[np.ndarray[Any, Any]], Any]
_NAMED: dict[str, _Statistic] = {"Average": np.mean, "Min": np.min, "Max": np.max, "Median": np.median, "Std": np.std}
Table = dict[str, dict[str, float]]


def describe(values: Sequence[float] | np.ndarray[Any, Any], stats: Sequence[str] = STATS) -> dict[str, float]:
    """Return the statistics of `values` (linear interpolation between order statistics) and `N`."""
    array = np.asarray(values, dtype=np.float64)
    result: dict[str, float] = {stat: statistic(array, stat) for stat in stats}
    result["N"] = int(array.size)
    return result


def statistic(array: np.ndarray[Any, Any], stat: str) -> float:
    """Return one statistic by name: Average, Min, Max, Median, Std or P1 … P99.99."""
    if stat in _NAMED:
        return float(_NAMED[stat](array))
    match = _PERCENTILE.match(stat)
    if not match:
        raise UsageError(f"no statistic {stat!r}; known: {', '.join(_NAMED)}, P1 to P99.99")
    return float(np.percentile(array, float(match.group(1))))


def summarize(
    timeline: Timeline, stage: str = "total", stats: Sequence[str] = STATS, objectives: Objectives | None = None
) -> dict[str, Any]:
    """Return `{profile, stage, metrics, common, errors, units, notes}` of the whole run or of the steady state."""
    records = timeline.requests
    if not records:
        raise DataError("the timeline holds no request: there is nothing to summarize")
    window = choose_window(timeline, stage)
    members = [record for record in records if stage == "total" or window.holds(record)]
    return {
        "profile": "snellen",
        "stage": stage,
        "window": [window.start, window.end],
        "metrics": metric_table(members, stats, timeline.every_event),
        "common": common_table(timeline, window, members, objectives),
        "errors": dict(Counter(record.failure for record in members if record.failure)),
        "units": {definition.name: definition.unit for definition in DEFINITIONS}
        | {name: unit for name, unit, _ in COMMON if unit},
        "notes": notes(timeline),
    }


def choose_window(timeline: Timeline, stage: str) -> Window:
    """Return the window of a stage; an absent steady state is an error that says what to do."""
    records = timeline.requests
    if stage == "total" and timeline.load.get("duration_s"):
        return Window(0.0, float(timeline.load["duration_s"]), whole=True)
    if stage == "total":
        return whole_run(records)
    if stage != "stable":
        raise UsageError(f"no stage {stage!r}; known: {', '.join(STAGES)}")
    window = steady_window(records)
    if window is None:
        reason = "fewer than three requests were sent after the ramp"
        raise DataError(f"no steady state in this timeline: {reason}; run it longer")
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


def common_table(
    timeline: Timeline, window: Window, members: Sequence[RequestRecord], objectives: Objectives | None
) -> dict[str, Any]:
    """Return the figures of the load as a whole, by the words of `definitions.COMMON`."""
    records = timeline.requests
    failures = Counter(record.failure for record in members)
    lives = sum(window.overlap(record) for record in records)
    levels = (level for moment, level in concurrency_steps(records) if moment <= window.end)
    table: dict[str, Any] = {
        "Benchmark Duration": window.length,
        "Total Requests": len(members),
        "Success Requests": failures[None],
        "Failed Requests": len(members) - failures[None] - failures[CANCELLED],
        "Cancelled Requests": failures[CANCELLED],
        "Concurrency": _rate(lives, window),
        "Peak Concurrency": max(levels, default=0),
        "Max Concurrency": timeline.max_concurrency,
    }
    table |= _throughput(records, window)
    if objectives:
        met = [record for record in records if is_good(record, objectives)]
        table["Goodput"] = _rate(sum(window.delivered(record) for record in met), window)
        table["Goodput Share"] = sum(is_good(record, objectives) for record in members) / len(members)
    return table


def _throughput(records: Sequence[RequestRecord], window: Window) -> dict[str, Any]:
    done = [(window.delivered(record), record) for record in records if record.ok]
    tokens_in = _known_sum([(share, record.input_tokens) for share, record in done])
    tokens_out = _known_sum([(share, output_tokens(record)) for share, record in done])
    both = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    table: dict[str, Any] = {
        "Request Throughput": _rate(sum(share for share, _ in done), window),
        "Total Input Tokens": tokens_in,
        "Total Generated Tokens": tokens_out,
        "Input Token Throughput": _rate(tokens_in, window),
        "Output Token Throughput": _rate(tokens_out, window),
        "Total Token Throughput": _rate(both, window),
    }
    return table | (_image_throughput(done, window) if any(record.images for record in records) else {})


def _known_sum(counts: Sequence[tuple[float, int | None]]) -> float | None:
    """Return the tokens of all replies by share; None where no reply says: unknown is not 0."""
    known = [share * count for share, count in counts if count is not None]
    return sum(known) if known or not counts else None


def _image_throughput(done: Sequence[tuple[float, RequestRecord]], window: Window) -> dict[str, float | None]:
    return {
        "Image Throughput": _rate(sum(share * record.images for share, record in done), window),
        "Pixel Throughput": _rate(sum(share * record.pixels for share, record in done), window),
    }


def _rate(amount: float | None, window: Window) -> float | None:
    return amount / window.length if amount is not None and window.length > 0 else None


def notes(timeline: Timeline) -> list[str]:
    """Say what a reader must know before trusting the figures."""
    done = [record for record in timeline.requests if record.ok]
    guessed = sum(record.counted_by != "server" or record.output_tokens is None for record in done)
    whole = sum(not record.streamed for record in done) if timeline.stream else 0
    unknown = sum(record.input_tokens is None for record in done)
    thin = [name for name in STATS if (tail := _PERCENTILE.match(name)) and len(done) * (100 - float(tail[1])) < 99.9]
    limited, killed = timeline.watch.get("limited"), timeline.load.get("killed")
    counted = "their output tokens are counted by event or by word, not by the server"
    remarks = (
        (timeline.interrupted and not killed, "stopped by hand: a partial run"),
        (killed, "killed while it ran: a partial run; what was in flight is missing"),
        (guessed, f"{guessed} replies came without usage: {counted}"),
        (unknown, f"{unknown} of {len(done)} replies came without a count of input tokens: sums leave them out"),
        (whole, f"{whole} replies came whole though a stream was asked for: they have no TTFT, TPOT or ITL"),
        (not timeline.every_event, "only first and last event are known: no ITL"),
        (timeline.load.get("duration_s"), "send moments are unknown: concurrency and steady state mean nothing here"),
        (done and thin, f"{' and '.join(thin)} of {plural(len(done), 'reply')} say hardly more than the slowest one"),
        (limited, f"the load generator was the bottleneck: {limited}"),
    )
    return [text for applies, text in remarks if applies]
