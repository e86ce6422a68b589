"""Long replies in many languages, labelled before any rule read them; a third was kept back from whoever wrote the rules."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from snellen.extract.choice import extract_choice

REPLIES = Path(__file__).resolve().parents[2] / "golden" / "data" / "extraction" / "replies.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in REPLIES.read_text("utf-8").splitlines()]


def unseen(row: dict[str, Any]) -> bool:
    """Whether a reply belongs to the third of the first batch by which the rules were judged once."""
    return "batch" not in row and int(hashlib.sha256(row["reply"].encode()).hexdigest(), 16) % 3 == 0


@pytest.mark.parametrize("part", [False, True], ids=["worked-with", "kept-back"])
def test_fresh_replies_are_read(part: bool) -> None:
    rows = [row for row in ROWS if unseen(row) == part]
    found = [extract_choice(row["reply"], row["options"]).letter for row in rows]
    right = sum(letter == row["label"] for letter, row in zip(found, rows, strict=True))
    wrong = sum(letter not in {None, row["label"]} for letter, row in zip(found, rows, strict=True))
    assert right / len(rows) >= 0.96
    assert wrong / len(rows) <= 0.015


def test_the_replies_are_many_and_broad() -> None:
    assert len(ROWS) >= 300
    assert len({row["style"] for row in ROWS}) >= 40
    assert sum(row["label"] is None for row in ROWS) >= 30
    assert all(row["label"] is None or row["label"] in row["options"] for row in ROWS)
    assert 90 <= sum(map(unseen, ROWS)) <= 130


@pytest.mark.parametrize(("kept", "least_right", "most_wrong"), [(False, 0.97, 0), (True, 0.9, 3)])
def test_replies_around_the_causes_of_misses_are_read(kept: bool, least_right: float, most_wrong: int) -> None:
    lines = (REPLIES.parent / "causes-5.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("kept", False) == kept]
    found = [extract_choice(row["reply"], row["options"]).letter for row in rows]
    right = sum(letter == row["label"] for letter, row in zip(found, rows, strict=True))
    assert len(rows) >= 40
    assert right / len(rows) >= least_right
    assert sum(letter not in {None, row["label"]} for letter, row in zip(found, rows, strict=True)) <= most_wrong
