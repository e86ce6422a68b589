"""Timelines and sweeps in, Vega-Lite specifications out: plain data, rendered to SVG without any network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..core.vega import Spec, category, chart, layer, quantity, render_svg
from .arrivals import planned_rate
from .metrics import DEFINITIONS
from .sweep import Sweep
from .timeline import RequestRecord, Timeline, concurrency_steps

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


_STEPS: Spec = {"type": "line", "interpolate": "step-after"}
_SECONDS = quantity("t", title="seconds")


def _chart(title: str, layers: list[Spec], height: int = 220) -> Spec:
    return chart(title, _CONFIG, width=640, height=height, layer=layers)


def concurrency_over_time(timeline: Timeline) -> Spec:
    """Requests in flight, as a step line."""
    start = min(record.sent for record in timeline.requests)
    steps = _thin(concurrency_steps(timeline.requests), 2000)
    rows = [{"t": moment - start, "in flight": level} for moment, level in steps]
    y = quantity("in flight", title="requests in flight")
    return _chart("Concurrency over time", [layer(rows, _STEPS | {"color": ACCENT}, x=_SECONDS, y=y)])


def throughput_over_time(timeline: Timeline) -> Spec:
    """Requests finished per second and events with text per second, in bins."""
    records = timeline.requests
    start, end = min(record.sent for record in records), max(record.done for record in records)
    bin_s = max((end - start) / BINS, 1e-3)

    def line(moments: list[float], name: str, colour: str) -> Spec:
        rows = [{"t": t, "v": v} for t, v in _histogram(moments, bin_s)]
        y = quantity("v", title=name, axis={"titleColor": colour})
        return layer(rows, _STEPS | {"color": colour}, x=_SECONDS, y=y)

    ends = [record.done - start for record in records if record.ok]
    events = [moment - start for record in records for moment in record.chunks]
    lines = [line(ends, "requests/s", ACCENT)]
    if not any(moment >= 0 for moment in events):
        return _chart("Throughput over time", lines)
    lines.append(line(events, "events with text/s", WARN))
    return {**_chart("Throughput over time", lines), "resolve": {"scale": {"y": "independent"}}}


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
    edges = [low + index * width for index in range(len(counts) + 1)]
    bars = [{"from": a, "to": b, "n": count} for (a, b), count in zip(pairwise(edges), counts, strict=True)]
    ordered = sorted(values)
    marks = [{"at": _quantile(ordered, share), "name": name} for share, name in ((0.5, "median"), (0.99, "P99"))]
    x, at = quantity("from", title=f"{metric} in ms", bin={"binned": True}), quantity("at")
    label = {"type": "text", "align": "left", "dx": 4, "y": 8, "color": WARN}
    layers = [
        layer(bars, {"type": "bar", "color": PALE}, x=x, x2={"field": "to"}, y=quantity("n", title="count")),
        layer(marks, {"type": "rule", "color": WARN, "size": 2}, x=at),
        layer(marks, label, x=at, text={"field": "name"}),
    ]
    return _chart(f"{metric} (ms), {len(values)} values", layers)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def gantt(timeline: Timeline) -> Spec:
    """One bar a request: waiting to be sent, until the first text, then decoding; failures stand out."""
    records = timeline.requests[:GANTT_ROWS]
    start = min(record.due for record in timeline.requests)
    rows = [part for row, record in enumerate(records) for part in _phases(record, row, start)]
    more = f" (first {GANTT_ROWS})" if len(timeline.requests) > GANTT_ROWS else ""
    phases = {"domain": ["queued", "to first text", "decoding", "failed"], "range": ["#cfd8dc", PALE, ACCENT, WARN]}
    encoding = {
        "x": quantity("from", title="seconds"),
        "x2": {"field": "to"},
        "y": quantity("row", title="request", scale={"reverse": True, "nice": False}),
        "y2": {"field": "below"},
        "color": category("phase", title=None, scale=phases, legend={"orient": "top"}),
    }
    height = min(max(len(records) * 4, 120), 600)
    return _chart(f"Requests{more}", [layer(rows, {"type": "rect"}, **encoding)], height=height)


def _phases(record: RequestRecord, row: int, start: float) -> list[Spec]:
    first = record.chunks[0] if record.chunks else record.done
    parts = [("queued", record.due, record.sent), ("failed", record.sent, record.done)]
    if record.ok:
        parts[1:] = [("to first text", record.sent, first), ("decoding", first, record.end)]
    bar = {"row": row, "below": row + 0.9}
    return [bar | {"phase": name, "from": a - start, "to": b - start} for name, a, b in parts if b > a]


def planned_against_actual(timeline: Timeline) -> Spec:
    """The rate at which requests were due, and at which they were sent."""
    started = float(timeline.load.get("started", min(record.due for record in timeline.requests)))
    due = [record.due - started for record in timeline.requests]
    sent = [record.sent - started for record in timeline.requests]
    bin_s = max(max(sent) / BINS, 0.05)
    lines = {"planned": timeline.load.get("due") or due, "sent": sent}
    rates = {name: _histogram(moments, bin_s) for name, moments in lines.items()}
    rows = [{"t": t, "rate": rate, "which": name} for name, line in rates.items() for t, rate in line]
    which = {"domain": ["planned", "sent"]}
    encoding = {
        "x": _SECONDS,
        "y": quantity("rate", title="requests/s"),
        "color": category("which", title=None, scale=which | {"range": [PALE, INK]}, legend={"orient": "top"}),
        "strokeDash": category("which", scale=which | {"range": [[1, 0], [4, 2]]}, legend=None),
    }
    return _chart("Planned against actual rate", [layer(rows, _STEPS, **encoding)])


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
    latency = quantity("ms", title="latency in ms (log)", scale={"type": "log"})
    axes = {"x": quantity("throughput", title="requests/s"), "y": latency}
    met = {"domain": ["met", "missed"], "range": [ACCENT, WARN]}
    marks = {"color": category("meets", title="objectives", scale=met), "shape": category("stat", title=None)}
    layers = [
        layer(rows, {"type": "line", "color": PALE}, **axes, detail={"field": "stat"}, order={"field": "load"}),
        layer(rows, {"type": "point", "filled": True, "size": 55}, **axes, **marks),
    ]
    return _chart("Latency against throughput", layers, height=300)


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
    return render_svg(spec, purpose="drawing pictures", version="5.20")
