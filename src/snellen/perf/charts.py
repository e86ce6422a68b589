"""Timelines and sweeps in, Vega-Lite specifications out: plain data, rendered to SVG without any network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import MissingExtra
from .definitions import DEFINITIONS
from .load.arrivals import planned_rate
from .steady import concurrency_steps
from .sweep import Sweep
from .timeline import RequestRecord, Timeline

Spec = dict[str, Any]
BINS = 60
GANTT_ROWS = 400
INK, ACCENT, PALE, WARN = "#1b3a4b", "#2a7f9e", "#9ec9d9", "#c8553d"
_CONFIG: Spec = {
    "font": "sans-serif",
    "background": "white",
    "view": {"stroke": None},
    "axis": {"grid": True, "gridColor": "#e8edf0", "labelColor": INK, "titleColor": INK, "domainColor": "#9aa7ad"},
    "title": {"color": INK, "anchor": "start", "fontSize": 13},
}


def _chart(title: str, layers: list[Spec], width: int = 640, height: int = 220) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "width": width,
        "height": height,
        "config": _CONFIG,
        "layer": layers,
    }


def _axis(name: str, title: str, **more: Any) -> Spec:
    return {"field": name, "type": "quantitative", "title": title, **more}


def _values(rows: Sequence[Mapping[str, Any]]) -> Spec:
    return {"values": [dict(row) for row in rows]}


def concurrency_over_time(timeline: Timeline) -> Spec:
    """Requests in flight, as a step line."""
    start = min(record.sent for record in timeline.requests)
    rows = [
        {"t": moment - start, "in flight": level} for moment, level in _thin(concurrency_steps(timeline.requests), 2000)
    ]
    mark = {"type": "line", "interpolate": "step-after", "color": ACCENT}
    encoding = {"x": _axis("t", "seconds"), "y": _axis("in flight", "requests in flight")}
    return _chart("Concurrency over time", [{"data": _values(rows), "mark": mark, "encoding": encoding}])


def throughput_over_time(timeline: Timeline) -> Spec:
    """Requests finished per second and events with text per second, in bins."""
    records = timeline.requests
    start, end = min(record.sent for record in records), max(record.done for record in records)
    bin_s = max((end - start) / BINS, 1e-3)
    ends = _histogram([record.done - start for record in records if record.ok], bin_s)
    events = _histogram([moment - start for record in records for moment in record.chunks], bin_s)
    top = {
        "data": _values([{"t": t, "v": v} for t, v in ends]),
        "mark": {"type": "line", "interpolate": "step-after", "color": ACCENT},
    }
    top["encoding"] = {"x": _axis("t", "seconds"), "y": _axis("v", "requests/s", axis={"titleColor": ACCENT})}
    if not events:
        return _chart("Throughput over time", [top])
    low = {
        "data": _values([{"t": t, "v": v} for t, v in events]),
        "mark": {"type": "line", "interpolate": "step-after", "color": WARN},
    }
    low["encoding"] = {"x": _axis("t", "seconds"), "y": _axis("v", "events with text/s", axis={"titleColor": WARN})}
    return {**_chart("Throughput over time", [top, low]), "resolve": {"scale": {"y": "independent"}}}


def _histogram(moments: Sequence[float], bin_s: float) -> list[tuple[float, float]]:
    return planned_rate([moment for moment in moments if moment >= 0], bin_s)


def distribution(timeline: Timeline, metric: str) -> Spec:
    """Histogram of one metric in milliseconds, median and P99 marked."""
    values_of = next(definition.values for definition in DEFINITIONS if definition.name == metric)
    values = [value * 1000 for record in timeline.requests for value in values_of(record)]
    if not values:
        return _chart(f"{metric}: no request has it", [])
    low, high = min(values), max(values)
    width = (high - low) / 40 or 1e-3
    counts = [0] * 41
    for value in values:
        counts[min(int((value - low) / width), 40)] += 1
    bars = [
        {"from": low + index * width, "to": low + (index + 1) * width, "n": count} for index, count in enumerate(counts)
    ]
    ordered = sorted(values)
    marks = [{"at": _quantile(ordered, share), "name": name} for share, name in ((0.5, "median"), (0.99, "P99"))]
    return _chart(
        f"{metric} (ms), {len(values)} values",
        [
            {
                "data": _values(bars),
                "mark": {"type": "bar", "color": PALE},
                "encoding": {
                    "x": {**_axis("from", f"{metric} in ms"), "bin": {"binned": True}},
                    "x2": {"field": "to"},
                    "y": _axis("n", "count"),
                },
            },
            {
                "data": _values(marks),
                "mark": {"type": "rule", "color": WARN, "size": 2},
                "encoding": {"x": {"field": "at", "type": "quantitative"}},
            },
            {
                "data": _values(marks),
                "mark": {"type": "text", "align": "left", "dx": 4, "y": 8, "color": WARN},
                "encoding": {"x": {"field": "at", "type": "quantitative"}, "text": {"field": "name"}},
            },
        ],
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def gantt(timeline: Timeline) -> Spec:
    """One bar a request: waiting to be sent, until the first text, then decoding; failures stand out."""
    records = timeline.requests[:GANTT_ROWS]
    start = min(record.due for record in timeline.requests)
    rows = [part for row, record in enumerate(records) for part in _phases(record, row, start)]
    more = f" (first {GANTT_ROWS})" if len(timeline.requests) > GANTT_ROWS else ""
    colour = {
        "field": "phase",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": ["queued", "to first text", "decoding", "failed"],
            "range": ["#cfd8dc", PALE, ACCENT, WARN],
        },
        "legend": {"orient": "top"},
    }
    encoding = {
        "x": _axis("from", "seconds"),
        "x2": {"field": "to"},
        "y": {**_axis("row", "request"), "scale": {"reverse": True, "nice": False}},
        "y2": {"field": "below"},
        "color": colour,
    }
    height = min(max(len(records) * 4, 120), 600)
    return _chart(
        f"Requests{more}", [{"data": _values(rows), "mark": {"type": "rect"}, "encoding": encoding}], height=height
    )


def _phases(record: RequestRecord, row: int, start: float) -> list[Spec]:
    first = record.chunks[0] if record.chunks else record.done
    parts = [("queued", record.due, record.sent)]
    parts += (
        [("to first text", record.sent, first), ("decoding", first, record.end)]
        if record.ok
        else [("failed", record.sent, record.done)]
    )
    return [
        {"row": row, "below": row + 0.9, "phase": name, "from": a - start, "to": b - start}
        for name, a, b in parts
        if b > a
    ]


def planned_against_actual(timeline: Timeline) -> Spec:
    """The rate at which requests were due, and at which they were sent."""
    started = float(timeline.load.get("started", min(record.due for record in timeline.requests)))
    due = [record.due - started for record in timeline.requests]
    sent = [record.sent - started for record in timeline.requests]
    bin_s = max(max(sent) / BINS, 0.05)
    rows = [
        {"t": t, "rate": rate, "which": "planned"} for t, rate in _histogram(timeline.load.get("due") or due, bin_s)
    ]
    rows += [{"t": t, "rate": rate, "which": "sent"} for t, rate in _histogram(sent, bin_s)]
    colour = {
        "field": "which",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["planned", "sent"], "range": [PALE, INK]},
        "legend": {"orient": "top"},
    }
    dash = {
        "field": "which",
        "type": "nominal",
        "scale": {"domain": ["planned", "sent"], "range": [[1, 0], [4, 2]]},
        "legend": None,
    }
    encoding = {"x": _axis("t", "seconds"), "y": _axis("rate", "requests/s"), "color": colour, "strokeDash": dash}
    return _chart(
        "Planned against actual rate",
        [{"data": _values(rows), "mark": {"type": "line", "interpolate": "step-after"}, "encoding": encoding}],
    )


def latency_throughput(sweep: Sweep) -> Spec:
    """Latency against throughput, a point a load; loads that missed the objectives are red."""
    rows = [
        {
            "throughput": point.throughput,
            "ms": row[stat] * 1000,
            "stat": f"{name} {stat}",
            "meets": "met" if point.meets else "missed",
            "load": point.load,
        }
        for point in sweep.points
        for name, row in point.latencies.items()
        if name in ("TTFTScheduled", "E2ELScheduled")
        for stat in ("Median", "P99")
    ]
    x, y = _axis("throughput", "requests/s"), _axis("ms", "latency in ms (log)", scale={"type": "log"})
    line = {
        "mark": {"type": "line", "color": PALE},
        "encoding": {"x": x, "y": y, "detail": {"field": "stat"}, "order": {"field": "load"}},
    }
    met = {
        "field": "meets",
        "type": "nominal",
        "title": "objectives",
        "scale": {"domain": ["met", "missed"], "range": [ACCENT, WARN]},
    }
    dots = {
        "mark": {"type": "point", "filled": True, "size": 55},
        "encoding": {"x": x, "y": y, "color": met, "shape": {"field": "stat", "type": "nominal", "title": None}},
    }
    data = _values(rows)
    return _chart("Latency against throughput", [{"data": data, **line}, {"data": data, **dots}], height=300)


def pictures(timeline: Timeline) -> dict[str, Spec]:
    """Return all pictures of one load by file name."""
    found = {
        "concurrency": concurrency_over_time(timeline),
        "throughput": throughput_over_time(timeline),
        "gantt": gantt(timeline),
        "rate": planned_against_actual(timeline),
    }
    streamed = any(record.ok and record.streamed and record.chunks for record in timeline.requests)
    if streamed:
        found["ttft"] = distribution(timeline, "TTFT")
    if streamed and timeline.every_event:
        found["itl"] = distribution(timeline, "ITL")
    return found


def _thin(steps: Sequence[tuple[float, int]], limit: int) -> Sequence[tuple[float, int]]:
    stride = max(1, -(-len(steps) // limit))
    return [*steps[::stride], steps[-1]]


def to_svg(spec: Spec) -> str:
    """Render one picture; nothing is fetched."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("plots", "drawing pictures") from None
    return str(vl_convert.vegalite_to_svg(spec, vl_version="5.20"))
