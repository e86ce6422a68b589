"""AISBench's rules on small timelines of our own, so that they are tested without the recorded files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Form, Prediction, Request, Sample, Timing, TrialKey
from snellen.perf.definitions import DIFFERENCES
from snellen.perf.metrics import summarize
from snellen.perf.profile_aisbench import summarize_aisbench
from snellen.perf.stored import timeline_of_run
from snellen.perf.timeline import Timeline, timeline_from_dict
from snellen.store.writer import RunWriter


def timeline(*requests: dict[str, Any], cap: int = 1, **more: Any) -> Timeline:
    return timeline_from_dict({"max_concurrency": cap, "requests": list(requests), **more}, "test")


def at(start: float, *chunks: float, tokens: int = 3, **more: Any) -> dict[str, Any]:
    return {"start": start, "chunks": list(chunks), "input_tokens": 10, "output_tokens": tokens, **more}


def test_rounding_to_a_tenth_of_a_millisecond() -> None:
    found = summarize_aisbench(timeline(at(0.0, 0.0012345, 0.5)))
    assert found["metrics"]["TTFT"]["Average"] == 0.0012
    assert found["common"]["Benchmark Duration"] == 500.0
    assert summarize(timeline(at(0.0, 0.0012345, 0.5)))["metrics"]["TTFT"]["Average"] == 0.0012345


def test_zeros_enter_the_average_but_not_the_count() -> None:
    found = summarize_aisbench(timeline(at(0, 0.2, 0.3, 0.4), at(1, 1.2, tokens=1)))["metrics"]["TPOT"]
    assert (found["Average"], found["N"]) == (0.05, 1)


@pytest.mark.parametrize(("first", "kept"), [((0.2, 0.2, 0.2), False), ((0.2,), True), ((0.2, 0.25, 0.3), True)])
def test_one_request_decides_whether_itl_exists(first: tuple[float, ...], kept: bool) -> None:
    found = summarize_aisbench(timeline(at(0, *first), at(1, 1.2, 1.3, 1.4)))
    assert ("ITL" in found["metrics"]) is kept
    assert "ITL" in summarize(timeline(at(0, *first), at(1, 1.2, 1.3, 1.4)))["metrics"]


def test_metrics_of_no_time_are_left_out() -> None:
    found = summarize_aisbench(timeline(at(0, 0.0, 0.5)))["metrics"]
    assert "TTFT" not in found
    assert "PrefillTokenThroughput" not in found


def test_without_streaming_there_is_latency_only() -> None:
    found = summarize_aisbench(timeline(at(0, 0.4), stream=False))
    assert set(found["metrics"]) == {"E2EL", "InputTokens", "OutputTokens", "OutputTokenThroughput"}


def test_failures_lie_outside_the_duration() -> None:
    found = summarize_aisbench(timeline(at(0, 0.5), at(0, 9.0, success=False)))
    assert found["common"]["Benchmark Duration"] == 500.0
    assert (found["common"]["Total Requests"], found["common"]["Failed Requests"]) == (2, 1)


def test_the_stable_stage_reads_success_from_the_wrong_rows() -> None:
    """The failed request stands first; its flag is taken for the first member's."""
    rows = (at(0, 0.1, success=False), *(at(n, n + 0.5) for n in range(5)))
    found = summarize_aisbench(timeline(*rows), "stable")["common"]
    ours = summarize(timeline(*rows), "stable")["common"]
    assert (found["Total Requests"], found["Failed Requests"]) == (4, 0)
    later = summarize_aisbench(timeline(*rows[1:3], rows[0], *rows[3:]), "stable")["common"]
    assert (later["Total Requests"], later["Failed Requests"]) == (4, 1)
    assert ours["Failed Requests"] == 0


def test_a_window_of_no_length_is_infinitely_fast() -> None:
    found = summarize_aisbench(timeline(at(0, 0.5), at(1, 1.5)), "stable")["common"]
    assert (found["Benchmark Duration"], found["Request Throughput"], found["Input Token Throughput"]) == (
        0.0,
        "inf",
        None,
    )
    assert found["Concurrency"] == 1


def test_no_stable_stage_and_no_success_are_errors_with_a_way_out() -> None:
    with pytest.raises(DataError, match="leave out --profile"):
        summarize_aisbench(timeline(at(0, 0.5), cap=4), "stable")
    with pytest.raises(DataError, match="leave out --profile"):
        summarize_aisbench(timeline(at(0, 0.5, success=False)))


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (["P50", "Std"], ["P50"]),
        (["Std", "P0", "P100"], ["Average"]),
        (["P01", "Max"], ["P01", "Max"]),
        ([*["P9"] * 8, "Max"], ["P9"]),
    ],
)
def test_statistics_that_are_accepted(asked: list[str], given: list[str]) -> None:
    found = summarize_aisbench(timeline(at(0, 0.5), stats_list=asked))["metrics"]["E2EL"]
    assert [name for name in found if name != "N"] == given


def test_every_difference_is_told() -> None:
    notes = summarize_aisbench(timeline(at(0, 0.5)))["notes"]
    assert len(notes) == len(DIFFERENCES)
    assert all("ours" in text for _, text in DIFFERENCES)


def test_tokens_that_no_reply_counted_have_no_figures() -> None:
    bare = {"start": 0.0, "chunks": [0.1, 0.2]}
    found = summarize_aisbench(timeline(bare))
    assert {"InputTokens", "OutputTokens", "OutputTokenThroughput", "TPOT"}.isdisjoint(found["metrics"])
    assert found["common"]["Total Generated Tokens"] is found["common"]["Output Token Throughput"] is None


def test_a_stored_run_without_usage_counts_events_as_a_load_does(tmp_path: Path) -> None:
    key = TrialKey("t", "a")
    moments = (1.1, 1.2, 1.4)
    stored = Prediction(key, text="a b c", timing=Timing(1.0, 1.5, None, 1.05, None, 1.1, moments))
    task = Task("t", {}, scorers=("exact",))
    header = RunHeader("id", {}, {}, "2026", tasks=[task], planned={"t": 1})

    async def store() -> None:
        writer = RunWriter(tmp_path, header)
        await writer.put(0, Sample("a", "t", Form.OPEN, "?"), Request(key, ()), stored, "")
        writer.close()

    asyncio.run(store())
    found = summarize_aisbench(timeline_of_run(tmp_path))["metrics"]
    assert found["OutputTokens"]["Average"] == 3
    assert found["TPOT"]["Average"] == pytest.approx(0.15)
