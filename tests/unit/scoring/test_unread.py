"""The headline is over every question that got a reply: unread is not right, failed is outside, and bounds say so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.counting import is_unread, worth_of
from snellen.core.types import Score, TrialKey
from snellen.scoring.aggregates.means import headline_of
from snellen.scoring.aggregates.summary import summarize
from snellen.scoring.compare.paired import RunSide, compare_pair
from snellen.scoring.run import describe_unread
from snellen.scoring.tables.table import Outcome, ScoreTable
from snellen.scoring.tables.table_builder import ScoreRow, read_tables

UNREAD = ("unparsed", "refused", "truncated", "empty", "ambiguous", "not_offered", "degenerate", "in a plug-in's words")
OUTSIDE = ("no_reference", "harness_error", "the sample has no answer", "left out by the tool", "not judged: nobody")


def row(
    sample: str, value: float | None, reason: str | None = None, *, repeat: int = 0, metric: str = "accuracy"
) -> ScoreRow:
    said = None if value is None else "A" if value else "B"
    return sample, "base", repeat, metric, value, said, "letter", reason


def answered_a_third() -> list[ScoreRow]:
    """Of thirty questions ten are answered, nine of these rightly."""
    return [row(f"q{i:02}", float(i < 9) if i < 10 else None, None if i < 10 else "unparsed") for i in range(30)]


def table_of(rows: list[ScoreRow], **how: Any) -> ScoreTable:
    (table,) = read_tables(rows, **how).values()
    return table


def test_a_model_that_answers_a_third_is_not_better_than_one_that_answers_all() -> None:
    third = headline_of(table_of(answered_a_third()))
    whole = headline_of(table_of([row(f"q{i:02}", float(i < 18)) for i in range(30)]))
    assert third["accuracy"].value == pytest.approx(9 / 30)
    assert third["accuracy"].n == 30
    assert third["accuracy"].unscored == 0
    assert third["accuracy"].value < (whole["accuracy"].value or 0)
    assert third["accuracy"].bounds == pytest.approx((9 / 30, 29 / 30))
    assert third["accuracy"].read is not None
    assert (third["accuracy"].read.value, third["accuracy"].read.n) == (pytest.approx(0.9), 10)
    assert (third["accuracy_read"].value, third["accuracy_read"].n) == (pytest.approx(0.9), 10)
    assert whole["accuracy"].bounds == pytest.approx((0.6, 0.6))


def test_the_interval_is_that_of_a_share_of_all_replies() -> None:
    third = headline_of(table_of(answered_a_third()))["accuracy"]
    same = headline_of(table_of([row(f"q{i:02}", float(i < 9)) for i in range(30)]))["accuracy"]
    assert (third.ci95, third.stderr) == (same.ci95, same.stderr)


def test_a_failed_call_is_outside_and_in_the_bounds() -> None:
    rows = [row("a", 1.0), row("b", 0.0), row("c", None, "refused")]
    table = table_of(rows, trials=[("a", "base", 0, None), ("d", "base", 0, "timeout")])
    found = headline_of(table)["accuracy"]
    assert (found.value, found.n, found.failed) == (pytest.approx(1 / 3), 3, 1)
    assert found.bounds == pytest.approx((1 / 4, 3 / 4))


@pytest.mark.parametrize("reason", UNREAD)
def test_what_speaks_of_the_reply_is_not_right(reason: str) -> None:
    table = table_of([row("a", 1.0), row("b", None, reason)])
    assert headline_of(table)["accuracy"].value == pytest.approx(0.5)
    assert worth_of(Score(TrialKey("t", "b"), "accuracy", None, reason=reason)) == 0.0


@pytest.mark.parametrize("reason", OUTSIDE)
def test_what_nobody_can_judge_is_outside(reason: str) -> None:
    table = table_of([row("a", 1.0), row("b", None, reason)])
    found = headline_of(table)["accuracy"]
    assert (found.value, found.n, found.unscored, found.bounds) == (1.0, 1, 1, (1.0, 1.0))
    assert table.outcome.tolist() == [Outcome.RIGHT, Outcome.UNJUDGED]
    assert not is_unread(reason)


def test_of_an_error_the_unread_is_the_whole_and_of_pixels_it_is_outside() -> None:
    rows = [row("a", 0.2, metric="wer"), row("b", None, "truncated", metric="wer")]
    found = headline_of(table_of(rows))["wer"]
    assert (found.value, found.bounds) == (pytest.approx(0.6), pytest.approx((0.1, 0.6)))
    rows = [row("a", 12.0, metric="acuity_px"), row("b", None, "truncated", metric="acuity_px")]
    found = headline_of(table_of(rows))["acuity_px"]
    assert (found.value, found.n, found.unscored, found.bounds) == (12.0, 1, 1, None)


def test_groups_count_as_the_whole_does() -> None:
    samples = [(f"q{i:02}", None, {"topic": "x" if i % 2 else "y"}) for i in range(30)]
    result = summarize(read_tables(answered_a_third(), samples=samples), group_by=["topic"])
    parts = result["groups"]["topic"]
    assert sum(part["accuracy"]["n"] for part in parts.values()) == 30
    assert parts["x"]["accuracy"]["value"] == pytest.approx(4 / 15)
    assert parts["x"]["accuracy"]["read"] == {"value": pytest.approx(0.8), "n": 5}
    assert parts["y"]["accuracy"]["bounds"] == pytest.approx([5 / 15, 15 / 15])
    assert result["metrics"]["accuracy_macro_topic"]["value"] == pytest.approx(9 / 30)


@given(st.lists(st.lists(st.sampled_from((1.0, 0.0, None, "failed")), min_size=5, max_size=5), min_size=1, max_size=12))
def test_pass_at_k_never_falls_as_k_grows(questions: list[list[Any]]) -> None:
    cells = [(f"q{i}", n, said) for i, replies in enumerate(questions) for n, said in enumerate(replies)]
    rows = [
        row(name, said, None if said is not None else "unparsed", repeat=n)
        for name, n, said in cells
        if said != "failed"
    ]
    trials = [(name, "base", n, "timeout" if said == "failed" else None) for name, n, said in cells]
    metrics = summarize(read_tables(rows, trials, metrics=["accuracy"]))["metrics"]
    values = [metrics[f"pass@{k}"] for k in (2, 3, 4, 5) if f"pass@{k}" in metrics]
    known = [one["value"] for one in values if one["value"] is not None]
    assert known == sorted(known)
    for one in values:
        assert one["value"] is None or one["failed"] or one["unscored"] or one["bounds"][0] - 1e-9 <= one["value"]


def test_a_question_with_an_unread_reply_keeps_its_right_one() -> None:
    rows = [row("a", 1.0), row("a", None, "unparsed", repeat=1), row("b", 0.0), row("b", 0.0, repeat=1)]
    metrics = summarize(read_tables(rows))["metrics"]
    assert (metrics["pass@2"]["value"], metrics["pass@2"]["n"]) == (0.5, 2)
    assert metrics["pass@2"]["bounds"] == [0.5, 0.5]
    assert (metrics["pass^2"]["value"], metrics["pass^2"]["bounds"]) == (0.0, [0.0, 0.5])
    assert metrics["accuracy_majority"]["value"] == 0.5, "the one vote of a question wins"
    assert metrics["cons@2"]["value"] == 0.5


def test_a_question_whose_every_reply_is_unread_is_not_right_by_any_vote() -> None:
    rows = [row("a", None, "empty", repeat=n) for n in range(2)] + [row("b", 1.0, repeat=n) for n in range(2)]
    metrics = summarize(read_tables(rows))["metrics"]
    assert [metrics[name]["value"] for name in ("accuracy_majority", "cons@2", "pass@2")] == [0.5] * 3


def test_chains_count_an_unread_step_as_wrong() -> None:
    samples = [
        (f"{chain}{step}", chain, {"role": "step" if step else "inference", "step": step, "steps": 1})
        for chain in "ab"
        for step in (0, 1)
    ]
    rows = [row("a0", 1.0), row("a1", 1.0), row("b0", 1.0), row("b1", None, "unparsed")]
    metrics = summarize(read_tables(rows, samples=samples))["metrics"]
    assert [metrics[name]["value"] for name in ("Rh", "Rcot", "Ro")] == [1.0, 0.5, 0.5]
    assert metrics["Rcot"]["bounds"] == [0.5, 1.0]
    assert metrics["Rcot"]["read"] == {"value": 1.0, "n": 1}
    assert metrics["Rcot_read"]["value"] == 1.0


def test_compare_counts_as_the_headlines_do() -> None:
    third, whole = table_of(answered_a_third()), table_of([row(f"q{i:02}", float(i < 18)) for i in range(30)])
    one = compare_pair(RunSide("third", third), RunSide("whole", whole))
    assert (one.first_value, one.second_value, one.paired) == (pytest.approx(0.3), pytest.approx(0.6), 30)
    assert (one.not_scored, one.outside) == ((20, 0), (0, 0))
    read = compare_pair(RunSide("third", third), RunSide("whole", whole), scored_only=True)
    assert (read.first_value, read.paired) == (pytest.approx(0.9), 10)


def test_compare_leaves_failed_calls_out_of_both() -> None:
    lost = table_of([row("a", 1.0)], trials=[("a", "base", 0, None), ("b", "base", 0, "timeout")])
    one = compare_pair(RunSide("lost", lost), RunSide("kept", table_of([row("a", 1.0), row("b", 1.0)])))
    assert (one.paired, one.first_value, one.second_value, one.outside) == (1, 1.0, 1.0, (1, 0))


def test_more_than_five_in_a_hundred_unread_are_told_with_a_next_step() -> None:
    few = table_of([row(f"q{i}", 1.0) for i in range(95)] + [row(f"u{i}", None, "unparsed") for i in range(5)])
    assert describe_unread(few) is None
    many = table_of([row(f"q{i}", 1.0) for i in range(94)] + [row(f"u{i}", None, "truncated") for i in range(6)])
    told = describe_unread(many)
    assert told is not None
    assert (told["n"], told["replies"], told["reasons"]) == (6, 100, {"truncated": 6})
    assert "--max-tokens" in told["next"]
