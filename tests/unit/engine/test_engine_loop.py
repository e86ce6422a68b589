"""The run loop: nothing a model, a job or a plan can do hangs it, loses what is stored, or passes for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_clock import FakeClock
from line_doubles import OneTrial, Scripted, ScriptedBatch, header, jobs, work
from snellen.core.errors import ConfigError, DataError, EnvironmentProblem, ModelError, RunMismatch, StopRun
from snellen.core.jobs import Item
from snellen.core.types import Failure, FailureKind, Form, Image, ImageSent, Prediction, Request, Sample, TrialKey, Turn
from snellen.engine.limits import Limits, Policy
from snellen.engine.loop import DEAD_AFTER, Engine
from snellen.store.cache import ResponseCache
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter


def stored(folder: Path) -> dict[str, Prediction]:
    with RunReader(folder) as reader:
        return {trial.prediction.key.sample: trial.prediction for trial in reader.trials("t")}


def number(request: Request) -> int:
    return int(request.key.sample[1:])


def test_every_job_is_asked_once_and_stored(tmp_path: Path) -> None:
    model = Scripted()
    engine = work(tmp_path, model, jobs(50))
    assert sorted(model.asked) == sorted(stored(tmp_path)) == sorted(f"s{n}" for n in range(50))
    assert (engine.state.done, engine.state.failed, engine.state.resumed, engine.state.in_flight) == (50, 0, 0, 0)


def test_a_second_run_asks_only_what_failed(tmp_path: Path) -> None:
    async def sometimes(request: Request) -> Prediction:
        if number(request) % 3 == 0:
            raise ModelError(FailureKind.REQUEST, "no")
        return Prediction(request.key, text="first")

    work(tmp_path, Scripted(sometimes), jobs(9))
    assert {name for name, prediction in stored(tmp_path).items() if prediction.failure} == {"s0", "s3", "s6"}
    second = Scripted()
    engine = work(tmp_path, second, jobs(9))
    assert sorted(second.asked) == ["s0", "s3", "s6"]
    assert (engine.state.resumed, engine.state.done) == (6, 3)
    assert {prediction.text for prediction in stored(tmp_path).values()} == {"first", "ok"}


@pytest.mark.parametrize(
    "error", [RuntimeError("boom"), KeyError("x"), ValueError("bad \ud800 text"), TimeoutError(), MemoryError()]
)
def test_whatever_a_model_raises_is_a_typed_failure_of_that_trial(tmp_path: Path, error: Exception) -> None:
    async def answer(request: Request) -> Prediction:
        if number(request) == 2:
            raise error
        return Prediction(request.key, text="fine")

    engine = work(tmp_path, Scripted(answer), jobs(6))
    found = stored(tmp_path)
    assert len(found) == 6
    failure = found["s2"].failure
    assert failure is not None
    assert failure.kind is (FailureKind.TIMEOUT if isinstance(error, TimeoutError) else FailureKind.SERVER)
    assert (engine.state.done, engine.state.failed) == (6, 1)


def test_text_that_cannot_be_stored_is_made_storable(tmp_path: Path) -> None:
    async def answer(request: Request) -> Prediction:
        return Prediction(request.key, text="a\ud800b\x00c \u202e ok", reasoning="\udfff")

    work(tmp_path, Scripted(answer), jobs(1))
    assert (stored(tmp_path)["s0"].text, stored(tmp_path)["s0"].reasoning) == ("a\ufffdb\ufffdc \u202e ok", "\ufffd")


def test_ten_megabytes_of_answer_come_back_whole(tmp_path: Path) -> None:
    async def answer(request: Request) -> Prediction:
        return Prediction(request.key, text="ä" * 5_000_000)

    work(tmp_path, Scripted(answer), jobs(2))
    assert [len(prediction.text or "") for prediction in stored(tmp_path).values()] == [5_000_000] * 2


@pytest.mark.parametrize(
    "error", [DataError("record 5 is wrong"), ConfigError("wording=9"), EnvironmentProblem("gone")]
)
def test_a_plan_that_breaks_in_the_middle_lets_others_finish(tmp_path: Path, error: Exception) -> None:
    """The requests in flight when the plan breaks were paid for: they are stored."""
    gate = asyncio.Event()

    async def answer(request: Request) -> Prediction:
        if number(request) in (1, 2, 3):
            await gate.wait()
        return Prediction(request.key, text="ok")

    def plan() -> Iterator[OneTrial]:
        for n in range(5):
            yield OneTrial(n)
        asyncio.get_running_loop().call_soon(gate.set)
        raise error

    with pytest.raises(type(error), match=str(error)):
        work(tmp_path, Scripted(answer), plan())
    assert sorted(stored(tmp_path)) == ["s0", "s1", "s2", "s3", "s4"]


def test_a_job_that_raises_stops_the_run_with_its_own_error(tmp_path: Path) -> None:
    class Wrong(OneTrial):
        async def run(self, ask: object) -> None:
            raise ConfigError("this sample has no such wording")

    todo = iter([OneTrial(0), Wrong(1), *(OneTrial(n) for n in range(2, 500))])
    with pytest.raises(ConfigError, match="no such wording"):
        work(tmp_path, Scripted(), todo)
    assert "s0" in stored(tmp_path)
    assert len(stored(tmp_path)) < 100


def test_the_first_job_goes_alone(tmp_path: Path) -> None:
    seen: list[int] = []
    model = Scripted()

    async def answer(request: Request) -> Prediction:
        for _ in range(10):
            await asyncio.sleep(0)
        if number(request) == 0:
            seen.append(len(model.asked))
        return Prediction(request.key, text="ok")

    model._answer = answer
    work(tmp_path, model, jobs(20))
    assert seen == [1]


def test_a_doomed_run_stops_at_its_first_request(tmp_path: Path) -> None:
    async def refuse(request: Request) -> Prediction:
        raise StopRun(FailureKind.AUTH, "wrong key")

    model = Scripted(refuse)
    with pytest.raises(StopRun, match="wrong key"):
        work(tmp_path, model, jobs(100))
    assert model.asked == ["s0"]
    assert stored(tmp_path) == {}


def test_stop_during_the_probe_does_not_wait_for_it(tmp_path: Path) -> None:
    async def hang(request: Request) -> Prediction:
        await asyncio.Event().wait()
        raise AssertionError

    def stop_soon(engine: Engine) -> None:
        asyncio.get_running_loop().call_later(0.01, engine.stop)

    engine = work(tmp_path, Scripted(hang), jobs(5), prepare=stop_soon, drain_s=0.02)
    assert engine.stopping
    assert stored(tmp_path) == {}


def test_stop_drains_what_is_in_flight_and_takes_nothing_new(tmp_path: Path) -> None:
    model = Scripted()

    async def answer(request: Request) -> Prediction:
        if number(request) == 4:
            engines[0].stop()
        await asyncio.sleep(0.005)
        return Prediction(request.key, text="ok")

    model._answer = answer
    engines: list[Engine] = []
    work(tmp_path, model, jobs(200), prepare=engines.append, max_workers=4)
    assert sorted(stored(tmp_path)) == sorted(model.asked)
    assert len(model.asked) <= 9


def test_failures_in_a_row_stop_the_run_and_successes_between_do_not(tmp_path: Path) -> None:
    async def dead(request: Request) -> Prediction:
        raise ModelError(FailureKind.SERVER, "HTTP 500")

    with pytest.raises(EnvironmentProblem, match="failed in a row"):
        work(tmp_path / "dead", Scripted(dead), jobs(200), max_workers=1)
    assert len(stored(tmp_path / "dead")) == DEAD_AFTER

    async def flaky(request: Request) -> Prediction:
        if number(request) % DEAD_AFTER:
            raise ModelError(FailureKind.SERVER, "HTTP 500")
        return Prediction(request.key, text="ok")

    assert work(tmp_path / "flaky", Scripted(flaky), jobs(100), max_workers=1).state.failed == 95


@pytest.mark.parametrize(
    "kind", [FailureKind.TOO_LONG, FailureKind.REFUSED, FailureKind.PAYLOAD, FailureKind.TRUNCATED]
)
def test_questions_that_are_at_fault_themselves_do_not_condemn_the_server(tmp_path: Path, kind: FailureKind) -> None:
    async def answer(request: Request) -> Prediction:
        raise ModelError(kind, "not this one")

    engine = work(tmp_path, Scripted(answer), jobs(60))
    assert (engine.state.done, engine.state.failures) == (60, {kind.value: 60})


def test_missing_pictures_in_a_row_do_not_condemn_the_server(tmp_path: Path) -> None:
    model = Scripted()
    engine = work(tmp_path / "run", model, jobs(60, image=Image(str(tmp_path / "nowhere.png"))))
    assert (engine.state.done, engine.state.failures, model.asked) == (60, {"decode": 60}, [])


def test_lost_connections_end_the_run_even_with_many_retries(tmp_path: Path) -> None:
    async def reset(request: Request) -> Prediction:
        raise ModelError(FailureKind.NETWORK, "connection reset", retryable=True)

    model = Scripted(reset)
    with pytest.raises(EnvironmentProblem, match="server is gone"):
        work(tmp_path, model, jobs(5), max_retries=1000)
    assert len(model.asked) == DEAD_AFTER


def test_an_answer_between_lost_connections_starts_the_count_again(tmp_path: Path) -> None:
    calls = 0

    async def flaky(request: Request) -> Prediction:
        nonlocal calls
        calls += 1
        if calls % 15:
            raise ModelError(FailureKind.NETWORK, "connection reset", retryable=True)
        return Prediction(request.key, text="ok")

    assert work(tmp_path, Scripted(flaky), jobs(5), max_retries=50, max_workers=1).state.done == 5


class Watched:
    """An interval that is never narrow enough, and remembers what it was told."""

    def __init__(self, narrow_after: int = 10**6) -> None:
        self.told: list[str] = []
        self._narrow_after = narrow_after

    @property
    def stopped(self) -> bool:
        return len(self.told) >= self._narrow_after

    def observe(self, item: Item, request: Request, prediction: Prediction) -> None:
        self.told.append(prediction.key.sample)


def test_settled_trials_are_stored_observed_and_never_sent(tmp_path: Path) -> None:
    skipped = Prediction(OneTrial(0).key, failure=Failure(FailureKind.SKIPPED, "no pages"))
    model, interval = Scripted(), Watched()
    todo = iter([OneTrial(0, settled=skipped), OneTrial(1)])
    engine = work(tmp_path, model, todo, limits=Limits(interval=interval))
    assert model.asked == ["s1"] and interval.told == ["s0", "s1"]
    assert (engine.state.done, engine.state.failures) == (2, {"skipped": 1})


def test_an_interval_hears_of_stored_trials_too(tmp_path: Path) -> None:
    work(tmp_path, Scripted(), jobs(3))
    model, interval = Scripted(), Watched()
    engine = work(tmp_path, model, jobs(4), limits=Limits(interval=interval))
    assert sorted(interval.told) == ["s0", "s1", "s2", "s3"]
    assert (model.asked, engine.state.resumed) == (["s3"], 3)


def test_a_narrow_interval_ends_a_run_that_is_then_finished(tmp_path: Path) -> None:
    engine = work(tmp_path, Scripted(), jobs(50), limits=Limits(interval=Watched(3)), max_workers=1)
    assert engine.state.done == 3 and not engine.state.unfinished


def test_what_must_be_known_before_the_first_request_is_asked_once_and_only_if_something_is_left(
    tmp_path: Path,
) -> None:
    class Both(OneTrial):
        async def run(self, ask: Any) -> None:
            await asyncio.gather(*(OneTrial(number).run(ask) for number in range(3)))

    def go(opening: Any) -> Any:
        async def run() -> Any:
            writer = RunWriter(tmp_path, header())
            engine = Engine(Scripted(), writer, Policy(), FakeClock(), opening=opening)
            try:
                await engine.run(iter([Both(9)]))
            finally:
                writer.close()
            return engine.state

        return asyncio.run(run())

    opened: list[int] = []

    async def refuse() -> None:
        opened.append(1)
        raise RunMismatch("another server")

    with pytest.raises(RunMismatch):
        go(refuse)

    async def allow() -> None:
        opened.append(2)

    assert go(allow).done == 3
    assert go(allow).resumed == 3
    assert opened == [1, 2]


def test_the_time_of_a_command_ends_it_and_says_so(tmp_path: Path) -> None:
    state = work(tmp_path, Scripted(), jobs(500), limits=Limits(ends=0.0), max_workers=1).state
    assert state.overdue and state.unfinished and 0 < state.done < 500


def test_replies_come_from_the_cache_and_failures_never_get_there(tmp_path: Path) -> None:
    async def first(request: Request) -> Prediction:
        if number(request) == 1:
            raise ModelError(FailureKind.REQUEST, "no")
        return Prediction(request.key, text="from the model")

    cache = ResponseCache(tmp_path / "cache.db")
    work(tmp_path / "a", Scripted(first), jobs(3), cache=cache)
    model = Scripted()
    engine = work(tmp_path / "b", model, jobs(3), cache=cache)
    cache.close()
    assert model.asked == ["s1"]
    assert engine.state.cached == 2
    assert {(name, prediction.text, prediction.cached) for name, prediction in stored(tmp_path / "b").items()} == {
        ("s0", "from the model", True),
        ("s1", "ok", False),
        ("s2", "from the model", True),
    }


def test_a_model_that_depends_on_the_trial_is_never_answered_for(tmp_path: Path) -> None:
    class ByTrial(Scripted):
        cacheable = False

    cache = ResponseCache(tmp_path / "cache.db")
    for name in ("a", "b"):
        model = ByTrial()
        work(tmp_path / name, model, jobs(3), cache=cache)
        assert len(model.asked) == 3
    assert cache.info()["replies"] == 0
    cache.close()


def test_a_batch_model_gets_batches_and_no_timeout_counts_its_waiting(tmp_path: Path) -> None:
    model = ScriptedBatch(lambda requests: [Prediction(request.key, text="ok") for request in requests])
    engine = work(tmp_path, model, jobs(17), timeout_s=5.0)
    assert engine.state.done == 17
    assert engine._retrier.policy.timeout_s is None
    assert max(map(len, model.batches)) == 4
    assert engine.state.failed == 0


def test_max_errors_by_count_and_by_share(tmp_path: Path) -> None:
    async def third(request: Request) -> Prediction:
        if number(request) % 3 == 0:
            raise ModelError(FailureKind.REQUEST, "no")
        return Prediction(request.key, text="ok")

    with pytest.raises(EnvironmentProblem, match=r"4 of \d+ trials failed \(--max-errors\)"):
        work(tmp_path / "count", Scripted(third), jobs(300), max_workers=1, limits=Limits(errors="3"))
    assert len(stored(tmp_path / "count")) == 10
    with pytest.raises(EnvironmentProblem, match=r"\d+ of 100 trials"):
        work(tmp_path / "share", Scripted(third), jobs(300), max_workers=1, limits=Limits(errors="30%"))
    assert (
        work(tmp_path / "fine", Scripted(third), jobs(300), max_workers=1, limits=Limits(errors="50%")).state.done
        == 300
    )


def test_a_part_of_a_trial_is_asked_and_not_stored(tmp_path: Path) -> None:
    class Parts(OneTrial):
        async def run(self, ask: Any) -> None:
            sample = Sample("s0", "t", Form.OPEN, "?")
            part = await ask(Item(0, sample), Request(TrialKey("t", "s0", "part"), (Turn("user", "part"),)), keep=False)
            assert part.text == "ok"
            await ask(Item(0, sample), Request(self.key, (Turn("user", "whole"),)))

    model = Scripted()
    engine = work(tmp_path, model, iter([Parts(0)]))
    assert (len(model.asked), engine.state.done) == (2, 1)
    assert [prediction.key.variant for prediction in stored(tmp_path).values()] == ["base"]


def test_the_first_problem_is_the_one_that_is_told(tmp_path: Path) -> None:
    async def refuse(request: Request) -> Prediction:
        if number(request) == 0:
            return Prediction(request.key, text="ok")
        for _ in range(number(request)):
            await asyncio.sleep(0)
        raise StopRun(FailureKind.AUTH, f"refused {number(request)}")

    with pytest.raises(StopRun, match="refused 1"):
        work(tmp_path, Scripted(refuse), jobs(5))


def test_many_in_flight_may_fail_together_before_the_server_is_called_dead(tmp_path: Path) -> None:
    async def dead(request: Request) -> Prediction:
        raise ModelError(FailureKind.SERVER, "HTTP 500")

    with pytest.raises(EnvironmentProblem, match="80 trials failed in a row"):
        work(tmp_path, Scripted(dead), jobs(500), max_workers=40, adaptive=False)


def test_what_a_model_says_of_its_pictures_stands(tmp_path: Path) -> None:
    import PIL.Image

    PIL.Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    own = ImageSent("hash", "image/png", 2, 2, 9)

    async def answer(request: Request) -> Prediction:
        return Prediction(request.key, text="ok", images=(own,) if number(request) else ())

    work(tmp_path / "run", Scripted(answer), jobs(2, image=Image(str(tmp_path / "a.png"))))
    found = stored(tmp_path / "run")
    assert found["s1"].images == (own,)
    assert (found["s0"].images[0].width, len(found["s0"].images[0].sha256)) == (4, 64)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_log_likelihoods_that_json_cannot_hold_are_a_typed_failure(tmp_path: Path, value: float) -> None:
    async def answer(request: Request) -> Prediction:
        return Prediction(request.key, loglikelihoods=(-1.0, value if number(request) else -2.0))

    engine = work(tmp_path, Scripted(answer), jobs(2))
    found = stored(tmp_path)  # the run stays readable
    assert found["s0"].loglikelihoods == (-1.0, -2.0)
    assert engine.state.failures == {"decode": 1}
