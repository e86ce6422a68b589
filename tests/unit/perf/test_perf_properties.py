"""What must hold for any timeline: the clock's origin, the order of the file and unused fields change nothing."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.perf.metrics import summarize
from snellen.perf.profile_aisbench import summarize_aisbench
from snellen.perf.timeline import RequestRecord, Timeline, concurrency_steps, steady_window, whole_run

STEP = 1 / 1024  # exact in binary, so shifting the clock loses no bit


@st.composite
def records(draw: st.DrawFn) -> RequestRecord:
    sent = draw(st.integers(0, 5000)) * STEP
    moments = [sent]
    for gap in draw(st.lists(st.integers(0, 200), min_size=1, max_size=6)):
        moments.append(moments[-1] + gap * STEP)
    failure = draw(st.sampled_from([None, None, None, "server", "cancelled"]))
    return RequestRecord(
        id=str(draw(st.integers(0, 10**9))),
        sent=sent,
        scheduled=sent - draw(st.integers(0, 50)) * STEP,
        done=moments[-1],
        chunks=() if failure else tuple(moments[1:]),
        first_content=None if failure else moments[1],
        input_tokens=draw(st.integers(0, 500)),
        output_tokens=draw(st.integers(1, 50)),
        failure=failure,
    )


timelines = st.lists(records(), min_size=1, max_size=25).map(lambda rows: Timeline(requests=tuple(rows)))


def shifted(record: RequestRecord, by: float) -> RequestRecord:
    fields: dict[str, Any] = {name: getattr(record, name) + by for name in ("sent", "done", "scheduled")}
    if record.first_content is not None:
        fields["first_content"] = record.first_content + by
    return msgspec.structs.replace(record, chunks=tuple(moment + by for moment in record.chunks), **fields)


@given(timelines, st.integers(-4096, 4096))
def test_the_origin_of_the_clock_does_not_matter(timeline: Timeline, ticks: int) -> None:
    moved = msgspec.structs.replace(
        timeline, requests=tuple(shifted(record, ticks * STEP) for record in timeline.requests)
    )
    here, there = summarize(timeline), summarize(moved)
    assert here["metrics"] == there["metrics"]
    assert here["common"] == pytest.approx(there["common"], nan_ok=True)


@given(timelines, st.randoms(use_true_random=False))
def test_the_order_of_the_file_does_not_matter(timeline: Timeline, random: Any) -> None:
    rows = list(timeline.requests)
    random.shuffle(rows)
    mixed = msgspec.structs.replace(timeline, requests=tuple(rows))
    here, there = summarize(timeline), summarize(mixed)
    assert here["common"] == pytest.approx(there["common"])
    for name, row in here["metrics"].items():
        assert row == pytest.approx(there["metrics"][name])


@given(timelines)
def test_counts_add_up_and_nothing_is_nan(timeline: Timeline) -> None:
    summary = summarize(timeline, objectives={"ttft": 0.1, "e2el": 0.5})
    common = summary["common"]
    total = common["Success Requests"] + common["Failed Requests"] + common["Cancelled Requests"]
    assert total == common["Total Requests"] == len(timeline.requests)
    assert 0 <= common["Goodput Share"] <= 1
    values = [value for row in summary["metrics"].values() for value in row.values()]
    values += [value for value in common.values() if isinstance(value, float)]
    assert all(math.isfinite(value) for value in values)
    assert common["Concurrency"] is None or common["Concurrency"] <= common["Peak Concurrency"] + 1e-9


@given(timelines)
def test_from_the_schedule_is_never_faster_than_from_the_send(timeline: Timeline) -> None:
    metrics = summarize(timeline)["metrics"]
    if "E2EL" in metrics:
        assert metrics["E2ELScheduled"]["Average"] >= metrics["E2EL"]["Average"] - 1e-12


@given(timelines)
def test_windows_lie_inside_the_run_and_shares_inside_one(timeline: Timeline) -> None:
    whole = whole_run(timeline.requests)
    assert all(whole.delivered(record) == 1.0 for record in timeline.requests)
    window = steady_window(timeline.requests)
    if window is not None:
        assert whole.start <= window.start < window.end <= whole.end + 1e-9
        assert all(0 <= window.delivered(record) <= 1 for record in timeline.requests)
        assert all(0 <= window.overlap(record) <= record.end - record.sent for record in timeline.requests)


@given(timelines)
def test_concurrency_begins_and_ends_at_nothing(timeline: Timeline) -> None:
    steps = concurrency_steps(timeline.requests)
    assert steps[-1][1] == 0
    assert min(level for _, level in steps) >= 0


@given(timelines)
def test_aisbench_counts_successes_only(timeline: Timeline) -> None:
    done = [record for record in timeline.requests if record.ok]
    if not done:
        return
    summary = summarize_aisbench(timeline)
    assert summary["common"]["Success Requests"] == len(done)
    assert summary["common"]["Failed Requests"] == len(timeline.requests) - len(done)
    assert summary["metrics"]["E2EL"]["Max"] == round(max(record.end - record.sent for record in done), 4)
