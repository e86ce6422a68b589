"""A fleet is one model to the engine: replicas may be lost, differ, join late or be wrong, and no answer is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import snellen.kits.scale.driver as fleet_module
from fleet_doubles import Fleeting, NearLink
from line_doubles import OneTrial, Scripted
from snellen.core.clock import SystemClock
from snellen.core.errors import EnvironmentProblem, FailureKind, ModelError, UsageError
from snellen.core.tasks import RunHeader
from snellen.core.types import Prediction, Request, TrialKey, Turn
from snellen.engine.limits import Policy
from snellen.engine.loop import Engine
from snellen.kits.scale.items import Hello
from snellen.kits.scale.leases import GIVE_UP_AFTER
from snellen.store.writer import RunWriter


def asks(number: int) -> Request:
    return Request(TrialKey("t", str(number)), (Turn("user", f"{number}?"),))


def in_fleet(
    model: Callable[[], Any], work: Callable[[Fleeting], Awaitable[Any]], replicas: int = 2, lease: int = 4
) -> Any:
    async def main() -> Any:
        fleeting = Fleeting(model, replicas, lease)
        try:
            return await work(fleeting)
        finally:
            await fleeting.fleet.close()

    return asyncio.run(main())


async def all_of(fleeting: Fleeting, count: int) -> list[Prediction]:
    return await asyncio.gather(*(fleeting.fleet.predict(asks(number), {}) for number in range(count)))


async def echo(request: Request) -> Prediction:
    return Prediction(request.key, text=request.messages[0].text)


async def never(request: Request) -> Prediction:
    await asyncio.Event().wait()
    raise AssertionError


def test_requests_are_dealt_in_leases_to_all_replicas() -> None:
    async def work(fleeting: Fleeting) -> None:
        answers = await all_of(fleeting, 20)
        assert [answer.text for answer in answers] == [f"{number}?" for number in range(20)]
        assert {link.number for link in fleeting.links if link.leases} == {1, 2}
        assert max(len(lease) for link in fleeting.links for lease in link.leases) == 4
        assert fleeting.fleet.summary()["asked_again"] == 0
        assert sum(fleeting.fleet.summary()["replicas"].values()) == 20

    in_fleet(lambda: Scripted(echo), work)


def test_what_a_lost_replica_held_is_answered_by_others() -> None:
    async def work(fleeting: Fleeting) -> None:
        asked = asyncio.gather(*(fleeting.fleet.predict(asks(number), {}) for number in range(12)))
        await fleeting.fleet.check()
        stuck = await until_leased(fleeting, 1)
        stuck.cut()
        hold.set()
        answers = await asked
        assert [answer.text for answer in answers] == [f"{number}?" for number in range(12)]
        assert fleeting.fleet.asked_again > 0
        assert "replica 1" in fleeting.fleet.notes[0] and "killed by SIGKILL" in fleeting.fleet.notes[0]
        assert f"{fleeting.fleet.asked_again} trials asked again" in fleeting.fleet.notes[0]

    hold = asyncio.Event()

    async def held(request: Request) -> Prediction:
        await hold.wait()
        return await echo(request)

    in_fleet(lambda: Scripted(held), work)


async def until_leased(fleeting: Fleeting, number: int) -> NearLink:
    while not any(link.number == number and link.leases for link in fleeting.links):
        await asyncio.sleep(0)
    return fleeting.current(number)


def test_a_request_that_kills_every_replica_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "REST_S", 0.0)
    monkeypatch.setattr(fleet_module, "STRIKES", 100)

    async def work(fleeting: Fleeting) -> None:
        async def poison(request: Request) -> Prediction:
            if request.key.sample == "3":
                for link in fleeting.links:
                    if any("3" in lease for lease in link.leases):
                        link.cut("out of memory")
                await asyncio.Event().wait()
            return await echo(request)

        behaviour.append(poison)
        tasks = [asyncio.create_task(fleeting.fleet.predict(asks(number), {})) for number in range(8)]
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        wrong = [number for number, answer in enumerate(answers) if isinstance(answer, BaseException)]
        assert wrong == [3]
        assert isinstance(answers[3], ModelError)
        assert answers[3].kind is FailureKind.SERVER
        assert (
            str(answers[3]) == f"{GIVE_UP_AFTER} replicas were lost while they answered it, the last one: out of memory"
        )

    behaviour: list[Callable[[Request], Awaitable[Prediction]]] = []

    async def answer(request: Request) -> Prediction:
        return await behaviour[0](request)

    in_fleet(lambda: Scripted(answer), work)


class Greeting(NearLink):
    """Says of itself what it is told to."""

    hello: Hello

    async def open(self) -> Hello:
        return self.hello


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("version", "0.0.1", "has snellen 0.0.1"), ("identity", "another", "is not the driver's")],
)
def test_a_replica_of_another_version_or_model_answers_nothing(field: str, value: str, said: str) -> None:
    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(echo), 1)
        right = await NearLink(Scripted(echo), 1).host.greet()
        link = Greeting(Scripted(echo), 1)
        link.hello = Hello(**{name: getattr(right, name) for name in ("version", "identity", "host")} | {field: value})
        fleeting.fleet._make_link = lambda number: link
        with pytest.raises(EnvironmentProblem, match=said):
            await fleeting.fleet.predict(asks(1), {})
        assert link.leases == []
        await fleeting.fleet.close()

    asyncio.run(main())


class Broken(Scripted):
    async def check(self) -> None:
        raise UsageError("no checkpoint at /models/x")


def test_a_model_that_cannot_be_made_is_said_once_with_its_exit_code() -> None:
    async def work(fleeting: Fleeting) -> None:
        with pytest.raises(
            UsageError, match=r"no replica can answer; replica \d.*no checkpoint at /models/x"
        ) as caught:
            await fleeting.fleet.check()
        assert "\n" not in str(caught.value)

    in_fleet(Broken, work)


def test_one_replica_without_the_model_leaves_the_others_at_work() -> None:
    async def work(fleeting: Fleeting) -> None:
        answers = await all_of(fleeting, 10)
        assert len(answers) == 10
        assert any("given up: no checkpoint" in note for note in fleeting.fleet.notes)

    makers = iter([Scripted(echo), Scripted(echo), Broken()])
    in_fleet(lambda: next(makers), work)


def test_a_replica_lost_again_and_again_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "REST_S", 0.0)

    class Dying(NearLink):
        async def open(self) -> Hello:
            from snellen.kits.scale.links import ReplicaLost

            raise ReplicaLost("killed by SIGSEGV")

    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(echo), 1)
        fleeting.fleet._make_link = lambda number: Dying(Scripted(echo), number)
        with pytest.raises(
            EnvironmentProblem, match="lost 3 times without an answer, the last time: killed by SIGSEGV"
        ):
            await fleeting.fleet.predict(asks(1), {})
        await fleeting.fleet.close()

    asyncio.run(main())


def test_through_the_engine_nothing_is_lost_or_stored_twice_whatever_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "REST_S", 0.0)

    async def slow(request: Request) -> Prediction:
        await asyncio.sleep(0)
        return await echo(request)

    async def work(fleeting: Fleeting) -> None:
        writer = RunWriter(
            tmp_path, RunHeader(id="x", config={}, versions={}, created="", command="", model="m", tasks=[])
        )
        engine = Engine(fleeting.fleet, writer, Policy(max_workers=24, adaptive=False), SystemClock())

        async def saboteur() -> None:
            for cut in range(12):
                link = await until_leased(fleeting, 1 + cut % 3)
                link.cut()
                stored = engine.state.done  # whoever is never answered is given up, and that is another test
                while engine.state.done == stored:
                    await asyncio.sleep(0)

        cutting = asyncio.create_task(saboteur())
        await engine.run(iter([OneTrial(number) for number in range(400)]))
        cutting.cancel()
        stored = writer._database.execute("SELECT COUNT(*), COUNT(DISTINCT sample), SUM(failed) FROM predictions")
        assert stored.fetchone() == (400, 400, 0)
        assert sum(one.lost for one in fleeting.fleet.replicas) >= 3
        writer.close()

    in_fleet(lambda: Scripted(slow), work, replicas=3)


def test_progress_says_who_answers() -> None:
    async def work(fleeting: Fleeting) -> None:
        await all_of(fleeting, 8)
        assert fleeting.fleet.describe_replicas().startswith("2 of 2 replicas (")

    in_fleet(lambda: Scripted(echo), work)


def test_closing_ends_who_waits() -> None:
    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(never), 1)
        asked = asyncio.create_task(fleeting.fleet.predict(asks(1), {}))
        await until_leased(fleeting, 1)
        await fleeting.fleet.close()
        with pytest.raises(EnvironmentProblem, match="closed"):
            await fleeting.fleet.predict(asks(2), {})
        with pytest.raises(EnvironmentProblem, match="closed"):
            await asked

    asyncio.run(main())


def test_a_line_is_closed_to_its_end_also_when_the_fleet_is_closed_meanwhile() -> None:
    closed: list[int] = []

    class Slow(NearLink):
        async def close(self) -> None:
            await asyncio.sleep(0.01)
            await super().close()
            closed.append(self.number)

    async def main() -> None:
        fleeting = Fleeting(Broken, 2)
        fleeting.fleet._make_link = lambda number: Slow(Broken(), number)
        with pytest.raises(UsageError):
            await fleeting.fleet.check()
        await fleeting.fleet.close()
        assert sorted(closed) == [1, 2]

    asyncio.run(main())


def test_what_all_replicas_run_on_may_be_lost() -> None:
    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(never), 1)
        gone = asyncio.Event()

        async def lost() -> str:
            await gone.wait()
            return "the head is gone"

        fleeting.fleet._lost = lost
        asked = asyncio.create_task(fleeting.fleet.predict(asks(1), {}))
        await until_leased(fleeting, 1)
        gone.set()
        with pytest.raises(EnvironmentProblem, match="the head is gone"):
            await asked
        with pytest.raises(EnvironmentProblem, match="the head is gone"):
            await fleeting.fleet.predict(asks(2), {})
        await fleeting.fleet.close()

    asyncio.run(main())


def test_a_replica_that_kills_whatever_it_gets_fails_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "REST_S", 0.0)

    class Bad(NearLink):
        def send(self, lease: Any) -> None:
            super().send(lease)
            self.cut("its GPU fell off the bus")

    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(echo), 2)
        fleeting.fleet._make_link = lambda number: (Bad if number == 1 else NearLink)(Scripted(echo), number)
        for start in range(0, 60, 6):
            asked = [fleeting.fleet.predict(asks(number), {}) for number in range(start, start + 6)]
            assert len(await asyncio.gather(*asked)) == 6
        assert fleeting.fleet.replicas[0].lost > 2
        await fleeting.fleet.close()

    asyncio.run(main())
