"""The batcher: alike lengths together, every asker gets an answer or an error, whatever the model does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from line_doubles import ScriptedBatch
from snellen.core.errors import ModelError
from snellen.core.types import Image, Prediction, Request, TrialKey, Turn
from snellen.engine.call import Batcher


def request(name: str, length: int = 1, images: int = 0) -> Request:
    return Request(TrialKey("t", name), (Turn("user", "x" * length, tuple(Image(f"/{n}.png") for n in range(images))),))


def answer(requests: Sequence[Request]) -> list[Prediction]:
    return [Prediction(each.key, text=each.key.sample) for each in requests]


def ask(model: ScriptedBatch, requests: list[Request]) -> list[Prediction | BaseException]:
    async def go() -> list[Prediction | BaseException]:
        batcher = Batcher(model)
        return await asyncio.wait_for(
            asyncio.gather(*(batcher.predict(each, {}) for each in requests), return_exceptions=True), 5
        )

    return asyncio.run(go())


def test_everyone_gets_their_own_answer_longest_first() -> None:
    model = ScriptedBatch(answer)
    requests = [
        request("short", 1),
        request("long", 500),
        request("picture", 1, images=1),
        request("middle", 50),
        request("tiny", 0),
    ]
    found = ask(model, requests)
    assert [each.text for each in found] == [each.key.sample for each in requests]
    assert model.batches == [["picture", "long", "middle", "short"], ["tiny"]]


def test_an_error_goes_to_all_of_its_batch_and_the_next_batch_works() -> None:
    def once(requests: Sequence[Request]) -> list[Prediction]:
        if len(model.batches) == 1:
            raise RuntimeError("out of memory")
        return answer(requests)

    model = ScriptedBatch(once)
    found = ask(model, [request(str(n), 10 - n) for n in range(6)])
    assert [isinstance(each, ModelError) for each in found] == [True] * 4 + [False] * 2
    assert all("the model raised RuntimeError: out of memory" in str(each) for each in found[:4])


@pytest.mark.parametrize("wrong", [-1, 1])
def test_too_few_or_too_many_answers_are_an_error_not_a_wait(wrong: int) -> None:
    def miscount(requests: Sequence[Request]) -> list[Prediction]:
        return answer(requests)[:wrong] if wrong < 0 else [*answer(requests), *answer(requests[:1])]

    found = ask(ScriptedBatch(miscount), [request(str(n)) for n in range(3)])
    assert all(isinstance(each, ModelError) and "answers for 3 requests" in str(each) for each in found)


def test_a_batch_size_of_nothing_still_goes_on() -> None:
    model = ScriptedBatch(answer)
    model.batch_size = 0
    assert [each.text for each in ask(model, [request("a"), request("b")])] == ["a", "b"]


def test_prefetch_is_told_when_a_request_comes() -> None:
    told: list[str] = []

    class Prefetching(ScriptedBatch):
        def prefetch(self, each: Request) -> None:
            told.append(each.key.sample)

    ask(Prefetching(answer), [request("a"), request("b")])
    assert told == ["a", "b"]


def test_one_who_gave_up_does_not_disturb_the_others() -> None:
    async def go() -> str | None:
        batcher = Batcher(ScriptedBatch(answer))
        gone, stays = (
            asyncio.create_task(batcher.predict(request("gone"), {})),
            asyncio.create_task(batcher.predict(request("stays"), {})),
        )
        await asyncio.sleep(0)
        gone.cancel()
        return (await asyncio.wait_for(stays, 5)).text

    assert asyncio.run(go()) == "stays"


def test_one_who_gave_up_does_not_keep_the_error_from_the_others() -> None:
    def fail(requests: Sequence[Request]) -> list[Prediction]:
        raise RuntimeError("out of memory")

    async def go() -> BaseException | None:
        batcher = Batcher(ScriptedBatch(fail))
        gone, stays = (
            asyncio.create_task(batcher.predict(request("gone"), {})),
            asyncio.create_task(batcher.predict(request("stays"), {})),
        )
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait({stays}, timeout=5)
        return stays.exception()

    error = asyncio.run(go())
    assert isinstance(error, ModelError)
    assert isinstance(error.__cause__, RuntimeError)
