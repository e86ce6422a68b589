"""A cache is believed after a few of its prompts were asked again; whatever differs, it is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from snellen.core.types import Failure, FailureKind, Params, Prediction, Request, TrialKey, Turn, Usage
from snellen.engine.trust import CacheTrust, difference

KEY = TrialKey("t", "s")
COLD, DRAWN = (Request(KEY, (Turn("user", "?"),), Params(temperature=value)) for value in (0.0, 1.0))
SCORED = Request(KEY, (Turn("user", "?"),), choices=("a", "b"))


def reply(text: str = "A", **detail: Any) -> Prediction:
    return Prediction(KEY, text=text, detail=detail)


def scores(*values: float) -> Prediction:
    return Prediction(KEY, loglikelihoods=values)


@pytest.mark.parametrize(
    ("request_", "then", "now", "same"),
    [
        (COLD, reply("A"), reply("A"), True),
        (COLD, reply("A"), reply("B"), False),
        (DRAWN, reply("A"), reply("B"), True),
        (DRAWN, reply(model="m1"), reply(model="m2"), False),
        (DRAWN, reply(fingerprint="f1"), reply(fingerprint="f2"), False),
        (COLD, reply(fingerprint="f1"), reply(fingerprint="f2"), True),
        (DRAWN, Prediction(KEY, text="A", usage=Usage(10)), Prediction(KEY, text="A", usage=Usage(11)), False),
        (SCORED, scores(-1.0, -2.0), scores(-1.01, -2.0), True),
        (SCORED, scores(-1.0, -2.0), scores(-1.5, -2.0), False),
    ],
)
def test_what_tells_two_models_apart(request_: Request, then: Prediction, now: Prediction, same: bool) -> None:
    assert (difference(request_, then, now) == "") == same


def settled(answers: list[Prediction], *, request: Request = COLD, hits: int = 6, count: int = 3) -> list[str]:
    """Return what each of some hits is answered with: the stored reply, a new one, or a question that is asked."""
    told: list[str] = []
    left = iter(answers)

    async def ask() -> Prediction:
        await asyncio.sleep(0)
        return next(left)

    async def all_of_them() -> list[Prediction | None]:
        trust = CacheTrust(count, told.append)
        return await asyncio.gather(*(trust.settle(request, reply("A"), ask) for _ in range(hits)))

    found = asyncio.run(all_of_them())
    return [("asked" if one is None else one.text or "failed") for one in found] + told[-1:]


def test_the_others_wait_until_the_first_few_agree() -> None:
    *found, said = settled([reply("A")] * 3)
    assert found == ["A"] * 6 and "used" in said


def test_one_that_differs_is_enough() -> None:
    *found, said = settled([reply("A"), reply("B"), reply("A")])
    assert found[3:] == ["asked"] * 3 and "not used" in said


def test_a_failure_says_nothing_and_another_takes_its_place() -> None:
    lost = Prediction(KEY, failure=Failure(FailureKind.NETWORK, "gone"))
    *found, said = settled([lost, reply("A"), reply("A"), reply("A")])
    assert found == ["failed", *["A"] * 5] and "used" in said


def test_short_replies_that_are_all_others_are_of_another_model() -> None:
    assert settled([reply("B")] * 3, request=DRAWN)[3] == "asked"
    assert settled([reply("B"), reply("A"), reply("B")], request=DRAWN)[3] == "A"
