"""Cells in the shapes of other people's tables: objects, marked options, row numbers, long paths."""

from __future__ import annotations

from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.data.atlas.row_changes import (
    RowChange,
    changed_rows,
    fields_of,
    last_of,
    nth_of,
    onward_from,
    told_turns,
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
    assert unmarked(value) == options


def test_the_answers_of_annotators_are_taken_out_of_their_objects() -> None:
    assert fields_of([{"answer": "a", "answer_id": 1}, {"answer": "b"}], "answer") == ["a", "b"]
    assert fields_of("[{'answer': 'a'}]", "answer") == ["a"]
    assert fields_of({"answer": ["a", "b"], "answer_id": [1, 2]}, "answer") == ["a", "b"]
    assert fields_of("plain", "answer") == "plain"


def test_a_path_begins_after_its_marker() -> None:
    assert onward_from(["/data/png/1/a.png", "b.png"], "png/") == ["png/1/a.png", "b.png"]


def test_rows_are_counted_in_groups() -> None:
    assert [nth_of(number, 2, 1, 0) for number in (1, 2, 3, "4")] == [0, 0, 1, 1]
    with pytest.raises(DataError, match="no whole number"):
        nth_of("x", 2, 0, 7)


def test_changes_of_a_card_use_them_in_order() -> None:
    changes = [RowChange(set="question_number", of="Index", every=2, modulo=2), RowChange(set="Index", every=4)]
    rows = [row for _, row in changed_rows(changes, iter([(1, {"Index": 3}), (2, {"Index": 4})]))]
    assert rows == [{"Index": 0, "question_number": "1"}, {"Index": 1, "question_number": "0"}]


def test_a_dialogue_becomes_one_text_and_its_last_answer_the_answer() -> None:
    asked, said = ["Which year?", "How much?"], ["2019", "12"]
    assert told_turns(asked, said) == "Question: Which year?\nAnswer: 2019\nQuestion: How much?"
    assert told_turns(["Which year?"], ["2019"]) == "Which year?"
    assert last_of(said) == "12"
    assert last_of("['2019', '12']") == "12"
    assert last_of("12") == "12"


@pytest.mark.parametrize("answer", [None, [], 3])
def test_a_cell_that_has_no_first_member_is_refused_by_its_record(answer: Any) -> None:
    rows = iter([(4, {"answer": answer})])
    with pytest.raises(DataError, match=r"record 4: '\{answer"):
        list(changed_rows([RowChange(set="question", words="{answer[0]}")], rows))
