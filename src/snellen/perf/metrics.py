"""A timeline in, every metric by our own definitions out: whole run or steady state, full precision, seconds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from ..core.config import convert, read_config_file
from ..core.errors import DataError, UsageError, did_you_mean
from ..core.text import plural
from .timeline import CANCELLED, RequestRecord, Timeline, Window, concurrency_steps, steady_window, whole_run

Value = float | None


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric of one request. None means it does not apply to that request; it is left out, never 0."""

    name: str
    unit: str
    values: Callable[[RequestRecord], Sequence[float]]
    meaning: str


def _latency(record: RequestRecord) -> Value:
    return record.end - record.sent if record.ok else None


def first_content(record: RequestRecord) -> float | None:
    """Return when the first answer text came, or None for a reply that was not streamed or has no text."""
    if not (record.ok and record.streamed):
        return None
    if record.first_content is None and record.first_reasoning is None and record.chunks:
        return record.chunks[0]
    return record.first_content


def first_token(record: RequestRecord) -> float | None:
    """Return when the first text of any kind (reasoning or answer) came: where decoding starts."""
    return record.chunks[0] if record.ok and record.streamed and record.chunks else None


def output_tokens(record: RequestRecord) -> int | None:
    """Return the output tokens: the server's count, else one per event with text."""
    if record.output_tokens is not None:
        return record.output_tokens
    return len(record.chunks) if record.ok and record.streamed and record.chunks else None


def hidden_tokens(record: RequestRecord) -> int:
    """Return the tokens of reasoning that a server counts and does not show: they came before the first event.

    Where there are more events than other tokens, the reasoning was among them.
    """
    reasoning = record.reasoning_tokens or 0
    if not reasoning or record.first_reasoning is not None:
        return 0
    return reasoning if len(record.chunks) <= (output_tokens(record) or 0) - reasoning else 0


def _prefill(record: RequestRecord) -> Value:
    if hidden_tokens(record):  # the time to the first text is mostly reasoning
        return None
    return _ratio(record.input_tokens, _elapsed(record.sent, first_token(record)))


def time_per_token(record: RequestRecord) -> Value:
    """Return (last text - first text) / (tokens that came as events - 1), or None with fewer than two of them."""
    start, tokens = first_token(record), output_tokens(record)
    shown = 0 if tokens is None else tokens - hidden_tokens(record)
    if start is None or shown < 2 or len(record.chunks) < 2:
        return None
    return (record.end - start) / (shown - 1)


def _gaps(record: RequestRecord) -> Sequence[float]:
    if not (record.ok and record.streamed):
        return ()
    return [later - earlier for earlier, later in pairwise(record.chunks)]


def _elapsed(start: float, moment: float | None, applies: bool = True) -> Value:
    return moment - start if applies and moment is not None else None


def _ratio(numerator: float | None, denominator: float | None) -> Value:
    return numerator / denominator if numerator is not None and denominator else None


def _one(function: Callable[[RequestRecord], Value]) -> Callable[[RequestRecord], Sequence[float]]:
    def values(record: RequestRecord) -> Sequence[float]:
        value = function(record)
        return () if value is None else (value,)

    return values


def _tokens(name: str) -> Callable[[RequestRecord], Value]:
    return lambda record: getattr(record, name) if record.ok else None


_VALUE: dict[str, Callable[[RequestRecord], Value]] = {
    "E2EL": _latency,
    "E2ELScheduled": lambda record: _elapsed(record.due, record.end, record.ok),
    "TTFT": lambda record: _elapsed(record.sent, first_content(record)),
    "TTFTScheduled": lambda record: _elapsed(record.due, first_content(record)),
    "TTFR": lambda record: _elapsed(record.sent, record.first_reasoning, record.ok),
    "TTFE": lambda record: _elapsed(record.sent, record.first_event, record.ok),
    "TPOT": time_per_token,
    "QueueTime": lambda record: record.sent - record.due,
    "FailedTime": lambda record: _elapsed(record.sent, record.done, not record.ok),
    "InputTokens": _tokens("input_tokens"),
    "OutputTokens": lambda record: output_tokens(record) if record.ok else None,
    "ReasoningTokens": _tokens("reasoning_tokens"),
    "VisualTokens": _tokens("visual_tokens"),
    "CachedTokens": _tokens("cached_tokens"),
    "OutputTokenThroughput": lambda record: _ratio(output_tokens(record), _latency(record)),
    "PrefillTokenThroughput": _prefill,
    "DecodeTokenThroughput": lambda record: _ratio(1, time_per_token(record)),
}


class _Words(Struct, forbid_unknown_fields=True):
    """What `catalog/perf/figures.toml` holds: rows of name, unit and meaning."""

    metrics: tuple[tuple[str, str, str], ...]
    common: tuple[tuple[str, str, str], ...]
    differences: tuple[tuple[str, str], ...]
    steady: str
    file: str


_WORDS = convert(read_config_file(str(files("snellen") / "catalog/perf/figures.toml")), _Words, "catalog/perf/figures")
DEFINITIONS = tuple(
    Definition(name, unit, _gaps if name == "ITL" else _one(_VALUE[name]), meaning)
    for name, unit, meaning in _WORDS.metrics
)
COMMON = _WORDS.common
"""(name, unit, meaning) of the figures of the load as a whole."""
DIFFERENCES = _WORDS.differences
"""(name, how the figure of AISBench differs from ours)."""
STEADY_RULE, FILE_FORM = _WORDS.steady, _WORDS.file


WHEN_WHOLE = {"ttft": "e2el", "ttftscheduled": "e2elscheduled", "ttfr": "e2el", "ttfe": "e2el"}
"""What stands for the time of a first event where a reply came in one piece."""
BETWEEN_TOKENS = ("tpot", "itl")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0}
_LATENCIES = [definition for definition in DEFINITIONS if definition.unit == "s" and definition.name != "FailedTime"]
_BY_NAME = {definition.name.lower(): definition for definition in _LATENCIES}
_BOUND = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|)\Z")

Objectives = Mapping[str, float]
"""Metric name in lower case -> upper bound in seconds."""


def parse_objectives(text: str) -> dict[str, float]:
    """Parse `ttft=500ms,tpot=40ms,e2el=2s`; a bound without a unit is in seconds."""
    objectives: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, bound = part.partition("=")
        key = name.strip().lower()
        if key not in _BY_NAME:
            hint = f"{did_you_mean(key, _BY_NAME)}; known: {', '.join(_BY_NAME)}"
            raise UsageError(f"--slo: no objective {name.strip()!r}{hint}")
        match = _BOUND.match(bound.strip()) if equals else None
        if not match or float(match.group(1)) <= 0:
            raise UsageError(f"--slo: {part!r} is not NAME=TIME above zero, as in ttft=500ms")
        objectives[key] = float(match.group(1)) * _UNITS[match.group(2)]
    if not objectives:
        raise UsageError("--slo names no objective; write for example --slo ttft=500ms,tpot=40ms")
    return objectives


def is_good(record: RequestRecord, objectives: Objectives) -> bool:
    """Tell whether a request met every objective; a failed one never does.

    Of a reply that came whole nothing was seen before its end, and nobody knows the time between its tokens.
    """
    if not record.ok:
        return False
    return all(_meets(record, name, bound) for name, bound in objectives.items())


def _meets(record: RequestRecord, name: str, bound: float) -> bool:
    if name in BETWEEN_TOKENS and not record.streamed:
        return record.output_tokens == 1
    instead = WHEN_WHOLE.get(name) if not record.streamed else None
    return all(value <= bound for value in _BY_NAME[instead or name].values(record))


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
