"""A replica that lives and answers nothing is noticed by what the others need; a slow one loses nothing by it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import snellen.kits.scale.driver as fleet_module
from fleet_doubles import Fleeting, NearLink
from line_doubles import Scripted
from snellen.core.errors import EnvironmentProblem, ModelError
from snellen.core.types import Prediction, Request, TrialKey, Turn
from snellen.kits.scale.driver import ENDED_AFTER, GIVEN_AFTER, Fleet, Patience, Replica, SilenceWatch
from snellen.kits.scale.items import Question
from snellen.kits.scale.leases import LeaseBook, Waiting

PATIENCE = 0.04


def asks(number: int) -> Request:
    return Request(TrialKey("t", str(number)), (Turn("user", f"{number}?"),))


async def echo(request: Request) -> Prediction:
    return Prediction(request.key, text=request.messages[0].text)


class Deaf(NearLink):
    """Takes leases and answers nothing until it is let."""

    def __init__(self, model: Any, number: int) -> None:
        super().__init__(model, number)
        self.hears = asyncio.Event()

    async def receive(self) -> bytes:
        await self.hears.wait()
        return await super().receive()


def in_fleet(
    kinds: dict[int, type[NearLink]], work: Callable[[Fleeting, Fleet], Awaitable[None]], replicas: int = 2
) -> None:
    """Run work with replicas of which some, at their first start, are of another kind."""

    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(echo), replicas)
        first = dict(kinds)

        def make(number: int) -> NearLink:
            link = first.pop(number, NearLink)(Scripted(echo), number)
            fleeting.links.append(link)
            return link

        fleet = Fleet(Scripted(echo), replicas, make, lease=4, patience_s=PATIENCE)
        try:
            await work(fleeting, fleet)
        finally:
            await fleet.close()

    asyncio.run(main())


async def all_of(fleet: Fleet, count: int) -> list[Prediction]:
    return await asyncio.wait_for(asyncio.gather(*(fleet.predict(asks(n), {}) for n in range(count))), 60)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def test_what_a_hanging_replica_holds_is_answered_by_others_and_told() -> None:
    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        answers = await all_of(fleet, 20)
        assert [answer.text for answer in answers] == [f"{number}?" for number in range(20)]
        assert "replica 1" in fleet.notes[0] and "has answered nothing for" in fleet.notes[0]
        assert (
            "the slowest answer took" in fleet.notes[0] and "are given to others; it is ended after" in fleet.notes[0]
        )
        assert "\n" not in fleet.notes[0]
        assert fleet.asked_again > 0
        assert "1 silent" in fleet.describe_replicas()

    in_fleet({1: Deaf}, work)


def test_one_that_stays_silent_is_ended_started_again_and_answers() -> None:
    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        await all_of(fleet, 20)
        await until(lambda: fleet.replicas[0].lost)
        assert any("replica 1" in note and "lost: it answered nothing for" in note for note in fleet.notes)
        await until(lambda: fleet.replicas[0].can_take)
        await all_of(fleet, 40)
        assert fleet.replicas[0].answered > 0

    in_fleet({1: Deaf}, work)


def test_a_slow_one_is_not_ended_and_its_answers_count() -> None:
    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        await all_of(fleet, 20)
        slow: Any = next(link for link in fleeting.links if isinstance(link, Deaf))
        slow.hears.set()
        await until(lambda: fleet.replicas[0].silent_since is None)
        assert any("replica 1" in note and "answers again after" in note for note in fleet.notes)
        assert (fleet.replicas[0].lost, fleet.replicas[0].answered > 0) == (0, True)
        longest = fleet._patience.longest_s
        assert longest is not None and longest > PATIENCE, "its pace is the measure now"

    in_fleet({1: Deaf}, work)


def test_the_only_replica_is_ended_and_its_trials_asked_again() -> None:
    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        await all_of(fleet, 4)
        fleet._patience.longest_s = 0.001
        hanging = asyncio.Event()
        link = fleeting.links[-1]
        normal = link.receive

        async def hang() -> bytes:
            await hanging.wait()
            return await normal()

        link.receive = hang  # type: ignore[method-assign]
        await fleet.predict(asks(4), {})  # answered by the wait that was under way
        answers = await all_of(fleet, 8)
        assert len(answers) == 8
        assert any("it is given nothing more" in note for note in fleet.notes)
        assert fleet.replicas[0].lost == 1

    in_fleet({}, work, replicas=1)


class Forgetful(NearLink):
    """Loses one request of its first lease and goes on."""

    def send(self, lease: Any) -> None:
        forgets = not self.leases
        super().send(lease[1:] if forgets else lease)
        if forgets:
            self.leases[0].insert(0, "forgotten")


def test_a_trial_that_a_replica_forgot_is_asked_again_while_it_goes_on() -> None:
    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        answers = await all_of(fleet, 12)
        assert len(answers) == 12
        assert any("left 1 trials unanswered" in note for note in fleet.notes)
        assert fleet.replicas[0].lost == 0

    in_fleet({1: Forgetful}, work, replicas=1)


def test_answers_that_cannot_be_read_lose_the_replica_not_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "REST_S", 0.0)

    class Garbling(NearLink):
        async def receive(self) -> bytes:
            return (await super().receive())[:-3]

    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        answers = await all_of(fleet, 12)
        assert len(answers) == 12
        assert any("lost: what it answers cannot be read" in note for note in fleet.notes)

    in_fleet({1: Garbling}, work)


def test_a_lease_that_cannot_leave_ends_the_run_in_one_line() -> None:
    class Full(NearLink):
        def send(self, lease: Any) -> None:
            raise EnvironmentProblem("Ray's object store takes no more pictures")

    async def work(fleeting: Fleeting, fleet: Fleet) -> None:
        with pytest.raises(EnvironmentProblem, match="takes no more pictures"):
            await all_of(fleet, 3)

    in_fleet({1: Full}, work, replicas=1)


def test_a_question_that_hangs_every_replica_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "REST_S", 0.0)
    monkeypatch.setattr(fleet_module, "STRIKES", 100)

    async def poison(request: Request) -> Prediction:
        if request.key.sample == "3":
            await asyncio.Event().wait()
        return await echo(request)

    async def main() -> None:
        fleeting = Fleeting(lambda: Scripted(poison), 2)
        fleeting.fleet._patience.least_s = 0.02
        asked = (fleeting.fleet.predict(asks(number), {}) for number in range(8))
        answers = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
        assert [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)] == [3]
        assert isinstance(answers[3], ModelError)
        await fleeting.fleet.close()

    asyncio.run(main())


@given(st.lists(st.floats(0, 1e4), max_size=8), st.floats(0.1, 600))
def test_patience_is_never_shorter_than_what_answers_took(taken: list[float], least: float) -> None:
    patience = Patience(least)
    assert patience.given_after() is None, "nothing is known of how long an answer takes"
    for seconds in taken:
        patience.note(seconds)
        given, ended = patience.given_after(), patience.ended_after()
        assert given is not None
        assert least <= given < ended
        assert given >= GIVEN_AFTER * seconds and ended >= ENDED_AFTER * seconds


def watched(served: bool) -> tuple[SilenceWatch, LeaseBook, list[Replica], Patience]:
    book, patience = LeaseBook(), Patience(60.0)
    replicas = [Replica(1, link=object()), Replica(2, link=object())]  # type: ignore[arg-type]
    for replica in replicas:
        book.join(replica.number, 64)
    return SilenceWatch(replicas, book, patience, served=served), book, replicas, patience


def put(book: LeaseBook, *numbers: int) -> None:
    for number in numbers:
        book.put(Waiting(number, Question(asks(number), {}), SimpleNamespace(done=lambda: False)))  # type: ignore[arg-type]


def test_before_the_first_answer_nobody_is_ended_and_it_is_said_once() -> None:
    watch, book, _, _ = watched(served=False)
    put(book, 1)
    book.take(1, 4, now=0.0)
    assert watch.look(599.0) == []
    (told,) = watch.look(601.0)
    assert "no first answer for 601 s; it is waited for" in told.words and not told.ends
    assert watch.look(9_000.0) == []


def test_a_server_is_never_asked_twice_for_a_silent_client_that_is_not_ended() -> None:
    watch, book, replicas, patience = watched(served=True)
    put(book, 1, 2)
    book.take(1, 1, now=0.0)
    patience.note(1.0)
    assert watch.look(100.0) == [], "nobody hears from the server: it is not the client that hangs"
    replicas[1].heard = 50.0
    (found,) = watch.look(100.0)
    assert (found.replica.number, list(found.taken), found.ends) == (1, [], False)
    assert watch.look(101.0) == []
    (found,) = watch.look(700.0)
    assert found.ends
