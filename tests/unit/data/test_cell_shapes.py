"""Cells in the shapes of other people's tables: objects, marked options, row numbers, long paths."""

from __future__ import annotations

from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.data.atlas.row_changes import (
    RowChange,
    changed_rows,
    dialogue,
    group,
    last,
    marked_options,
    members,
    onward,
    unmarked,
)


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (["(A) cat", "(B) dog"], ["cat", "dog"]),
        (["A. cat", "B. dog"], ["cat", "dog"]),
        ("['A. cat', 'B. dog']", ["cat", "dog"]),
        (["cat", "dog"], ["cat", "dog"]),
        (["(A) cat", "dog"], ["(A) cat", "dog"]),
        (["B. cat", "A. dog"], ["B. cat", "A. dog"]),
        ("(a) Open (b) Closed", ["Open", "Closed"]),
        ("A. cat; B. dog; C. cow", ["cat", "dog", "cow"]),
        ("no marks here", None),
    ],
)
def test_options_lose_their_letters(value: Any, options: list[str] | None) -> None:
    assert unmarked(value, {}) == options


def test_the_answers_of_annotators_are_taken_out_of_their_objects() -> None:
    assert members([{"answer": "a", "answer_id": 1}, {"answer": "b"}], {}, key="answer") == ["a", "b"]
    assert members("[{'answer': 'a'}]", {}, key="answer") == ["a"]
    assert members({"answer": ["a", "b"], "answer_id": [1, 2]}, {}, key="answer") == ["a", "b"]
    assert members("plain", {}, key="answer") == "plain"


def test_a_path_begins_after_its_marker() -> None:
    assert onward(["/data/png/1/a.png", "b.png"], {}, marker="png/") == ["png/1/a.png", "b.png"]


def test_rows_are_counted_in_groups() -> None:
    assert [group(number, {}, size=2, first=1) for number in (1, 2, 3, "4")] == [0, 0, 1, 1]
    with pytest.raises(DataError, match="no whole number"):
        group("x", {}, size=2)


def test_changes_of_a_card_use_them_in_order() -> None:
    changes = [
        RowChange(set="question_number", of="Index", by="group", using={"size": 2}),
        RowChange(set="question_number", by="remainder", using={"of": 2}),
        RowChange(set="Index", by="group", using={"size": 4}),
    ]
    rows = [row for _, row in changed_rows(changes, iter([(1, {"Index": 3}), (2, {"Index": 4})]))]
    assert rows == [{"Index": 0, "question_number": "1"}, {"Index": 1, "question_number": "0"}]


def test_a_dialogue_becomes_one_text_and_its_last_answer_the_answer() -> None:
    asked, said = ["Which year?", "How much?"], ["2019", "12"]
    assert dialogue(asked, {"a": said}, answers="a") == "Question: Which year?\nAnswer: 2019\nQuestion: How much?"
    assert dialogue(["Which year?"], {"a": ["2019"]}, answers="a") == "Which year?"
    assert last(said, {}) == "12"
    assert last("['2019', '12']", {}) == "12"
    assert last("12", {}) == "12"


@pytest.mark.parametrize("answer", [None, [], 3])
def test_a_cell_that_has_no_first_member_is_refused_by_its_record(answer: Any) -> None:
    rows = iter([(4, {"answer": answer})])
    with pytest.raises(DataError, match=r"record 4: '\{answer"):
        list(changed_rows([RowChange(set="question", words="{answer[0]}")], rows))


def test_options_of_a_text_fill_an_empty_column_and_keep_what_a_row_has() -> None:
    change = [RowChange("options", of="question", by="marked_options")]
    question = "Which?\nA. red\nB. blue"
    own = [{"question": question}, {"question": question, "options": ["x"]}, {"question": question, "A": "y"}]
    found = [row.get("options") for _, row in changed_rows(change, iter(enumerate(own)))]
    assert found == [["red", "blue"], ["x"], None]
    assert marked_options("nothing marked", {}) is None
