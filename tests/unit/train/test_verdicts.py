"""A judge's verdicts become points: by criteria, or pairwise in both orders, where a judge of places contradicts itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from snellen.core.errors import DataError
from snellen.core.types import Failure, FailureKind, Form, Image, Prediction, Request, Sample, TrialKey, Turn
from snellen.data.catalog import Catalog
from snellen.kits.train.made_preferences import (
    CONTRADICTORY,
    CRITERIA,
    PAIRWISE,
    SampledQuestion,
    choose_pair,
    gather_questions,
    plan_pairs,
    plan_points,
    read_pairs,
    read_points,
)
from snellen.scoring.judges.judge_card import read_judge

JUDGES = [read_judge(Catalog().card("judges", name), name) for name in CRITERIA]
PAIR = read_judge(Catalog().card("judges", PAIRWISE), PAIRWISE)
SAMPLE = Sample("s", "t", Form.CHOICE, "What now?", images=(Image("/p/a.png"),), answers=("x",))
MESSAGES = (Turn("user", "What now?", SAMPLE.images),)


def question(*texts: str | None) -> SampledQuestion:
    failure = Failure(FailureKind.SERVER, "gone")
    keys = [TrialKey("t", "s", "order=0", n) for n in range(len(texts))]
    made = [
        Prediction(key, text=text) if text else Prediction(key, failure=failure)
        for key, text in zip(keys, texts, strict=True)
    ]
    return SampledQuestion(0, SAMPLE, Request(keys[0], MESSAGES), tuple(made))


def answer(jobs: list, say: Callable[[str], str]) -> dict[TrialKey, str | None]:  # type: ignore[type-arg]
    """Ask a made-up judge: `say` gets what stands between the fences."""
    votes: dict[TrialKey, str | None] = {}
    for job in jobs:
        for request in job.requests:
            text = request.messages[-1].text
            assert request.messages[-1].images == SAMPLE.images, "a judge of groundedness sees the picture"
            case = re.search(r"Case (\w+)", text)[1]  # type: ignore[index]
            fenced = re.search(r"(=====\[\w+\]=====)\n(.*?)\n\1", text, re.DOTALL)[2]  # type: ignore[index]
            votes[request.key] = json.dumps({"case": case, "verdict": say(fenced)})
    return votes


def test_points_are_the_sum_over_the_criteria_and_a_reply_that_failed_has_none() -> None:
    asked = question("good", "bad", None)
    votes = {}
    for judge in JUDGES:
        votes |= answer(list(plan_points(judge, [asked])), lambda text: "YES" if text == "good" else "PARTLY")
    judged = read_points(JUDGES, asked, votes)
    assert [reply.points for reply in judged.replies] == [3.0, 1.5, None]
    assert judged.replies[2].reason == "the model gave no reply"


def test_a_judge_that_says_nothing_on_one_criterion_leaves_the_reply_without_points() -> None:
    asked = question("one", "two")
    votes = answer(list(plan_points(JUDGES[0], [asked])), lambda _: "YES")
    judged = read_points(JUDGES, asked, votes)
    assert [reply.points for reply in judged.replies] == [None, None]
    assert "the judge gave no verdict" in judged.replies[0].reason


def test_a_judge_that_knows_what_it_wants_ranks_all() -> None:
    asked = question("bb", "a", "ccc")

    def longer(text: str) -> str:
        first, second = re.findall(r"(?:FIRST|SECOND):\n(\w+)", text)
        return "FIRST" if len(first) > len(second) else "SECOND"

    judged = read_pairs(PAIR, asked, answer(list(plan_pairs(PAIR, [asked])), longer))
    assert [reply.points for reply in judged.replies] == [0.0, -2.0, 2.0] and not judged.dropped


def test_a_judge_that_prefers_a_place_contradicts_itself_and_teaches_nothing() -> None:
    asked = question("a", "b", "c")
    judged = read_pairs(PAIR, asked, answer(list(plan_pairs(PAIR, [asked])), lambda _: "FIRST"))
    assert judged.dropped == CONTRADICTORY and choose_pair(judged, 0.25) == CONTRADICTORY


def test_replies_to_different_prompts_are_never_compared() -> None:
    one, two = (Request(TrialKey("t", "s", "base", n), (Turn("user", f"{n}"),)) for n in range(2))
    trials = [(SAMPLE, request, Prediction(request.key, text="x"), 0) for request in (one, two)]
    with pytest.raises(DataError, match="different prompts"):
        list(gather_questions(trials))
