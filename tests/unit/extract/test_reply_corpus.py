"""Replies in the style of long answers of real models, labelled by their meaning before any rule read them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snellen.extract.choice import extract_choice

CORPUS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "reply_corpus.jsonl").read_text("utf-8").splitlines()
]


def kept_back(row: dict[str, Any]) -> bool:
    """Whether a reply belongs to the third of the first batch that no rule was written for."""
    return "batch" not in row and int(hashlib.sha256(row["reply"].encode()).hexdigest(), 16) % 3 == 0


def shares(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """The shares of replies read right, and read as a wrong letter."""
    found = [extract_choice(row["reply"], row["options"]).letter for row in rows]
    right = sum(letter == row["label"] for letter, row in zip(found, rows, strict=True))
    wrong = sum(letter not in {None, row["label"]} for letter, row in zip(found, rows, strict=True))
    return right / len(rows), wrong / len(rows)


@pytest.mark.parametrize("part", [False, True], ids=["worked-with", "kept-back"])
def test_the_corpus_is_read(part: bool) -> None:
    right, wrong = shares([row for row in CORPUS if kept_back(row) == part])
    assert right >= 0.96
    assert wrong <= 0.015


def test_the_corpus_is_broad() -> None:
    styles = Counter(row["style"].removesuffix("-made") for row in CORPUS)
    made = sum(row["style"].endswith("-made") for row in CORPUS)
    assert len(CORPUS) >= 600
    assert made <= len(CORPUS) / 2
    assert len(styles) >= 20
    assert sum(row["label"] is None for row in CORPUS) >= 40
    assert sum(len(row["options"]) >= 8 for row in CORPUS) >= 60


def test_labels_are_offered() -> None:
    assert all(row["label"] is None or row["label"] in row["options"] for row in CORPUS)
