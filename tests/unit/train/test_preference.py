"""Judged replies become a preference or a counted reason: ties, circles and replies without a verdict teach nothing."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Request, Sample, TrialKey, Turn
from snellen.kits.train.chains import Chain
from snellen.kits.train.made_preferences import (
    CLOSE,
    CONTRADICTORY,
    FEW,
    SAME,
    TIED,
    JudgedReply,
    JudgedSample,
    anchor_pair,
    choose_pair,
    control_chains,
    rank_pairs,
)

REQUEST = Request(TrialKey("t", "s"), (Turn("user", "which?"),), marks=("A", "B", "C"), shown=("cat", "dog", "cow"))


def judged(*points: float | None, facts: list[str] | None = None, texts: list[str] | None = None) -> JudgedSample:
    sample = Sample("s", "t", Form.CHOICE, "which?", options=("cat", "dog", "cow"), answers=("dog",),
                    meta={"facts": facts} if facts else {})  # fmt: skip
    names = texts or [f"reply {n}" for n in range(len(points))]
    return JudgedSample(sample, REQUEST, tuple(JudgedReply(*pair) for pair in zip(names, points, strict=True)))


def test_the_best_stands_against_the_worst() -> None:
    pair = choose_pair(judged(0.5, 2.0, 0.0), 0.25)
    assert isinstance(pair, Chain)
    assert (pair.reply, pair.rejected, pair.turns) == ("reply 1", "reply 2", REQUEST.messages)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (judged(1.0, 1.0), TIED),
        (judged(1.0, 0.9), CLOSE),
        (judged(1.0, None), FEW),
        (judged(1.0, 0.0, texts=["same", "same"]), SAME),
    ],
)
def test_what_says_nothing_has_a_reason(sample: JudgedSample, reason: str) -> None:
    assert choose_pair(sample, 0.25) == reason
    assert list(control_chains(sample, 0.25)) == []


def test_control_marks_what_is_above_the_mean_good_and_leaves_the_mean_out() -> None:
    chains = list(control_chains(judged(2.0, 0.0, 1.0), 0.25))
    assert [(chain.reply, chain.good) for chain in chains] == [("reply 0", True), ("reply 1", False)]


@pytest.mark.parametrize(
    ("reply", "wrong"), [("dog", {"cat", "cow"}), ("Answer: B. dog", {"Answer: A. cat", "Answer: C. cow"})]
)
def test_an_anchor_names_another_option_and_its_mark(reply: str, wrong: set[str]) -> None:
    anchor = anchor_pair(judged(1.0, 1.0, texts=[reply, reply]), seed=3)
    assert anchor is not None and anchor.reply == reply and anchor.rejected in wrong


def test_rationales_and_wrong_answers_are_no_anchors() -> None:
    assert anchor_pair(judged(1.0, 1.0, facts=["a"]), seed=3) is None
    assert anchor_pair(judged(0.0, 0.0), seed=3) is None


def test_a_circle_is_contradictory() -> None:
    wins, reason = rank_pairs(3, [(0, 1, 0), (1, 2, 1), (0, 2, 2)])
    assert reason == CONTRADICTORY and wins == [0.0, 0.0, 0.0]


def test_no_winner_at_all_is_a_tie() -> None:
    assert rank_pairs(3, [(0, 1, None), (0, 2, None), (1, 2, None)]) == ([None] * 3, TIED)


@given(st.permutations(range(5)))
def test_a_judge_with_an_order_in_mind_is_understood(order: list[int]) -> None:
    verdicts = [(a, b, min(a, b, key=order.index)) for a, b in combinations(range(5), 2)]
    wins, reason = rank_pairs(5, verdicts)
    assert reason == ""
    assert sorted(range(5), key=lambda one: -(wins[one] or 0)) == list(order)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()).filter(lambda v: v[0] != v[1]), max_size=8)
)
def test_net_wins_add_up_to_nothing(raw: list[tuple[int, int, bool]]) -> None:
    wins, _ = rank_pairs(4, [(a, b, a if first else b) for a, b, first in raw])
    assert sum(value or 0 for value in wins) == 0
