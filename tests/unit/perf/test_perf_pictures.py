"""Pictures are data first, and render without any network."""

from __future__ import annotations

import itertools
import json

import pytest

from snellen.perf.charts import gantt, latency_throughput, pictures, planned_against_actual, to_svg
from snellen.perf.sweep import Point, conclude
from snellen.perf.timeline import RequestRecord, Timeline


def timeline(streamed: bool = True) -> Timeline:
    records = [
        RequestRecord(
            str(n),
            n * 0.1,
            n * 0.1 + 0.5,
            scheduled=n * 0.1 - 0.02,
            chunks=(n * 0.1 + 0.2, n * 0.1 + 0.5) if streamed else (),
            streamed=streamed,
        )
        for n in range(30)
    ]
    failed = RequestRecord("f", 1.0, 1.3, failure="server")
    return Timeline(requests=(*records, failed), load={"started": 0.0, "due": [n * 0.1 for n in range(30)]})


def test_every_picture_renders_offline() -> None:
    pytest.importorskip("vl_convert")
    drawn = {name: to_svg(spec) for name, spec in pictures(timeline()).items()}
    assert set(drawn) == {"concurrency", "throughput", "gantt", "rate", "ttft", "itl"}
    assert all(svg.startswith("<svg") and "<image" not in svg for svg in drawn.values())


def test_replies_that_came_whole_have_no_token_pictures() -> None:
    assert set(pictures(timeline(streamed=False))) == {"concurrency", "throughput", "gantt", "rate"}


def test_the_gantt_shows_waiting_text_and_failure() -> None:
    rows = gantt(timeline())["layer"][0]["data"]["values"]
    assert {row["phase"] for row in rows} == {"queued", "to first text", "decoding", "failed"}
    assert all(row["to"] > row["from"] >= 0 for row in rows)


def test_planned_and_sent_both_count_every_request() -> None:
    rows = planned_against_actual(timeline())["layer"][0]["data"]["values"]
    width = next(b["t"] - a["t"] for a, b in itertools.pairwise(rows))
    counts = {which: sum(row["rate"] * width for row in rows if row["which"] == which) for which in ("planned", "sent")}
    assert counts["planned"] == pytest.approx(30)
    assert counts["sent"] == pytest.approx(31)


def test_the_curve_marks_loads_that_missed() -> None:
    latencies = {"E2ELScheduled": {"Median": 0.1, "P99": 0.3}}
    sweep = conclude(
        [Point(1, 1, 1, 1, True, latencies), Point(2, 1.5, 0.1, 1, False, latencies)], "requests/s", {"ttft": 1.0}, 0.9
    )
    spec = latency_throughput(sweep)
    assert {row["meets"] for row in spec["layer"][1]["data"]["values"]} == {"met", "missed"}
    json.dumps(spec)
