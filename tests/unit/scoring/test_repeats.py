"""Several inferences: votes, pass@k, and what missing ones do."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.scoring.aggregates.repeats import aggregate, pass_all_k, pass_at_k, run_spread, win_chances
from snellen.scoring.tables.table import ScoreTable
from snellen.scoring.tables.table_builder import read_tables


def table_of(answers: dict[str, list[str | None]], right: str = "A") -> ScoreTable:
    """Make a table from the answers of every question; None is a failed inference."""
    rows: Any = [
        (name, "base", r, "accuracy", float(answer == right), answer, None, None)
        for name, given_answers in answers.items()
        for r, answer in enumerate(given_answers)
        if answer is not None
    ]
    failed: Any = [
        (name, "base", r, "timeout")
        for name, found in answers.items()
        for r, answer in enumerate(found)
        if answer is None
    ]
    return read_tables(rows, failed, metrics=["accuracy"])["accuracy"]


@given(st.integers(1, 9), st.data())
def test_pass_at_k_is_the_share_of_draws(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(combinations([1] * right + [0] * (n - right), k))
    counts = np.array([right]), np.array([n])
    assert pass_at_k(*counts, k)[0] == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_all_k(*counts, k)[0] == pytest.approx(sum(map(all, draws)) / len(draws))


def test_pass_at_k_of_many_trials_does_not_overflow() -> None:
    assert pass_at_k(np.array([1]), np.array([10_000]), 100)[0] == pytest.approx(0.01)
    assert math.isnan(pass_at_k(np.array([1]), np.array([3]), 4)[0])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_vote_chances_equal_all_draws_in_all_tie_breaks(counts: list[int], data: st.DataObject) -> None:
    votes = data.draw(st.integers(1, sum(counts)))
    wins = [Fraction(0)] * len(counts)
    ballots = [i for i, count in enumerate(counts) for _ in range(count)]
    draws = list(combinations(ballots, votes))
    for draw in draws:
        tally = Counter(draw)
        tied = [i for i, count in tally.items() if count == max(tally.values())]
        for winner in tied:
            wins[winner] += Fraction(1, len(tied))
    assert win_chances(tuple(counts), votes) == pytest.approx([*(float(win / len(draws)) for win in wins), 0.0])
    assert sum(win_chances(tuple(counts), votes)) == pytest.approx(1.0)


def test_majority_and_its_tie() -> None:
    estimates = aggregate(table_of({"q": ["B", "A", "A", "B"]}))
    assert estimates["accuracy_majority"].value == 0.0, "a tie goes to the answer given first"
    assert estimates["cons@4"].value == pytest.approx(0.5), "over all orders the tie is shared"
    assert aggregate(table_of({"q": ["A", "B", "B", "A"]}))["accuracy_majority"].value == 1.0


def test_vote_of_wrong_answers_that_differ() -> None:
    estimates = aggregate(table_of({"q": ["A", "A", "B", "C", "D"]}))
    assert estimates["accuracy_majority"].value == 1.0, "two of five win when the others disagree"


def test_missing_inferences_shift_nothing() -> None:
    whole = aggregate(table_of({"a": ["A", "A"], "b": ["B", "B"], "c": ["A", "B"]}))
    holes = aggregate(table_of({"a": [None, "A", "A"], "b": ["B", None, "B"], "c": ["A", "B", None]}))
    for name in ("accuracy", "accuracy_majority", "pass@2", "answer_entropy", "flip_rate"):
        assert holes[name].value == whole[name].value
    assert holes["accuracy"].failed == 3
    assert aggregate(table_of({"a": ["A", None], "b": ["A", "B"]}))["pass@2"].unscored == 1


def test_entropy_and_flip_rate_by_hand() -> None:
    estimates = aggregate(table_of({"a": ["A", "A", "B"], "b": ["B", "B", "B"]}))
    entropy = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert estimates["answer_entropy"].value == pytest.approx(entropy / 2)
    assert estimates["flip_rate"].value == pytest.approx((2 / 3) / 2)


def test_spread_of_runs() -> None:
    table = table_of({"a": ["A", "B"], "b": ["A", "B"], "c": ["A", "A"], "d": ["B", "A"]})
    estimate = run_spread(table)
    assert estimate.value == pytest.approx(np.std([0.75, 0.5], ddof=1))
    assert estimate.n == 2
    assert run_spread(table_of({"a": ["A"]})).value is None


def test_fractional_values_have_no_pass_unless_a_bar_is_named() -> None:
    rows: Any = [("q", "base", r, "anls", value, str(value), None, None) for r, value in enumerate((0.4, 0.8))]
    table = read_tables(rows)["anls"]
    assert "pass@2" not in aggregate(table)
    assert aggregate(table, {"correct_at": 0.5, "k": [1, 2]})["pass@1"].value == pytest.approx(0.5)


def test_error_is_clustered_by_question() -> None:
    lucky = {f"q{i}": ["A" if i % 2 else "B"] * 8 for i in range(40)}
    estimates = aggregate(table_of(lucky))
    assert estimates["accuracy"].stderr == pytest.approx(math.sqrt(0.25 / 39), rel=1e-6), (
        "eight equal inferences are one piece of evidence"
    )
    assert estimates["accuracy_micro"].stderr == pytest.approx(estimates["accuracy"].stderr)


def test_repeats_within_variants() -> None:
    rows: Any = [
        ("q", variant, r, "accuracy", float(variant == "base"), "A" if variant == "base" else "B", None, None)
        for variant, r in product(("base", "wording=1"), range(3))
    ]
    estimates = aggregate(read_tables(rows)["accuracy"])
    assert estimates["answer_entropy"].value == 0.0, "an answer that only follows the wording is not sampling noise"
    assert estimates["pass@3"].value == pytest.approx(0.5)


@pytest.mark.parametrize(("rule", "majority", "flips"), [("whole", 1.0, 4 / 6), ("rule", 0.0, 5 / 6)])
def test_an_answer_in_words_is_one_vote_however_it_is_spelt(rule: str, majority: float, flips: float) -> None:
    """Paris and paris. are two votes for one city, Rome and ROME are none for another; options are told apart."""
    said = ["Paris", "paris.", "Rome", "Rome"]
    rows: Any = [
        ("q", "base", r, "exact_match", float(text.lower().startswith("p")), text, rule, None)
        for r, text in enumerate(said)
    ]
    trials: Any = [("q", "base", r, None) for r in range(4)]
    found = aggregate(read_tables(rows, trials)["exact_match"])
    assert found["exact_match_majority"].value == majority
    assert found["flip_rate"].value == pytest.approx(flips)
