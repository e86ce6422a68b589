"""Objectives, and what leaves for other programs."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import UsageError
from snellen.core.text import safe_cell
from snellen.perf.files import export, metrics_csv, prometheus, requests_csv
from snellen.perf.metrics import is_good, parse_objectives, summarize
from snellen.perf.timeline import RequestRecord, Timeline

RECORD = RequestRecord("a", 0.0, 1.0, chunks=(0.4, 0.7, 1.0), first_content=0.4, output_tokens=3, input_tokens=8)


def test_objectives_are_seconds() -> None:
    assert parse_objectives("ttft=500ms, TPOT=40ms,e2el=2s,itl=900us,queuetime=1") == {
        "ttft": 0.5, "tpot": 0.04, "e2el": 2.0, "itl": pytest.approx(0.0009), "queuetime": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "ttft", "ttft=fast", "ttft=0ms", "tfft=5ms", "ttft=5 min"])
def test_wrong_objectives_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--slo"):
        parse_objectives(text)


def test_good_means_every_objective_and_no_failure() -> None:
    assert is_good(RECORD, {"ttft": 0.4, "tpot": 0.3})
    assert not is_good(RECORD, {"ttft": 0.4, "tpot": 0.29})
    assert not is_good(RECORD, {"itl": 0.29})
    assert not is_good(RequestRecord("f", 0.0, 0.1, failure="server"), {"e2el": 1.0})


def test_a_server_that_stops_streaming_does_not_meet_objectives_it_cannot_be_held_to() -> None:
    whole = RequestRecord("w", 0.0, 1.0, streamed=False, output_tokens=50)
    assert is_good(whole, {"ttft": 1.0, "e2el": 1.0}) and not is_good(whole, {"ttft": 0.1})
    assert not is_good(whole, {"tpot": 10.0}) and not is_good(whole, {"itl": 10.0})
    one_word = RequestRecord("o", 0.0, 1.0, chunks=(0.5,), first_content=0.5, output_tokens=1)
    assert is_good(one_word, {"ttft": 0.5, "tpot": 0.001})


@given(st.text(max_size=20))
def test_no_cell_can_start_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert not cell or cell[0] not in "=+-@\t\r\n"


def test_requests_as_csv_are_whole_and_safe() -> None:
    bad = RequestRecord("=HYPERLINK(1)", 0.0, 0.5, failure="server", message="@SUM(A1)\nsecond, line")
    rows = list(csv.DictReader(io.StringIO(requests_csv(Timeline(requests=(RECORD, bad))))))
    assert rows[0]["first_content"] == "0.4"
    assert (rows[1]["id"], rows[1]["message"]) == ("'=HYPERLINK(1)", "'@SUM(A1)\nsecond, line")


def test_metrics_as_csv_hold_every_metric_and_figure() -> None:
    summary = summarize(Timeline(requests=(RECORD,)))
    rows = {row[0]: row for row in csv.reader(io.StringIO(metrics_csv(summary)))}
    assert rows["TTFT"][1:4] == ["s", "total", "0.4"]
    assert set(summary["metrics"]) | set(summary["common"]) <= set(rows)


def test_prometheus_lines_parse() -> None:
    text = prometheus(summarize(Timeline(requests=(RECORD,)), objectives={"ttft": 1.0}))
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert 'snellen_perf_ttft_seconds{stage="total",stat="P99"} 0.4' in samples
    assert any(line.startswith("snellen_perf_goodput_requests_per_second{") for line in samples)
    names = {line.split("{")[0] for line in samples}
    assert names == {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert all(float(line.rsplit(" ", 1)[1]) >= 0 for line in samples)


def test_formats_by_name() -> None:
    timeline = Timeline(requests=(RECORD,))
    summary = summarize(timeline)
    assert json.loads(export("json", summary, timeline))["common"]["Success Requests"] == 1
    assert export("requests-csv", summary, timeline).startswith("id,")
    with pytest.raises(UsageError, match="known"):
        export("xlsx", summary, timeline)
