"""The steady-state window: no edge bias, whatever the timeline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.perf.metrics import summarize
from snellen.perf.steady import Window, concurrency_steps, plateau, steady_window, whole_run
from snellen.perf.timeline import RequestRecord, Timeline


def closed_loop(slots: int, waves: int, service: float, pause: float) -> list[RequestRecord]:
    cycle = service + pause
    return [
        RequestRecord(f"{slot}.{wave}", slot * 0.001 + wave * cycle, slot * 0.001 + wave * cycle + service, output_tokens=7)
        for wave in range(waves)
        for slot in range(slots)
    ]


@given(st.integers(1, 12), st.integers(4, 12), st.floats(0.1, 2.0), st.floats(0.0, 0.05))
def test_a_closed_loop_gives_its_true_rate(slots: int, waves: int, service: float, pause: float) -> None:
    records = closed_loop(slots, waves, service, pause)
    common = summarize(Timeline(requests=tuple(records)), "stable")["common"]
    # The window ends with a send of the last slot, so at most a thousandth of a wave is cut.
    assert common["Request Throughput"] == pytest.approx(slots / (service + pause), rel=0.02)
    assert common["Output Token Throughput"] == pytest.approx(7 * slots / (service + pause), rel=0.02)


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


def test_shares_of_life() -> None:
    window = Window(1.0, 3.0)
    assert [window.share(RequestRecord("x", a, b)) for a, b in ((0, 2), (1, 3), (0, 4), (3, 4), (2, 2))] == [0.5, 1.0, 0.5, 0.0, 1.0]
    assert whole_run([RequestRecord("x", 1.0, 2.0), RequestRecord("y", 0.5, 1.5)]) == Window(0.5, 2.0)
