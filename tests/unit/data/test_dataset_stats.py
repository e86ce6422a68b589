"""What a dataset is in figures: counted by hand here, and again for files of any samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run_command
from cure_fixtures import item, write_cure
from snellen.core.types import Form, Image, Sample
from snellen.data.dataset_stats import describe_samples


def test_chains_are_counted_by_item_step_word_and_box(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    items = [item(0, 2), item(1, 3), item(2, 3), {**item(3, 4), "bboxes": item(3, 4)["bboxes"][:1]}]
    items[1]["cot_inference"]["chain"][0]["question"] = "How many are there, and what are they?"
    path = write_cure(tmp_path, items)
    assert run_command(["data", "stats", path, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["samples"], found["chains"], found["steps"]["mean"]) == (16, {"2": 1, "3": 2, "4": 1}, 3.0)
    assert (found["boxes"], found["distinct_pictures"]) == ({"1": 1, "2": 3}, 4)
    assert found["containing"] == {"what": 1.0, "how": 1 / 12, "is": 11 / 12, "are": 1 / 12}
    assert found["beginning"] == {"what": 11 / 12, "how": 1 / 12}, "of the file's own words, not of ours"
    assert run_command(["data", "stats", path]) == 0
    printed = capfd.readouterr().out
    assert "chains: 4, of 3.00 steps on average (2: 1, 3: 2, 4: 1)" in printed
    assert "words that stand in it: what 100.0 %, how 8.3 %" in printed and "boxes of an item: 1: 1, 2: 3" in printed


def test_own_rows_are_counted_and_what_is_no_data_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"question": "Which one?", "options": ["a", "b", "c"], "answer": "A"},
        {"question": "Where is it?", "answer": ["here", "there"]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert run_command(["data", "stats", path, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["options"], found["answers"], found["chains"]) == ({"0": 1, "3": 1}, {"1": 1, "2": 1}, {})
    assert (found["question_words"]["mean"], found["question_words"]["most"]) == (2.5, 3)
    (tmp_path / "notes.md").write_text("no data")
    assert run_command(["data", "stats", tmp_path / "notes.md"]) == 2
    assert "neither a bundle folder nor a data file" in capfd.readouterr().err


@given(
    st.lists(
        st.tuples(st.text(max_size=30), st.lists(st.text("ab", min_size=1, max_size=3), max_size=4), st.integers(0, 3))
    )
)
def test_counts_of_any_samples_add_up(rows: list[tuple[str, list[str], int]]) -> None:
    samples = [
        Sample(str(number), "t", Form.OPEN, question, options=tuple(options), images=(Image("a.png"),) * pictures)
        for number, (question, options, pictures) in enumerate(rows)
    ]
    found = describe_samples(samples)
    for counts in (found.options, found.pictures, found.answers, found.forms):
        assert sum(counts.values()) == found.samples == len(rows)
    assert all(0 < share <= 1 for share in (*found.containing.values(), *found.beginning.values()))
    assert describe_samples(samples[::-1]).containing == found.containing
