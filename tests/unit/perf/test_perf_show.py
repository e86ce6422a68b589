"""What the terminal and the page say, and that foreign text in it is harmless."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from snellen.api.perf import PerfReport, describe_level, level_name
from snellen.api.timelines import read_any, read_trace
from snellen.cli.perf.command import parse_numbers, print_definitions, print_report, print_summary, print_sweep
from snellen.core.errors import DataError, UsageError
from snellen.perf.measure import LoadPlan
from snellen.perf.metrics import summarize
from snellen.perf.sweep import Point, conclude
from snellen.perf.timeline import RequestRecord, Timeline, write_timeline
from snellen.report.pages.perf_page import render_page

RECORDS = tuple(
    RequestRecord(
        str(n), n * 0.1, n * 0.1 + 0.3, scheduled=n * 0.1 - 0.01, chunks=(n * 0.1 + 0.2, n * 0.1 + 0.3), output_tokens=2
    )
    for n in range(20)
)
FAILED = RequestRecord("x", 0.0, 0.5, failure="server", message="<script>alert(1)</script>")
TIMELINE = Timeline(requests=(*RECORDS, FAILED), planned=21)


def level(**more: Any) -> dict[str, Any]:
    return {"level": "rate-10", **describe_level(TIMELINE, {"ttft": 0.25}), **more}


def test_a_report_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    report = PerfReport(
        Path("out"), "openai/m", "task", [level(value={"accuracy": 0.5, "cost": None})], interrupted=True
    )
    print_report(report, as_json=False)
    text = capsys.readouterr().out
    for part in (
        "rate-10",
        "TTFT p99, ms",
        "E2ELScheduled p50, ms",
        "goodput",
        "1 × server",
        "accuracy 50.0 %",
        "stopped by hand",
        "perf.json",
    ):
        assert part in text


def test_a_level_that_never_began(capsys: pytest.CaptureFixture[str]) -> None:
    empty = {"level": "rate-1", **describe_level(Timeline(requests=(), interrupted=True), None)}
    print_report(PerfReport(Path("out"), "m", "t", [empty], interrupted=True), as_json=False)
    assert "stopped before the first reply" in capsys.readouterr().out


def test_a_summary_and_the_definitions_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(summarize(TIMELINE), as_json=False)
    print_definitions(as_json=False)
    text = capsys.readouterr().out
    for part in ("E2ELScheduled", "Request Throughput", "Steady state", "AISBench", "req/s"):
        assert part in text


def test_a_sweep_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    latencies = {"TTFT": {"Median": 0.1, "P99": 0.3}}
    points = [Point(10, 10, 1.0, 1.0, True, latencies), Point(20, 12, 0.3, 0.7, False, latencies, "it was slow")]
    print_sweep(conclude(points, "requests/s", {"ttft": 0.2}, 0.9), Path("out"), as_json=False)
    text = capsys.readouterr().out
    assert "10 requests/s meets ttft ≤ 200 ms for 90% of requests" in text
    assert "it was slow" in text
    print_sweep(conclude([], "requests/s", {"ttft": 0.2}, 0.9), Path("out"), as_json=False)
    assert "no load meets" in capsys.readouterr().out


def test_the_page_shows_foreign_text_as_text() -> None:
    page = render_page("<b>task</b>", [level(notes=["<img src=x>"])], {"rate-10": {"a": "<svg></svg>"}})
    assert "<b>task" not in page
    assert re.findall(r'<img src="([^,"]*),', page) == ["data:image/svg+xml;base64"], "drawn by others: a picture"
    assert "<svg></svg>" not in page
    assert "Steady state" in page


def test_the_page_of_a_load_has_a_figure_without_any_extra_and_the_design_of_the_reports() -> None:
    page = render_page("task", [level()], {})
    assert "How long requests take" in page
    assert page.count("<polyline") >= 2
    assert "Content-Security-Policy" in page and "--paper" in page
    assert "Summary" not in page
    both = render_page("task", [level(), level(level="rate-20")], {})
    assert "All levels: the steady state" in both
    assert "<script" not in both


def test_names_of_levels() -> None:
    plans = [LoadPlan(rate=2.5), LoadPlan(concurrency=4), LoadPlan(concurrency=4, pressure_s=1), LoadPlan(trace=(0.0,))]
    assert [level_name(plan) for plan in plans] == ["rate-2.5", "concurrency-4", "pressure-4", "trace"]


@pytest.mark.parametrize(
    ("content", "moments"),
    [
        ("0.5\n1.5\n", (0.5, 1.5)),
        ("[1, 2.5]", (1.0, 2.5)),
        ('{"timestamp": 27}\n{"timestamp": 127}\n', (0.027, 0.127)),
        ('{"timestamp": 1.5}', (1.5,)),
    ],
)
def test_traces(tmp_path: Path, content: str, moments: tuple[float, ...]) -> None:
    (tmp_path / "t").write_text(content)
    assert read_trace(tmp_path / "t") == pytest.approx(moments)


@pytest.mark.parametrize("content", ['{"time": 1}', '["a"]', "true\n", "[null]"])
def test_traces_without_moments(tmp_path: Path, content: str) -> None:
    (tmp_path / "t").write_text(content)
    with pytest.raises(DataError, match="entry 1 has no send moment"):
        read_trace(tmp_path / "t")


def test_lists_of_numbers() -> None:
    assert parse_numbers("1, 2.5", "--rate") == [1.0, 2.5]
    assert parse_numbers(None, "--rate") == []
    for wrong in ("", "1,,2", "-1", "nine"):
        with pytest.raises(UsageError, match="--rate"):
            parse_numbers(wrong, "--rate")


def test_a_folder_or_a_file_can_be_summarized(tmp_path: Path) -> None:
    write_timeline(tmp_path / "timeline.json", TIMELINE)
    assert read_any(tmp_path) == read_any(tmp_path / "timeline.json") == TIMELINE
