"""Every labelled reply of the repository is read, hardly ever wrongly: the figures that docs/extraction.md gives for them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.other_kinds import extract_choices, extract_yesno

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "golden" / "data" / "extraction"
CORPUS = HERE / "reply_corpus.jsonl"
FILES = {
    "reply_corpus": (0.985, 3),
    "replies": (0.955, 2),
    "replies-5": (0.82, 2),
    "causes-5": (0.82, 1),
    "examination": (0.92, 2),
    "examination-2": (0.975, 1),
    "examination-3": (0.965, 0),
    "examination-4": (0.925, 2),
    "examination-5": (0.975, 1),
    "examination-6": (0.98, 0),
    "examination-7": (0.98, 0),
    "examination-8": (0.99, 0),
    "examination-9": (0.975, 0),
    "examination-10": (0.86, 1),
    "examination-11": (0.98, 0),
    "examination-12": (0.92, 0),
    "examination-13": (0.93, 0),
}
"""By file: the least share read right, and how many may be read as a wrong letter at most."""


def rows_of(name: str) -> list[dict[str, Any]]:
    path = CORPUS if name == CORPUS.stem else GOLDEN / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read(row: dict[str, Any]) -> str | None:
    """Read a reply as its question is asked: for one option, for all that are right, or for yes or no."""
    if row.get("form") == "yesno":
        return extract_yesno(row["reply"], finish=row.get("finish")).letter
    if row.get("form") == "several":
        return ",".join(sorted(extract_choices(row["reply"], row["options"]).letters)) or None
    return extract_choice(row["reply"], row["options"], finish=row.get("finish")).letter


@pytest.mark.parametrize("name", FILES)
def test_labelled_replies_are_read_hardly_ever_wrongly(name: str) -> None:
    rows = rows_of(name)
    found = [read(row) for row in rows]
    least_right, most_wrong = FILES[name]
    right = sum(letter == row["label"] for letter, row in zip(found, rows, strict=True))
    wrong = [row["reply"] for letter, row in zip(found, rows, strict=True) if letter not in {None, row["label"]}]
    assert right / len(rows) >= least_right
    assert len(wrong) <= most_wrong, wrong


def test_the_corpus_is_broad() -> None:
    rows = rows_of(CORPUS.stem)
    styles = Counter(row["style"].removesuffix("-made") for row in rows)
    assert len(rows) >= 600
    assert sum(row["style"].endswith("-made") for row in rows) <= len(rows) / 2
    assert len(styles) >= 20
    assert sum(row["label"] is None for row in rows) >= 40
    assert sum(len(row["options"]) >= 8 for row in rows) >= 60
    assert all(row["label"] is None or row["label"] in row["options"] for row in rows)
