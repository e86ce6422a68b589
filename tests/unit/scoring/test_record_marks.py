"""How the options of outside predictions were marked: scoring.outside.record_marks, and what `snellen score` says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from command_line import run_command
from snellen.core.errors import UsageError
from snellen.scoring.outside.predictions import score_predictions
from snellen.scoring.outside.record_marks import OPTION_MARKS

FRUIT = ["apple", "pear", "plum"]


def record(prediction: str, options: list[str] | None = None, answer: int = 1, **more: Any) -> dict[str, Any]:
    return {"sample_id": 1, "answer": answer, "answer_options": options or FRUIT, "prediction": prediction, **more}


def value_of(*records: dict[str, Any], **options: Any) -> float | None:
    numbered = [{**each, "sample_id": place} for place, each in enumerate(records)]
    return score_predictions(numbered, "SingleChoice", **options).metrics["accuracy"].read.value


@pytest.mark.parametrize(
    "reply", ["(2)", "(2) pear", "The answer is (2).", "2", "2.", "[2]", "(B)", "(b) pear", "pear"]
)
def test_numbers_and_letters_are_read_alike(reply: str) -> None:
    assert value_of(record(reply)) == 1.0
    assert value_of(record(reply, answer=0)) == 0.0


def test_a_number_no_option_has_is_unread() -> None:
    assert value_of(record("(9)")) is None


def test_several_numbers_are_a_working_and_not_a_label() -> None:
    assert value_of(record("First (1) it is round, then (3) it is red.")) is None


def test_numbers_among_numbers_are_settled_by_the_prompt_or_not_at_all() -> None:
    """(2) may be the second option or the option 2: nothing is guessed."""
    options = ["2", "3", "4"]
    result = score_predictions([record("(2)", options, 0)], "SingleChoice")
    assert result.metrics["accuracy"].read.n == 0
    assert "give --option-mark" in result.notes["option_mark"]
    by_label = record("(2)", options, 1, question_with_option="How many? Options: (1) 2; (2) 3; (3) 4.")
    by_text = record("(2)", options, 0, question_with_option="How many? Options: (A) 2; (B) 3; (C) 4.")
    assert value_of(by_label, by_text) == 1.0
    assert value_of(record("(2)", options, 1), option_mark="number") == 1.0
    assert value_of(record("(2)", options, 0), option_mark="upper") == 1.0
    assert value_of(record("2", options, 0), record("(2)", ["1", "2", "3"], 1)) == 1.0


def test_the_note_says_what_was_taken_for_a_mark_and_never_speaks_of_rounds() -> None:
    result = score_predictions([record("(2)")], "SingleChoice")
    assert result.notes == {"option_mark": "1 replies read as (1), (2), (3), …; --option-mark upper takes letters only"}
    unread = score_predictions([record("I wonder")], "SingleChoice")
    assert unread.notes == {"accuracy": "no reply could be read"}
    assert OPTION_MARKS == ("auto", "upper", "lower", "number")
    with pytest.raises(UsageError, match="unknown option mark"):
        score_predictions([record("(2)")], "SingleChoice", option_mark="roman")


def test_the_command_takes_the_option(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps([record("(2)", ["2", "3", "4"])]))
    assert run_command(["score", path, "--formulation", "SingleChoice", "--option-mark", "number", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["accuracy"]["value"] == 1.0
