"""AISBench's rules on small timelines of our own, so that they are tested without the recorded files."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Form, Prediction, Request, Sample, Timing, TrialKey
from snellen.perf.metrics import DIFFERENCES, summarize
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


def test_every_event_is_stamped_also_one_without_text() -> None:
    """A generated load: its rule written down here again, on all stamps of each request, text or not."""
    draw = random.Random(35)
    rows, stamps = [], []
    for n in range(20):
        moments = sorted(n + draw.random() for _ in range(draw.randint(3, 9)))
        rows.append(at(n, *moments[1:-1], tokens=5, silent=[moments[0], moments[-1]], first_event=moments[0]))
        stamps.append((n, moments))
    found = summarize_aisbench(timeline(*rows))["metrics"]
    first, whole = ([moments[place] - n for n, moments in stamps] for place in (0, -1))
    gaps = [b - a for _, moments in stamps for a, b in pairwise(moments)]
    per_token = [(end - start) / 4 for start, end in zip(first, whole, strict=True)]
    for name, values in {"TTFT": first, "E2EL": whole, "ITL": gaps, "TPOT": per_token}.items():
        assert found[name]["Average"] == pytest.approx(fmean(values), abs=5.1e-5), name


def test_a_timeline_without_silent_events_says_what_it_lacks() -> None:
    found = summarize_aisbench(timeline(at(0, 0.1, 0.2, 0.3, first_event=0.008)))
    assert (found["metrics"]["TTFT"]["Average"], found["metrics"]["TPOT"]["Average"]) == (0.008, 0.146)
    assert found["notes"][0].startswith("1 requests keep only the first event")
    assert len(summarize_aisbench(timeline(at(0, 0.1, 0.2, first_event=0.1)))["notes"]) == len(DIFFERENCES)


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
    assert found["TPOT"]["Average"] == pytest.approx(0.175)  # (1.4 - 1.05) / 2: from the first event of any kind
