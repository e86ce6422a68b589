"""The generator's pure parts: plans, dealing to processes, self-observation, bodies, and the stored record."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import UsageError
from snellen.core.jobs import Item as PlannedSample
from snellen.core.types import FailureKind, Form, Image, Params, Prediction, Request, Sample, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from snellen.model.served.prices import Bill, Prices
from snellen.perf.collect import Outcome
from snellen.perf.generator import Item, LoadJob, LoadResult, fill_replies
from snellen.perf.measure import LoadPlan, Measured, choose_processes, deal, make_job, merge_results, processes_needed
from snellen.perf.self_check import WatchReport, merge_reports, verdict
from snellen.perf.stored import headline_of_value, to_prediction, value_for_money
from snellen.perf.timeline import CANCELLED, RequestRecord, Timeline
from snellen.perf.workload import (
    Synthetic,
    add_salt,
    capture,
    join_turns,
    make_dialogues,
    prepare_items,
    salt_dialogues,
    with_replies,
)

ITEMS = tuple(Item(f"i{n}", (b"{}",)) for n in range(10))


def report(**fields: float) -> WatchReport:
    return WatchReport(
        **(
            {
                "wall_s": 1.0,
                "cpu_s": 0.1,
                "cpu_share": 0.1,
                "lag_p50_s": 0,
                "lag_p99_s": 0,
                "delay_p50_s": 0,
                "delay_p99_s": 0,
            }
            | fields
        )
    )


def result(count: int, cpu_s: float, start: float = 0.0) -> LoadResult:
    outcomes = [
        Outcome(f"i{n}", 0, RequestRecord(f"i{n}", start + n, start + n + 1, scheduled=start + n)) for n in range(count)
    ]
    return LoadResult(outcomes, start, report(cpu_s=cpu_s))


def job(plan: LoadPlan) -> LoadJob:
    return make_job(plan, ITEMS, "openai", ["http://h/v1"], {})


def test_plans_become_jobs() -> None:
    closed = job(LoadPlan(concurrency=4))
    assert (len(closed.slots), closed.count, closed.moments) == (4, 10, ())
    timed = job(LoadPlan(concurrency=4, duration_s=3))
    assert (timed.count, timed.duration_s) == (None, 3)
    pressed = job(LoadPlan(concurrency=10, pressure_s=5))
    assert (pressed.duration_s, pressed.slots[-1]) == (5, pytest.approx(0.45))
    opened = job(LoadPlan(rate=5, burstiness=0, concurrency=2))
    assert (len(opened.moments), opened.cap, opened.slots) == (10, 2, ())
    assert job(LoadPlan(trace=(5.0, 6.0, 7.5), count=2)).moments == (0.0, 1.0)
    assert len(job(LoadPlan(rate=100, burstiness=0, duration_s=1)).moments) == 100


@pytest.mark.parametrize("wrong", [{}, {"rate": 1.0, "trace": (1.0,)}, {"pressure_s": 1.0, "rate": 2.0}])
def test_plans_that_do_not_say_what_to_do(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        LoadPlan(**wrong)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 30))
def test_dealing_loses_nothing(count: int, processes: int, slots: int) -> None:
    closed = deal(job(LoadPlan(concurrency=slots, count=count)), processes)
    assert sum(len(part.slots) for part in closed) == slots
    assert sum(part.count or 0 for part in closed) == count
    opened = deal(job(LoadPlan(rate=10, count=count)), processes)
    assert sorted(moment for part in opened for moment in part.moments) == sorted(
        job(LoadPlan(rate=10, count=count)).moments
    )
    assert [part.worker for part in opened] == list(range(len(opened)))


def test_merging_is_by_stamps() -> None:
    merged = merge_results([result(3, 0.5, start=0.5), result(2, 0.25)])
    assert [outcome.record.sent for outcome in merged.outcomes] == [0.0, 0.5, 1.0, 1.5, 2.5]
    assert (merged.started, merged.watch.cpu_s, merged.watch.processes) == (0.0, 0.75, 2)


def test_processes_follow_the_cpu_of_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert processes_needed(result(20, 0.02), 100) == 1
    assert processes_needed(result(20, 0.02), 2000) == 4
    assert processes_needed(result(20, 2.0), 5000) == 8
    assert processes_needed(result(0, 1.0), 5000) == 1
    assert choose_processes(LoadPlan(concurrency=1200), job(LoadPlan(concurrency=1200)), None) == 3


def test_the_verdict_names_the_bottleneck() -> None:
    assert verdict(report(), capped=False) == ""
    assert "95% of a core" in verdict(report(cpu_share=0.95), capped=True)
    assert "event loop" in verdict(report(lag_p99_s=0.02, cpu_share=0.5), capped=True)
    assert "late" in verdict(report(delay_p99_s=0.05), capped=False)
    assert verdict(report(delay_p99_s=0.05), capped=True) == ""
    worst = merge_reports([report(), WatchReport(2, 1, 0.9, 0, 0, 0, 0, limited="x")])
    assert (worst.limited, worst.wall_s, worst.processes) == ("x", 2, 2)


def request(text: str, *images: Image, role: str = "user") -> Request:
    return Request(TrialKey("t", "s"), (Turn(role, text, images),), Params(stream=True))


def test_later_turns_hold_the_replies_so_far() -> None:
    first, second, third = join_turns([request("one"), request("two"), request("three")])
    assert [turn.role for turn in third.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert len(first.messages) == 1
    body = msgspec.json.encode([turn.text for turn in third.messages])
    filled = msgspec.json.decode(fill_replies(body, ['say "A"\n', "\ud800B"]))
    assert filled == ["one", 'say "A"\n', "two", "\ufffdB", "three"]
    assert second.messages[0].text == "one"


def test_the_stored_request_is_the_one_that_was_sent() -> None:
    third = join_turns([request("one"), request("two"), request("three")])[2]
    assert [turn.text for turn in with_replies(third, ["A", "B"]).messages] == ["one", "A", "two", "B", "three"]


def test_any_job_shows_what_it_would_ask() -> None:
    """A job that builds its own history from the replies needs nothing from us: the marks travel through it."""
    sample = Sample("s", "d", Form.OPEN, "first?")

    class Talk:
        keys = (TrialKey("t", "s"),)

        async def run(self, ask: Any) -> None:
            reply = await ask(PlannedSample(7, sample), request("first?"))
            again = Request(
                TrialKey("t", "s", repeat=1),
                (Turn("user", "first?"), Turn("assistant", reply.text), Turn("user", "sure?")),
            )
            await ask(PlannedSample(7, sample), again, keep=False)
            await ask(PlannedSample(7, sample), again, Prediction(again.key, text="known"))

    asked = asyncio.run(capture(Talk()))
    assert [(each.position, each.keep) for each in asked] == [(7, True), (7, False)]
    assert with_replies(asked[1].request, ["yes"]).messages[1].text == "yes"


def test_a_job_that_scores_candidates_is_no_load() -> None:
    class Score:
        keys = ()

        async def run(self, ask: Any) -> None:
            await ask(
                PlannedSample(0, Sample("s", "d", Form.OPEN, "q")), Request(TrialKey("t", "s"), (), choices=("a",))
            )

    with pytest.raises(UsageError, match="-p infer=generate"):
        asyncio.run(capture(Score()))


def test_salt_comes_before_everything() -> None:
    plain = add_salt(request("hi"), "77")
    assert [(turn.role, turn.text) for turn in plain.messages] == [("system", "[77]"), ("user", "hi")]
    assert add_salt(request("be kind", role="system"), "77").messages[0].text == "[77] be kind"


@pytest.mark.parametrize(("mode", "distinct"), [("as-is", 1), ("on", 1), ("off", 3)])
def test_prefix_cache_modes(mode: str, distinct: int) -> None:
    model = create("m", ModelOptions(base_url="http://h/v1"))
    items = asyncio.run(prepare_items(model, salt_dialogues([[request("same")]] * 3, mode, 0)))
    assert len({item.turns[0] for item in items}) == distinct
    assert (b"system" in items[0].turns[0]) is (mode != "as-is")
    with pytest.raises(UsageError, match="prefix-cache"):
        salt_dialogues([[request("x")]], "sometimes", 0)


def test_synthetic_loads_are_as_asked_and_seeded() -> None:
    load = Synthetic(input_tokens=9, output_tokens=5, images=2, width=40, height=30, turns=2, ignore_eos=True)
    first, again = make_dialogues(load, 2, seed=4), make_dialogues(load, 2, seed=4)
    assert first == again
    assert make_dialogues(load, 2, seed=5) != first
    opening, following = first[0]
    assert len(opening.messages[0].text.split()) == 9
    assert [(image.width, image.height) for image in opening.messages[0].images] == [(40, 30)] * 2
    assert [turn.role for turn in following.messages] == ["user", "assistant", "user"]
    assert following.messages[2].images == ()
    assert opening.params.extra_body == {"ignore_eos": True, "min_tokens": 5}
    model = create("m", ModelOptions(base_url="http://h/v1"))
    item = asyncio.run(prepare_items(model, first))[0]
    assert [[(picture.width, picture.height) for picture in pictures] for pictures in item.pictures] == [
        [(40, 30)] * 2
    ] * 2
    with pytest.raises(UsageError, match="at least 1"):
        Synthetic(turns=0)


def test_outcomes_become_predictions() -> None:
    good = RequestRecord(
        "x",
        1.0,
        2.0,
        scheduled=0.5,
        first_event=1.1,
        first_content=1.2,
        chunks=(1.2, 1.9),
        input_tokens=4,
        output_tokens=2,
    )
    prediction = to_prediction(request("q"), Outcome("t/s", 0, good, "A", None, "stop", "m"))
    assert (prediction.text, prediction.finish, prediction.detail) == ("A", "stop", {"model": "m"})
    assert prediction.timing is not None
    assert (prediction.timing.scheduled, prediction.timing.first_token, prediction.timing.token_times) == (
        0.5,
        1.2,
        (1.2, 1.9),
    )
    bad = RequestRecord("x", 1.0, 2.0, failure="rate", status=429, message="slow down")
    failure = to_prediction(request("q"), Outcome("t/s", 0, bad, None)).failure
    assert failure is not None
    assert (failure.kind, failure.status, failure.message) == (FailureKind.RATE, 429, "slow down")
    stopped = to_prediction(request("q"), Outcome("t/s", 0, RequestRecord("x", 1.0, 2.0, failure=CANCELLED), None))
    assert stopped.text is None


def scored(metric: str, value: float, right: float | None) -> dict[str, Any]:
    return {"metrics": {metric: {"value": value}, "latency_s": {"value": 5.0}}, "right_answers": right}


def test_value_for_money() -> None:
    records = [
        RequestRecord(str(n), 0.0, 10.0, input_tokens=1000, output_tokens=500, cached_tokens=400, streamed=False)
        for n in range(10)
    ]
    outcomes = [Outcome(f"t/{n % 5}", n // 5, record, "A") for n, record in enumerate(records)]
    measured, bill = Measured(Timeline(requests=tuple(records)), outcomes), Bill(Prices(1.0, 4.0, "EUR", 0.5))
    for outcome in outcomes:
        bill.add(to_prediction(request("q"), outcome))
    results = {"tasks": {"t": scored("accuracy", 0.8, 4.0)}}
    found = value_for_money(measured, results, bill)
    assert (found["accuracy"], found["right answers"]) == (0.8, 8.0), "five rows, each asked twice"
    assert found["right answers per second"] == pytest.approx(0.8)
    assert found["right answers per 1000 output tokens"] == pytest.approx(1.6)
    assert found["cost"] == pytest.approx(0.028)
    assert found["right answers per EUR"] == pytest.approx(8 / 0.028)
    assert "latency_s" not in found
    assert "cost" not in value_for_money(measured, results, None)
    bill.add(to_prediction(request("q"), Outcome("t/0", 2, RequestRecord("x", 0.0, 1.0), "A")))
    unpriced = value_for_money(measured, results, bill)
    assert (unpriced["replies without a known price"], unpriced["right answers per EUR"]) == (1.0, None)


def test_several_tasks_have_a_headline_each() -> None:
    record = RequestRecord("1", 0.0, 10.0, output_tokens=5)
    measured = Measured(Timeline(requests=(record,)), [Outcome("t/1", 0, record, "A")])
    results = {"tasks": {"a": scored("accuracy", 0.8, 4.0), "b": scored("wer", 0.5, None)}}
    found = value_for_money(measured, results, None)
    assert (found["a: accuracy"], found["b: wer"], found["right answers"]) == (0.8, 0.5, None)
    assert [headline_of_value(name) for name in found][:3] == ["accuracy", "wer", ""]
