"""Our own definitions against timelines computed by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError, UsageError
from snellen.perf import metrics
from snellen.perf.metrics import DEFINITIONS, describe, output_tokens, summarize, time_per_token
from snellen.perf.timeline import RequestRecord, Timeline


def request(name: str = "a", **fields: object) -> RequestRecord:
    """A reply with role event at 0.01 s, thoughts at 0.1 and 0.2, text at 0.3 … 0.6, usage at 0.65."""
    made = {
        "id": name, "sent": 10.0, "scheduled": 9.5, "first_event": 10.01, "first_reasoning": 10.1, "first_content": 10.3,
        "chunks": (10.1, 10.2, 10.3, 10.4, 10.5, 10.6), "done": 10.65, "input_tokens": 100, "output_tokens": 11,
    }  # fmt: skip
    return RequestRecord(**(made | fields))


def value(metric: str, record: RequestRecord) -> list[float]:
    return list(next(each.values for each in DEFINITIONS if each.name == metric)(record))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("E2EL", 0.6), ("E2ELScheduled", 1.1), ("TTFT", 0.3), ("TTFTScheduled", 0.8), ("TTFR", 0.1), ("TTFE", 0.01), ("TPOT", 0.05),
        ("QueueTime", 0.5), ("OutputTokenThroughput", 11 / 0.6), ("PrefillTokenThroughput", 1000.0), ("DecodeTokenThroughput", 20.0),
    ],
)  # fmt: skip
def test_one_request_by_hand(metric: str, expected: float) -> None:
    assert value(metric, request()) == [pytest.approx(expected, abs=1e-9)]


def test_gaps_are_per_event_with_text() -> None:
    assert value("ITL", request()) == pytest.approx([0.1] * 5)


def test_a_reply_that_came_whole_has_latency_only() -> None:
    whole = request(streamed=False, chunks=(), first_event=None, first_reasoning=None, first_content=None)
    assert value("E2EL", whole) == [pytest.approx(0.65)]
    assert [value(name, whole) for name in ("TTFT", "TPOT", "ITL", "PrefillTokenThroughput")] == [[], [], [], []]


def test_one_token_has_no_time_per_token_and_no_usage_counts_events() -> None:
    assert time_per_token(request(chunks=(10.3,), output_tokens=1)) is None
    assert output_tokens(request(output_tokens=None)) == 6
    assert time_per_token(request(output_tokens=None)) == pytest.approx(0.1)


def test_a_failure_is_timed_and_counted_but_never_a_latency() -> None:
    failed = request("b", failure="server", done=12.0, chunks=())
    summary = summarize(Timeline(requests=(request(), failed)))
    assert summary["metrics"]["FailedTime"]["Average"] == pytest.approx(2.0)
    assert summary["metrics"]["E2EL"]["N"] == 1
    assert summary["common"]["Failed Requests"] == 1
    assert summary["common"]["Benchmark Duration"] == pytest.approx(2.0)
    assert summary["errors"] == {"server": 1}


def test_the_load_as_a_whole_by_hand() -> None:
    """Two requests of 1 s overlapping by half: 1.5 s, 2 of them, mean concurrency 4/3."""
    records = tuple(
        RequestRecord(str(n), n * 0.5, n * 0.5 + 1, chunks=(n * 0.5 + 1,), input_tokens=30, output_tokens=15)
        for n in range(2)
    )
    common = summarize(Timeline(requests=records), objectives={"e2el": 1.0})["common"]
    assert common["Benchmark Duration"] == pytest.approx(1.5)
    assert common["Concurrency"] == pytest.approx(4 / 3)
    assert common["Peak Concurrency"] == 2
    assert common["Request Throughput"] == pytest.approx(2 / 1.5)
    assert common["Output Token Throughput"] == pytest.approx(20.0)
    assert common["Input Token Throughput"] == pytest.approx(40.0)
    assert (common["Goodput"], common["Goodput Share"]) == (pytest.approx(2 / 1.5), 1.0)


def test_images_have_their_own_throughput() -> None:
    record = RequestRecord("a", 0.0, 2.0, chunks=(2.0,), images=3, pixels=3_000_000)
    common = summarize(Timeline(requests=(record,)))["common"]
    assert (common["Image Throughput"], common["Pixel Throughput"]) == (1.5, 1_500_000)


def test_notes_say_what_cannot_be_trusted() -> None:
    timeline = Timeline(
        requests=(request(output_tokens=None, counted_by="chunks"), request("b", streamed=False)),
        interrupted=True,
        watch={"limited": "it used 99% of a core"},
    )
    text = " ".join(summarize(timeline)["notes"])
    for part in ("stopped by hand", "without usage", "came whole", "99% of a core"):
        assert part in text


def test_errors_name_the_way_out() -> None:
    with pytest.raises(DataError, match="no request"):
        summarize(Timeline(requests=()))
    with pytest.raises(DataError, match="run it longer"):
        summarize(Timeline(requests=(request(),)), "stable")
    with pytest.raises(UsageError, match="no stage"):
        summarize(Timeline(requests=(request(),)), "warm")
    with pytest.raises(UsageError, match="P1 to"):
        summarize(Timeline(requests=(request(),)), stats=("P200",))


@given(st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=60))
def test_statistics_are_ordered_and_inside_the_data(values: list[float]) -> None:
    stats = describe(values)
    ordered = [stats[name] for name in ("Min", "Median", "P75", "P90", "P95", "P99", "P99.9", "Max")]
    assert all(a <= b or math.isclose(a, b, rel_tol=1e-12) for a, b in itertools.pairwise(ordered))
    assert stats["N"] == len(values)
    assert stats["P90"] == pytest.approx(float(np.percentile(values, 90)))


def test_every_figure_has_both_words_and_a_way_to_compute_it() -> None:
    assert [figure.name for figure in DEFINITIONS if figure.name != "ITL"] == list(metrics._VALUE)
    assert all(figure.unit and figure.meaning for figure in DEFINITIONS)


def test_tokens_that_no_reply_counted_are_unknown_and_not_0() -> None:
    silent = [request(name, input_tokens=None, output_tokens=None, chunks=(), streamed=False) for name in "ab"]
    summary = summarize(Timeline(requests=tuple(silent)))
    for name in ("Total Input Tokens", "Input Token Throughput", "Output Token Throughput", "Total Token Throughput"):
        assert summary["common"][name] is None
    assert "2 of 2 replies came without a count of input tokens" in " ".join(summary["notes"])
    one_told = summarize(Timeline(requests=(silent[0], request("c"))))["common"]
    assert one_told["Total Input Tokens"] == 100 and one_told["Input Token Throughput"] > 0


def test_reasoning_that_is_counted_and_not_shown_makes_no_fast_token() -> None:
    """1,004 tokens, of which 1,000 were thought in silence for 9 s; the other four came in 0.3 s."""
    events = {"first_reasoning": None, "first_content": 19.0, "chunks": (19.0, 19.1, 19.2, 19.3), "done": 19.3}
    hidden = request(**events, output_tokens=1004, reasoning_tokens=1000)
    assert value("TPOT", hidden) == [pytest.approx(0.1)], "and not 0.3 s over 1,003 tokens"
    assert value("DecodeTokenThroughput", hidden) == [pytest.approx(10.0)]
    assert value("PrefillTokenThroughput", hidden) == [], "the time to its first text is no prefill"
    assert value("OutputTokenThroughput", hidden) == [pytest.approx(1004 / 9.3)]
    inside = request(**events, output_tokens=4, reasoning_tokens=2)
    assert value("TPOT", inside) == [pytest.approx(0.1)], "more events than other tokens: the reasoning was among them"


def test_the_tail_of_few_replies_is_called_what_it_is() -> None:
    few = summarize(Timeline(tuple(request(str(i)) for i in range(10))))["notes"]
    assert "P95 and P99 and P99.9 of 10 replies say hardly more than the slowest one" in few
    assert not any(
        "slowest" in note for note in summarize(Timeline(tuple(request(str(i)) for i in range(1000))))["notes"]
    )
