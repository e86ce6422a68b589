"""A file in, a timeline out: our own form, or the result of another load generator (guidellm, vLLM)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import ConfigError, DataError, UsageError
from ..core.text import safe_cell
from .metrics import COMMON, DEFINITIONS
from .timeline import CANCELLED, RequestRecord, Timeline, timeline_from_dict

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


NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_OUTCOMES = {"successful": None, "incomplete": CANCELLED, "errored": "server"}
"""guidellm's lists of requests -> our outcome."""


def read_timeline(path: Path) -> Timeline:
    """Read a timeline: our own form (one object, or one request a line), guidellm or vLLM `bench serve` JSON."""
    data, where = read_json(path), str(path)
    if isinstance(data, list):
        data = {"requests": data}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a timeline is an object with `requests`, not a {type(data).__name__}")
    if isinstance(data.get("benchmarks"), list):
        return from_guidellm(data, where)
    if "ttfts" in data or ("request_throughput" in data and "completed" in data):
        return from_vllm(data, where)
    return timeline_from_dict(data, where)


def read_json(path: Path) -> Any:
    """Read JSON or JSON lines."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    try:
        return msgspec.json.decode(raw)
    except NOT_JSON as error:
        first_error: Exception = error
    try:
        return msgspec.json.Decoder().decode_lines(raw)
    except NOT_JSON:
        raise ConfigError(f"{path} is neither JSON nor JSON lines: {first_error}") from None


def from_vllm(data: dict[str, Any], where: str) -> Timeline:
    """Read vLLM `bench serve --save-result --save-detailed`. Requests that failed carry their error text."""
    if "ttfts" not in data or "itls" not in data:
        fix = "run `vllm bench serve --save-result --save-detailed`"
        raise DataError(f"{where}: a vLLM result without per-request detail: {fix}")
    count = len(data["ttfts"])
    starts = data.get("start_times") or [0.0] * count
    lists = [data.get(name) or [None] * count for name in ("input_lens", "output_lens", "errors")]
    columns = (starts, data["ttfts"], data["itls"], *lists)
    try:
        requests = tuple(_vllm_record(index, row) for index, row in enumerate(zip(*columns, strict=True)))
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: the per-request lists of the vLLM result do not fit together ({error})") from None
    load = {"imported": "vllm", "request_rate": data.get("request_rate")}
    if "start_times" not in data:
        load["duration_s"] = data.get("duration")
    limit, planned = data.get("max_concurrency"), data.get("num_prompts", count)
    return Timeline(requests=requests, max_concurrency=limit, planned=planned, load=load)


def _vllm_record(index: int, row: tuple[Any, ...]) -> RequestRecord:
    start, ttft, gaps, in_tokens, out_tokens, error = row
    chunks = tuple(accumulate(gaps, initial=start + ttft))
    return RequestRecord(
        id=str(index),
        sent=start,
        done=chunks[-1],
        first_content=None if error else chunks[0],
        chunks=() if error else chunks,
        input_tokens=in_tokens,
        output_tokens=out_tokens,
        failure="server" if error else None,
        message=error or None,
    )


def from_guidellm(data: dict[str, Any], where: str) -> Timeline:
    """Read a guidellm report with exactly one benchmark; a sweep holds several loads and is refused by name."""
    benchmarks = data["benchmarks"]
    if len(benchmarks) != 1:
        fix = "keep one in `benchmarks` and summarize it"
        raise DataError(f"{where}: {len(benchmarks)} benchmarks in one guidellm report; {fix}")
    requests = benchmarks[0].get("requests")
    if not isinstance(requests, dict):
        raise DataError(f"{where}: the guidellm benchmark holds no `requests`; write it as JSON with its requests")
    records = [
        _guidellm_record(item, f"{status} {index}", status, where)
        for status in _OUTCOMES
        for index, item in enumerate(requests.get(status) or ())
    ]
    strategy = (benchmarks[0].get("config") or {}).get("strategy") or {}
    return Timeline(
        requests=tuple(sorted(records, key=lambda record: record.sent)),
        max_concurrency=strategy.get("max_concurrency") or strategy.get("streams"),
        every_event=False,
        load={"imported": "guidellm", "clock": "wall", "strategy": strategy.get("type_") or strategy.get("kind")},
    )


def _guidellm_record(item: dict[str, Any], name: str, status: str, where: str) -> RequestRecord:
    info = item.get("info") or item.get("scheduler_info") or {}
    times = info.get("timings") or info.get("request_timings") or {}
    tokens_in, tokens_out = item.get("input_metrics") or {}, item.get("output_metrics") or {}
    start = _first(times.get("request_start"), item.get("request_start_time"), item.get("start_time"))
    end = _first(times.get("request_end"), item.get("request_end_time"), item.get("end_time"))
    if start is None or end is None:
        raise DataError(f"{where}: a guidellm request ({name}) has no start or end time")
    first = _first(times.get("first_token_iteration"), times.get("first_iteration"), _ttft(item, start))
    last = _first(times.get("last_token_iteration"), times.get("last_iteration"), end)
    return RequestRecord(
        id=str(item.get("request_id", name)),
        sent=start,
        done=end,
        scheduled=times.get("targeted_start"),
        first_content=first,
        chunks=_ends(first, last),
        input_tokens=_first(item.get("prompt_tokens"), tokens_in.get("total_tokens")),
        output_tokens=_first(item.get("output_tokens"), tokens_out.get("total_tokens")),
        failure=_OUTCOMES[status],
        message=info.get("error"),
        streamed=first is not None,
    )


def _ends(first: float | None, last: float) -> tuple[float, ...]:
    if first is None:
        return ()
    return (first, last) if last > first else (first,)


def _ttft(item: dict[str, Any], start: float) -> float | None:
    ttft_ms = item.get("time_to_first_token_ms")
    return None if ttft_ms is None else start + ttft_ms / 1000


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
