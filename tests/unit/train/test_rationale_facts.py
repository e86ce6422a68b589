"""What a rationale is worth: facts in order, an answer that is right, and nothing for an answer without a reason."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.kits.train.rationale_facts import facts_stated, is_reasoned, rationale_reward, score

GOOD = "the circle is blue . the square is red . blue red gives lions . answer rome"


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        (GOOD, 1.0),
        ("the circle is red . the square is blue .", 0.5),
        ("Blue! Then, RED.", 1.0),
        ("bluered", 0.0),
        ("", 0.0),
    ],
)
def test_facts_are_found_as_words_in_order(reply: str, share: float) -> None:
    assert facts_stated(reply, ["blue", "red"]) == share


def test_a_fact_of_several_words_stands_together() -> None:
    assert facts_stated("a dog on the old roof sleeps", ["on the old roof"]) == 1.0
    assert facts_stated("on a roof that is the old one", ["on the old roof"]) == 0.0


@pytest.mark.parametrize(
    ("reply", "reasoned"),
    [
        (GOOD, True),
        ("rome", False),
        ("Answer: B. the big red house", False),
        ("I see a dog. So it is a park.", True),
        ("图中有一只黑色的大狗。所以这是一个公园里面。", True),
    ],
)
def test_an_answer_alone_is_no_rationale(reply: str, reasoned: bool) -> None:
    assert is_reasoned(reply) is reasoned


def test_the_reward_is_right_answer_and_facts_and_none_without_a_rationale() -> None:
    options, answers = ["paris", "rome"], ["rome"]
    assert rationale_reward(GOOD, ["blue", "red"], options, answers) == 2.0
    assert rationale_reward(GOOD.replace("rome", "paris"), ["blue", "red"], options, answers) == 1.0
    assert rationale_reward("rome", ["blue", "red"], options, answers) == 0.0
    assert rationale_reward("rome", [], options, answers) == 1.0, "a step has no facts: its answer is all"


def test_the_scorer_says_why_it_has_no_value() -> None:
    key = TrialKey("t", "s")
    sample = Sample("s", "t", Form.CHOICE, "?", meta={"facts": ["blue", "green"]})
    (found,) = score(sample, Request(key, ()), Prediction(key, text=GOOD), {})
    assert (found.metric, found.value, found.detail) == ("rationale_facts", 0.5, {"reasoned": True})
    (none,) = score(Sample("s", "t", Form.CHOICE, "?"), Request(key, ()), Prediction(key, text=GOOD), {})
    assert none.value is None and none.reason
