"""The table of replies with the letter a careful person reads: own wording, every category, and the published golden beside the project."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snellen.extract.choice import extract_choice, read
from snellen.extract.option_set import option_set

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "extraction_cases.json").read_text("utf-8"))
"""Cases marked `missed` are read as nothing, where a person reads a letter: the price of never taking a stray capital for an answer."""
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "data" / "extraction" / "cases.json"


def tally(cases: list[dict[str, Any]]) -> tuple[int, list[str]]:
    right, wrong = 0, []
    for case in cases:
        letter = extract_choice(case["response"], case["options"], finish=case.get("finish")).letter
        right += letter == case["gold"]
        if letter is not None and letter != case["gold"]:
            wrong.append(case["response"])
    return right, wrong


@pytest.mark.parametrize("category", sorted({case["category"] for case in CASES}))
def test_own_cases(category: str) -> None:
    wrong = []
    for case in (case for case in CASES if case["category"] == category):
        found = extract_choice(case["response"], case["options"], finish=case.get("finish"))
        expected = None if case.get("missed") else case["gold"]
        if found.letter != expected:
            wrong.append((case["response"], expected, found))
    assert not wrong


def test_own_table_is_broad() -> None:
    counts = Counter(case["category"] for case in CASES)
    assert len(CASES) >= 2500
    assert len(counts) >= 20
    assert sum(case["gold"] is None for case in CASES) >= 400
    assert sum(case.get("missed", False) for case in CASES) <= 0.01 * len(CASES)


def test_golden_table() -> None:
    cases = json.loads(GOLDEN.read_text("utf-8"))
    right, wrong = tally(cases)
    assert right >= 0.97 * len(cases)
    assert len(wrong) <= 0.01 * len(cases), wrong


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "empty"),
        ("...", "empty"),
        ("<think>hm</think>", "empty"),
        ("<think>The answer is B", "truncated"),
        ("The best answer is (", "truncated"),
        ("I'm sorry, I can't help with that.", "refused"),
        ("B or C", "ambiguous"),
        ("The answer is either A or D.", "ambiguous"),
        ("B " * 40, "degenerate"),
        ("Error code: 500 - {'error': 'A'}", "harness_error"),
        ("The answer is F.", "not_offered"),
        ("It is orange.", "unparsed"),
    ],
)
def test_reason(response: str, reason: str) -> None:
    found = extract_choice(response, {"A": "red", "B": "blue", "C": "green", "D": "yellow"})
    assert (found.letter, found.reason) == (None, reason)


@pytest.mark.parametrize(
    ("response", "rule", "part"),
    [
        ("B", "whole", "B"),
        ("Surely: \\boxed{C}", "boxed", "C"),
        ("<answer> D </answer>", "tag", " D "),
        ('{"why": "A is dark", "answer": "b"}', "json", '"b"'),
        ("After all that, the answer is (C).", "cue", "C"),
        ("The answer is blue.", "cue_text", "blue"),
        ("<think>A? D?</think> Looking closely, the answer is C.", "cue", "C"),
        ("It seems dark.\n\nD", "last_line", "D"),
        ("D\n\nIt seems dark.", "first_line", "D"),
        ("B: The sky", "leading", "B"),
        ("The answer is A. Wait, it's C.", "self_correction", "C"),
        ("Hence B.", "affirmed", "B"),
        ("The sky is blue", "option_text", "blue"),
        ("I take the second option", "ordinal", "second option"),
        ("Not A. Not C. Not D.", "elimination", "D"),
    ],
)
def test_rule_and_span(response: str, rule: str, part: str) -> None:
    found = extract_choice(response, {"A": "red", "B": "blue", "C": "green", "D": "yellow"})
    assert found.rule == rule
    assert found.span is not None
    assert response[found.span[0] : found.span[1]] == part


def test_finish_length_needs_a_clear_answer() -> None:
    options = ["red", "blue"]
    assert extract_choice("Looking at A we see", options, finish="length").reason == "truncated"
    assert extract_choice("B", options, finish="length").letter == "B"
    assert extract_choice("The answer is B because", options, finish="length").letter == "B"


def test_marks_of_other_styles() -> None:
    many = [f"thing {i}" for i in range(30)]
    assert extract_choice("The answer is AB.", many).letter == "AB"
    assert extract_choice("(iii)", {"i": "x1", "ii": "x2", "iii": "x3"}).letter == "iii"
    assert extract_choice("b", {"a": "oak", "b": "elm"}).letter == "b"
    assert extract_choice("2", {"1": "oak", "2": "elm"}).letter == "2"


def test_fast_table_says_what_the_rules_say() -> None:
    options = option_set({"A": "red", "B": "blue", "C": "green", "D": "yellow"})
    for reply, verdict in options.whole.items():
        assert read(options, reply + " ") == verdict, reply
