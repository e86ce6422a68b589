"""A timeline in, AISBench's numbers out, its rounding and its errors included; each difference to ours is listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from typing import Any

import numpy as np

from ..core.errors import DataError
from .metrics import DIFFERENCES
from .timeline import RequestRecord, Timeline

DEFAULT_STATS = ("Average", "Min", "Max", "Median", "P75", "P90", "P99")
_PERCENTILE = re.compile(r"P(0*[1-9]\d?)\Z")
_PLAIN: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {"Average": np.mean, "Min": np.min, "Max": np.max}


@dataclass(frozen=True, slots=True)
class _Stage:
    rows: Sequence[RequestRecord]
    succeeded: int
    failed: int
    duration: float
    cap: int | None


def summarize_aisbench(timeline: Timeline, stage: str = "total", stats: Sequence[str] = ()) -> dict[str, Any]:
    """Return `{metrics, common}` as AISBench prints them: seconds to four decimals, duration in milliseconds."""
    rows = [record for record in timeline.requests if record.ok]
    if not rows:
        raise DataError("all requests failed: AISBench computes nothing then; leave out --profile to see the failures")
    found = _total(timeline, rows) if stage == "total" else _stable(timeline, rows)
    chosen = _accepted(stats or timeline.stats_list or DEFAULT_STATS)
    return {
        "profile": "aisbench",
        "stage": stage,
        "metrics": _metrics(found, timeline.stream, chosen),
        "common": _common(found, timeline.max_concurrency),
        "units": {"Benchmark Duration": "ms", "E2EL": "s", "TTFT": "s", "TPOT": "s", "ITL": "s"},
        "notes": [*_unstamped(rows), *(f"{name}: {text}" for name, text in DIFFERENCES)],
    }


def _accepted(stats: Sequence[str]) -> list[str]:
    first = [stat for stat in stats[:8] if stat in _PLAIN or stat == "Median" or _PERCENTILE.match(stat)]
    return first or ["Average"]


def _events(record: RequestRecord) -> list[float]:
    """Return the moments of all events, with or without text: it stamps a role-only and a usage event, too."""
    known = sorted((*record.chunks, *record.silent))
    early = record.first_event is not None and (not known or record.first_event < known[0])
    return [record.first_event or 0.0, *known] if early else known


def _unstamped(rows: Sequence[RequestRecord]) -> list[str]:
    """Return a line about timelines of before events without text were kept: of those only the first is known."""
    lacking = sum(not row.silent and row.first_event is not None and _events(row)[0] not in row.chunks for row in rows)
    return (
        [f"{lacking} requests keep only the first event without text: E2EL ends at their last text"] if lacking else []
    )


def _end(record: RequestRecord) -> float:
    return max(_events(record), default=record.done)


def _total(timeline: Timeline, rows: Sequence[RequestRecord]) -> _Stage:
    duration = max(_end(row) for row in rows) - min(row.sent for row in rows)
    return _Stage(rows, len(rows), len(timeline.requests) - len(rows), duration, None)


def _stable(timeline: Timeline, rows: Sequence[RequestRecord]) -> _Stage:
    start, end = _stable_section(rows, timeline.max_concurrency)
    members = [index for index, row in enumerate(rows) if start <= row.sent <= end]
    succeeded = sum(timeline.requests[index].ok for index in members)
    inside, failed = [rows[index] for index in members], len(members) - succeeded
    return _Stage(inside, succeeded, failed, end - start, timeline.max_concurrency)


def _stable_section(rows: Sequence[RequestRecord], cap: int | None) -> tuple[float, float]:
    events = [event for row in rows for event in ((row.sent, True), (_end(row), False))]
    events.sort(key=lambda event: event[0])
    level, hits, start, end = 0, 0, None, 0.0
    for moment, is_start in events:
        level += 1 if is_start else -1
        if level != cap:
            continue
        hits += is_start
        if is_start and hits == 2:
            start = moment
        end = moment
    if start is None:
        reason = "the set concurrency is not reached twice by a send (AISBench's rule)"
        raise DataError(f"no stable stage: {reason}; leave out --profile for ours")
    return start, end


def _metrics(stage: _Stage, stream: bool, stats: Sequence[str]) -> dict[str, dict[str, float]]:
    columns = {name: [function(row) for row in stage.rows] for name, function in COLUMNS.items()}
    gaps = [_gaps(row) for row in stage.rows]
    columns["ITL"] = [gap for row in gaps for gap in row]
    left_out = _left_out(columns, gaps) if stream else {"TTFT", "TPOT", "ITL", "PrefillTokenThroughput"}
    left_out |= _unknown(stage.rows)
    decoded = sum(any(row) for row in gaps)
    return {
        name: {**_describe(columns[name], stats), "N": decoded if name in ("TPOT", "ITL") else stage.succeeded}
        for name in ORDER
        if name not in left_out
    }


def _left_out(columns: Mapping[str, Sequence[float]], gaps: Sequence[Sequence[float]]) -> set[str]:
    found = {name for name in ("TTFT", "TPOT") if isclose(sum(columns[name]), 0)}
    if not any(next((row for row in gaps if row), ())):
        found.add("ITL")
    return found | ({"PrefillTokenThroughput"} if "TTFT" in found else set())


def _unknown(rows: Sequence[RequestRecord]) -> set[str]:
    """Return the figures of tokens that no reply counted: unknown is not 0, also where AISBench would print it."""
    found: set[str] = set()
    if all(row.input_tokens is None for row in rows):
        found |= {"InputTokens", "PrefillTokenThroughput"}
    if all(row.output_tokens is None for row in rows):
        found |= {"OutputTokens", "OutputTokenThroughput", "TPOT"}
    return found


def _latency(row: RequestRecord) -> float:
    return _end(row) - row.sent


def _first(row: RequestRecord) -> float:
    return min(_events(row), default=row.sent) - row.sent


def _gaps(row: RequestRecord) -> list[float]:
    return [later - earlier for earlier, later in pairwise(_events(row))]


def _per_token(row: RequestRecord) -> float:
    tokens = row.output_tokens or 0
    return (_latency(row) - _first(row)) / (tokens - 1) if tokens > 1 else 0.0


COLUMNS: dict[str, Callable[[RequestRecord], float]] = {
    "E2EL": _latency,
    "TTFT": _first,
    "TPOT": _per_token,
    "InputTokens": lambda row: row.input_tokens or 0,
    "OutputTokens": lambda row: row.output_tokens or 0,
    "OutputTokenThroughput": lambda row: (row.output_tokens or 0) / _latency(row) if _latency(row) else 0.0,
    "PrefillTokenThroughput": lambda row: (row.input_tokens or 0) / _first(row) if _first(row) > 0 else 0.0,
}
ORDER = (*list(COLUMNS)[:3], "ITL", *list(COLUMNS)[3:])


def _describe(values: Sequence[float], stats: Sequence[str]) -> dict[str, float]:
    if not values:
        return dict.fromkeys(stats, 0)
    array = np.array(values)
    return {stat: round(_statistic(array, stat), 4) for stat in stats}


def _statistic(array: np.ndarray[Any, Any], stat: str) -> float:
    if stat in _PLAIN:
        return float(_PLAIN[stat](array))
    return float(np.percentile(array, 50 if stat == "Median" else int(stat[1:])))


def _common(stage: _Stage, max_concurrency: int | None) -> dict[str, Any]:
    tokens_in = _known_total([row.input_tokens for row in stage.rows])
    tokens_out = _known_total([row.output_tokens for row in stage.rows])
    both = None if None in (tokens_in, tokens_out) else (tokens_in or 0) + (tokens_out or 0)
    totals = {"Input": tokens_in, "Output": tokens_out, "Total": both}
    busy = _divide(sum(_end(row) - row.sent for row in stage.rows), stage.duration)
    return {
        "Benchmark Duration": round(stage.duration * 1000, 4),
        "Total Requests": stage.succeeded + stage.failed,
        "Failed Requests": stage.failed,
        "Success Requests": stage.succeeded,
        "Concurrency": busy if stage.cap is None else _capped(busy, stage.cap),
        "Max Concurrency": max_concurrency,
        "Request Throughput": _divide(stage.succeeded, stage.duration),
        "Total Input Tokens": tokens_in,
        "Total Generated Tokens": tokens_out,
        **{f"{kind} Token Throughput": _divide(tokens, stage.duration, None) for kind, tokens in totals.items()},
    }


def _known_total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of what was counted; None where nothing was."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _divide(amount: float | None, duration: float, endless: str | None = "inf") -> float | str | None:
    if amount is None:
        return None
    return round(amount / duration, 4) if duration > 0 else endless


def _capped(busy: float | str | None, cap: int) -> float:
    return busy if isinstance(busy, float) and busy <= cap else cap
