"""Online dialogue: rounds in order, own answers in the history, lanes apart or by majority, and a failure ends it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from snellen.core.errors import ConfigError
from snellen.core.jobs import Item
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Turn
from snellen.infer.dialogue import EVERY, EVERY_BY_LIKELIHOOD, read_answer
from snellen.prompt.build import Prompter
from snellen.scoring.scorers.option_choice import score

OPTIONS = ("red", "green", "blue")
PROMPT = Prompt(template="{question} {options}", option_format="({mark}) {text}", option_separator="; ")


def dialogue(group: str, rounds: int) -> list[Sample]:
    found: list[Sample] = []
    turns: tuple[Turn, ...] = ()
    for number in range(rounds):
        meta = {"history_options": [list(OPTIONS)] * number}
        found.append(
            Sample(
                f"{group}_{number}",
                "d",
                Form.CHOICE,
                f"q{number}?",
                (),
                OPTIONS,
                ("red",),
                turns,
                group,
                {"round": number},
                meta,
            )
        )
        turns = (*turns, Turn("user", f"q{number}?"), Turn("assistant", "red"))
    return found


def jobs_of(samples: list[Sample], **fields: Any) -> list[Any]:
    task = Task("t", {}, **fields)
    items = [Item(place, sample) for place, sample in enumerate(samples)]
    return list(EVERY.plan(task, items, Prompter(task, PROMPT, 0)))


class Model:
    """Answers by a function of (round, repeat) and remembers what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Request] = []
        self.settled: list[Prediction] = []

    async def __call__(self, item: Item, request: Request, settled: Prediction | None = None) -> Prediction:
        if settled is not None:
            self.settled.append(settled)
            return settled
        self.asked.append(request)
        await asyncio.sleep(0)
        said = self.answer(int(item.sample.tags["round"] or 0), request.key.repeat)
        if said is None:
            return Prediction(request.key, failure=Failure(FailureKind.SERVER, "down"))
        return Prediction(request.key, text=said)


def said(request: Request) -> list[str]:
    return [turn.text for turn in request.messages if turn.role == "assistant"]


def test_rounds_follow_each_other_with_own_answers() -> None:
    model = Model(lambda number, repeat: ("(B)", "blue", "hm")[number % 3])
    (job,) = jobs_of(dialogue("a", 5))
    asyncio.run(job.run(model))
    assert [request.key.sample for request in model.asked] == [f"a_{number}" for number in range(5)]
    assert said(model.asked[4]) == ["(B) green", "(C) blue", "hm", "(B) green"]


def test_ten_rounds_and_more_are_in_order_of_their_number() -> None:
    shuffled = sorted(dialogue("a", 12), key=lambda sample: sample.id)
    (job,) = jobs_of(shuffled)
    assert [key.sample for key in job.keys] == [f"a_{number}" for number in range(12)]


def test_rounds_that_come_mixed_up_are_put_together() -> None:
    mixed = [sample for pair in zip(dialogue("a", 3)[::-1], dialogue("b", 3), strict=True) for sample in pair]
    assert [[key.sample for key in job.keys] for job in jobs_of(mixed)] == [
        ["a_0", "a_1", "a_2"],
        ["b_0", "b_1", "b_2"],
    ]


def test_lanes_keep_their_own_histories() -> None:
    jobs = jobs_of([*dialogue("a", 2), *dialogue("b", 2)], repeats=2)
    assert len(jobs) == 4
    assert len({key for job in jobs for key in job.keys}) == 8
    model = Model(lambda number, repeat: "(A)" if repeat else "(C)")
    for job in jobs[:2]:
        asyncio.run(job.run(model))
    assert [said(request) for request in model.asked if request.key.sample == "a_1"] == [["(C) blue"], ["(A) red"]]


def test_majority_of_repeats() -> None:
    (job,) = jobs_of(dialogue("a", 2), repeats=3, infer_options={"majority": True})
    assert len(job.keys) == 6
    model = Model(lambda number, repeat: ("(B)", "(C)", "(B)")[repeat])
    asyncio.run(job.run(model))
    assert [said(request) for request in model.asked[3:]] == [["(B) green"]] * 3


def test_a_failed_round_fails_those_after_it() -> None:
    model = Model(lambda number, repeat: None if number == 2 else "(A)")
    (job,) = jobs_of(dialogue("a", 5))
    asyncio.run(job.run(model))
    assert len(model.asked) == 3
    assert [prediction.key.sample for prediction in model.settled] == ["a_3", "a_4"]
    failure = model.settled[0].failure
    assert failure is not None and failure.kind is FailureKind.SKIPPED and failure.attempts == 0
    assert failure.message == "not asked: a_2 before it failed (server)"


def test_one_failed_lane_of_a_majority_fails_the_later_rounds_of_all() -> None:
    model = Model(lambda number, repeat: None if (number, repeat) == (1, 2) else "(A)")
    (job,) = jobs_of(dialogue("a", 3), repeats=3, infer_options={"majority": True})
    asyncio.run(job.run(model))
    assert len(model.asked) == 6
    assert sorted(prediction.key.repeat for prediction in model.settled) == [0, 1, 2]


@pytest.mark.parametrize(
    "reply",
    ["Not (A). The answer is (C).", "It looks like (A), but it must be (B).", "(A)? Or (B)?", "Hence blue.", "(Z)"],
)
def test_the_history_says_what_the_score_reads(reply: str) -> None:
    first, second = dialogue("a", 2)
    model = Model(lambda number, repeat: reply)
    (job,) = jobs_of([first, second])
    asyncio.run(job.run(model))
    request = model.asked[0]
    (verdict,) = score(first, request, Prediction(request.key, text=reply), {})
    assert verdict.answer in {None, "green", "blue"}
    history = said(model.asked[1])[0]
    assert history.endswith(verdict.answer) if verdict.answer else history == reply


def test_likelihoods_choose_too() -> None:
    request = Prompter(Task("t", {}), PROMPT, 0).build(dialogue("a", 1)[0])
    assert read_answer(request, Prediction(request.key, loglikelihoods=(-3.0, -1.0, -2.0))) == "green"


def test_a_dialogue_by_likelihood() -> None:
    task = Task("t", {}, prompt="p", infer_options={"majority": False})
    items = [Item(place, sample) for place, sample in enumerate(dialogue("a", 3))]
    (job,) = EVERY_BY_LIKELIHOOD.plan(task, items, Prompter(task, PROMPT, 0))
    asked: list[Request] = []

    async def ask(item: Item, request: Request) -> Prediction:
        asked.append(request)
        return Prediction(request.key, loglikelihoods=(-3.0, -2.0, -1.0 if len(asked) == 1 else -9.0))

    asyncio.run(job.run(ask))
    assert [request.choices for request in asked] == [OPTIONS] * 3
    assert said(asked[2]) == ["blue", "green"], "no marks: the options were hidden"
    with pytest.raises(ConfigError, match="unknown key"):
        EVERY_BY_LIKELIHOOD.read_options(Task("t", {}, infer_options={"reductoin": "sum"}))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown key 'majorty'"):
        jobs_of(dialogue("a", 1), infer_options={"majorty": True})
