"""Profiles read as the other harnesses do, faults included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.core.errors import UsageError
from snellen.extract.choice import extract_choice
from snellen.extract.profiles import PROFILES, flageval_capitals, parse_vqa_scripts, profile_named, reform_index

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "data"
COLOURS = {"A": "red", "B": "blue", "C": "green", "D": "yellow"}


@pytest.mark.parametrize(
    ("profile", "response", "letter"),
    [
        ("reform", "(B)", "B"),
        ("reform", "so (b) it is, not (A)", "B"),
        ("reform", "(2)", "B"),
        ("reform", "B", None),
        ("reform", "cat(s) (A)", None),
        ("reform", "(E)", None),
        ("vqa-scripts", "A dog. The answer is B", "A"),
        ("vqa-scripts", "Because of it", "B"),
        ("vqa-scripts", "answerC", "C"),
        ("longbench-official", "The correct answer is (C)", "C"),
        ("longbench-official", "**The correct answer is D**", "D"),
        ("longbench-official", "the answer is (C)", None),
        ("flageval", "Answer: B", "B"),
        ("flageval", "Option B", None),
        ("flageval", "answer: b", None),
        ("flageval", "b", "B"),
        ("aisbench", "<think>A</think>ANSWER: C", "C"),
        ("aisbench", "答案是D", "D"),
        ("aisbench", "none", None),
    ],
)
def test_profile_reads(profile: str, response: str, letter: str | None) -> None:
    found = extract_choice(response, COLOURS, profile=profile)
    assert found.letter == letter
    assert (found.reason is None) == (letter is not None)


def test_reform_counts_a_mark_not_offered_as_a_format_hit() -> None:
    reform = PROFILES["reform"]
    assert reform.hit("(E)", "ABCD")
    assert not reform.hit("E", "ABCD")
    assert reform.read("(E)", "ABCD").reason == "not_offered"


def test_unknown_profile_says_what_is_near() -> None:
    with pytest.raises(UsageError, match="did you mean 'reform'"):
        profile_named("refrom")


def test_reform_golden() -> None:
    rows = json.loads((GOLDEN / "reform" / "fn_singlechoice_metric.json").read_text("utf-8"))["rows"]
    for row in (row for row in rows if "ok" in row["out"]):
        index = reform_index(row["prediction"], row["alphabet"], row["options"])
        assert [int(index == int(row["answer"])), index] == row["out"]["ok"], row


def test_flageval_golden() -> None:
    rows = json.loads((GOLDEN / "flageval" / "head__table_multiple_choice_extraction.json").read_text("utf-8"))["rows"]
    for row in (row for row in rows if isinstance(row["input"], str)):
        found = PROFILES["flageval"].parse(row["input"])
        assert (found[0] if found else "") == row["choice_kept"], row
        if len(row["input"]) > 1:
            assert flageval_capitals(row["input"])[:1] == row["choice_kept"], row


def test_vqa_scripts_golden() -> None:
    """The scripts' own code read these replies: capitals first, without what comes before `</think>`."""
    for row in json.loads((GOLDEN / "extraction" / "vqa_scripts.json").read_text("utf-8")):
        found = parse_vqa_scripts(row["response"])
        assert (found[0] if found else None) == row["answer"], row
        if found and found[1]:
            assert row["response"][slice(*found[1])].upper() == found[0]
