"""The steady-state window: no edge bias, whatever the timeline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.perf.metrics import summarize
from snellen.perf.timeline import RequestRecord, Timeline, Window, concurrency_steps, plateau, steady_window, whole_run


def closed_loop(slots: int, waves: int, service: float, pause: float, *, streamed: bool = True) -> list[RequestRecord]:
    """Slots that open a millisecond apart and answer in `service` seconds, the text in seven events over the second half."""
    records = []
    for wave in range(waves):
        for slot in range(slots):
            start = slot * 0.001 + wave * (service + pause)
            chunks = tuple(start + service * (0.5 + 0.5 * event / 6) for event in range(7)) if streamed else ()
            end = chunks[-1] if chunks else start + service
            records.append(
                RequestRecord(f"{slot}.{wave}", start, end, chunks=chunks, output_tokens=7, streamed=streamed)
            )
    return records


@given(st.integers(1, 12), st.integers(4, 12), st.floats(0.1, 2.0), st.floats(1e-5, 0.05), st.booleans())
def test_a_closed_loop_gives_its_true_rate(
    slots: int, waves: int, service: float, pause: float, streamed: bool
) -> None:
    records = closed_loop(slots, waves, service, pause, streamed=streamed)
    common = summarize(Timeline(requests=tuple(records)), "stable")["common"]
    # The slots open a millisecond apart; the window may begin with any of them and ends with the last: so much and no more.
    tolerance = 0.001 * slots / ((waves - 2) * (service + pause)) + 1e-6
    assert common["Request Throughput"] == pytest.approx(slots / (service + pause), rel=tolerance)
    assert common["Output Token Throughput"] == pytest.approx(7 * slots / (service + pause), rel=tolerance)


def test_ends_go_before_sends_at_one_moment() -> None:
    records = [RequestRecord("a", 0.0, 1.0), RequestRecord("b", 1.0, 2.0)]
    assert concurrency_steps(records) == [(0.0, 1), (1.0, 1), (2.0, 0)]


def test_the_plateau_is_a_median_over_time() -> None:
    assert plateau([(0.0, 1), (1.0, 8), (9.0, 2), (10.0, 0)]) == 8
    assert plateau([]) == 0


def test_a_straggler_of_the_ramp_does_not_move_the_window() -> None:
    records = closed_loop(4, 10, 1.0, 0.0)
    slow = [*records[1:], RequestRecord("slow", records[0].sent, 30.0)]
    window = steady_window(slow)
    assert window is not None
    assert window.start < 2.5


def test_too_short_runs_have_no_steady_state() -> None:
    assert steady_window(closed_loop(1, 2, 1.0, 0.0)) is None
    assert steady_window(closed_loop(4, 1, 1.0, 0.0)) is None


def test_what_came_inside() -> None:
    window = Window(1.0, 3.0)
    lives = ((0, 2), (1, 3), (0, 4), (3, 4), (2, 2))
    assert [window.overlap(RequestRecord("x", a, b)) for a, b in lives] == [1.0, 2.0, 2.0, 0.0, 0.0]
    assert [window.delivered(RequestRecord("x", a, b)) for a, b in lives] == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert window.delivered(RequestRecord("x", 0.0, 4.0, chunks=(0.5, 1.0, 2.0, 3.0))) == 0.5
    assert whole_run([RequestRecord("x", 1.0, 2.0), RequestRecord("y", 0.5, 1.5)]) == Window(0.5, 2.0, whole=True)


@pytest.mark.parametrize("streamed", [True, False])
def test_an_overloaded_server_is_not_credited_with_its_queue(streamed: bool) -> None:
    """Ten a second are asked of a server that can do eight: it did eight, however long the queue."""
    records, free = [], 0.0
    for number in range(400):
        begin = max(number / 10, free)
        free = begin + 1 / 8
        chunks = (begin + 1 / 16, free) if streamed else ()
        records.append(RequestRecord(str(number), number / 10, free, chunks=chunks, streamed=streamed))
    assert summarize(Timeline(requests=tuple(records)), "stable")["common"]["Request Throughput"] == pytest.approx(
        8, rel=0.01
    )
