"""Several right options: the set a reply names is read whole or not at all, and scored as a set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import snellen
from snellen.api.load import load_run
from snellen.core.errors import DataError, UsageError
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.data.loaders.row_answers import find_answer_set
from snellen.extract.other_kinds import read_mark_set
from snellen.scoring.scorers.option_choice import score_set

MARKS = ("A", "B", "C", "D", "E")
SHOWN = ("red", "light blue", "the sea, the sky", "None of these", "2")


@pytest.mark.parametrize(
    ("reply", "marks"),
    [
        ("A, C", "AC"),
        ("AC", "AC"),
        ("A and C", "AC"),
        ("A, E", "AE"),
        ("E", "E"),
        ("(A), (C)", "AC"),
        ("**A**, **D**", "AD"),
        ("a, c", "AC"),
        ("A. red\nC. the sea, the sky", "AC"),
        ("A: red, B: light blue and D: None of these.", "ABD"),
        ("red, light blue", "AB"),
        ("Options A and C are correct.", "AC"),
        ("The correct answers are A, C and D.", "ACD"),
        ("The sky is visible (B looks wrong).\nAnswer: A, C", "AC"),
        ("Looking at B first, then at the rest.\nFinal answer:\nA, C", "AC"),
        ("So we get \\\\boxed{A, D}.", "AD"),
        ('{"answer": ["A", "C"]}', "AC"),
        ("答案：A、C", "AC"),
        ("答案是ABD", "ABD"),
        ("选项A和C", "AC"),
        ("<think>A? B? No.</think>\nA,C", "AC"),
        ("B looks wrong, the others do not.\n\nA, C, D", "ACD"),
        ("D", "D"),
    ],
)
def test_a_set_is_read(reply: str, marks: str) -> None:
    found = read_mark_set(reply.replace("\\\\", "\\"), MARKS, SHOWN)
    assert (found.marks, found.reason) == (tuple(marks), None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("A or C", "unparsed"),
        ("A, C, Z", "unparsed"),
        ("A is right and B is not", "unparsed"),
        ("BAD", "unparsed"),
        ("not A, B", "unparsed"),
        ("A, B, A", "unparsed"),
        ("A, C?", "unparsed"),
        ("Any of them could be it.", "unparsed"),
        ("All of the above", "unparsed"),
        ("\\boxed{A}\nAnswer: A, B", "ambiguous"),
        ("<think>A, C", "truncated"),
    ],
)
def test_half_a_set_is_never_read(reply: str, reason: str) -> None:
    found = read_mark_set(reply, MARKS, SHOWN)
    assert (found.marks, found.reason) == ((), reason)


def test_a_reply_that_was_cut_is_not_read() -> None:
    assert read_mark_set("A, C", MARKS, SHOWN, "length").reason == "truncated"


@given(
    st.sets(st.sampled_from(MARKS), min_size=1),
    st.sampled_from([", ", ",", " and ", "; ", "、", "\n", " "]),
    st.sampled_from(["{}", "Answer: {}", "The correct options are {}.", "**{}**", "I looked.\n\nAnswers: {}"]),
    st.booleans(),
)
def test_any_set_said_in_the_usual_ways_is_that_set(chosen: set[str], join: str, form: str, texts: bool) -> None:
    named = [f"{mark}. {text}" if texts else mark for mark, text in zip(MARKS, SHOWN, strict=True) if mark in chosen]
    if join == "\n" and not form.startswith("{"):
        return  # a list after its announcement begins on a line of its own
    found = read_mark_set(form.format(join.join(named)), MARKS, SHOWN)
    assert set(found.marks) == chosen


@given(st.text(max_size=300))
def test_any_text_is_read_or_not_and_nothing_else(text: str) -> None:
    found = read_mark_set(text, MARKS, SHOWN)
    assert bool(found.marks) == (found.reason is None)


def test_a_long_reply_is_read_in_time() -> None:
    hostile = "A, " * 20_000 + "answer is " * 5_000 + "\\\\boxed{" * 2_000
    assert read_mark_set(hostile, MARKS, SHOWN).reason in ("unparsed", "ambiguous")


def score(reply: str, right: tuple[str, ...] = ("red", "2")) -> dict[str, Any]:
    sample = Sample("1", "t", Form.MULTIPLE, "Which?", options=SHOWN, answers=right)
    key = TrialKey("t", "1")
    request = Request(key, (), marks=MARKS, shown=SHOWN)
    return {one.metric: one.value for one in score_set(sample, request, Prediction(key, text=reply), {})}


def test_only_the_whole_set_is_right_and_a_part_is_partly() -> None:
    assert score("A, E") == {"accuracy": 1.0, "jaccard": 1.0}
    assert score("A") == {"accuracy": 0.0, "jaccard": 0.5}
    assert score("A, B, E") == {"accuracy": 0.0, "jaccard": pytest.approx(2 / 3)}
    assert score("B") == {"accuracy": 0.0, "jaccard": 0.0}
    assert score("hm") == {"accuracy": None, "jaccard": None}
    assert score("A", ()) == {"accuracy": None, "jaccard": None}


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("A,C", (0, 2)), ("AC", (0, 2)), ("A C", (0, 2)), ("A、B", (0, 1)), ("A", (0,)), (["A", "C"], (0, 2)),
        (["red", "light blue"], (0, 1)), ("red; light blue", (0, 1)), ("the sea, the sky", (2,)), ([0, 1], (0, 1)), ("", ()),
    ],
)  # fmt: skip
def test_the_right_options_of_a_cell(answer: Any, right: tuple[int, ...]) -> None:
    found = find_answer_set(answer, SHOWN, "auto", "record 1")
    assert set(found) == {SHOWN[place] for place in right}


@pytest.mark.parametrize("answer", ["A,Z", "AA", "red, green"])
def test_a_right_option_that_is_none_is_refused(answer: str) -> None:
    with pytest.raises(DataError, match="record 1"):
        find_answer_set(answer, SHOWN, "auto", "record 1")


def test_letters_that_are_an_option_too_are_refused() -> None:
    with pytest.raises(DataError, match=r"'AC' can mean 'AC', or 'DC' and 'AC' by letters"):
        find_answer_set("AC", ("DC", "no", "AC"), "auto", "record 1")


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps(list(rows)))
    return path


ROW = {"question_id": 1, "question": "Which?", "options": ["x", "y", "z"], "answer": "A,C"}


def test_several_right_options_are_never_guessed_from_the_answer(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"record 1: answer 'A,C' is not among the options .*--form multiple"):
        list(snellen.load_dataset(str(write(tmp_path / "data.json", ROW))))


@pytest.mark.parametrize("more", [{"question_type": "multiple-response"}, {"form": "multiple"}])
def test_a_row_that_says_so_has_several_right_options(more: dict[str, Any], tmp_path: Path) -> None:
    (sample,) = snellen.load_dataset(str(write(tmp_path / "data.json", ROW | more)))
    assert (sample.form, sample.answers) == (Form.MULTIPLE, ("x", "z"))


def test_options_in_the_question_may_have_several_right_ones(tmp_path: Path) -> None:
    row = {
        "question_id": 1,
        "question": "Which?\n(A) x\n(B) y\n(C) z",
        "answer": "AC",
        "question_type": "multiple-response",
    }
    (sample,) = snellen.load_dataset(str(write(tmp_path / "data.json", row)))
    assert (sample.question, sample.options, sample.answers) == ("Which?", ("x", "y", "z"), ("x", "z"))


def test_a_mixed_file_has_one_accuracy_and_the_form_alone_has_two_metrics(tmp_path: Path) -> None:
    several = ROW | {"question_type": "multiple-response"}
    single = {"question_id": 2, "question": "Which one?", "options": ["x", "y"], "answer": "A"}
    path = write(tmp_path / "data.json", several, single)
    result = snellen.run(str(path), "blind/first", output_dir=tmp_path / "mixed")
    assert result.results["tasks"]["data"]["metrics"]["accuracy"]["value"] == 0.5
    alone = snellen.run(str(write(path, several)), "blind/first", output_dir=tmp_path / "alone")
    metrics = alone.results["tasks"]["data"]["metrics"]
    assert (metrics["accuracy"]["value"], metrics["jaccard"]["value"]) == (0.0, 0.5)
    with load_run(alone.folder) as run:
        (trial,) = run.trials("data")
    assert "letters of all right options" in trial.request.messages[-1].text
    assert trial.request.marks == ("A", "B", "C")


def test_a_forced_form_asks_all_rows_for_all_right_options(tmp_path: Path) -> None:
    path = write(tmp_path / "data.json", ROW, ROW | {"question_id": 2, "answer": "B"})
    result = snellen.run(str(path), "blind/first", form="multiple", output_dir=tmp_path / "run")
    assert result.results["tasks"]["data"]["metrics"]["accuracy"]["n"] == 2
    with pytest.raises(DataError, match="has no options and the form is multiple"):
        snellen.run(str(write(path, {"question": "Open?", "answer": "a"})), "blind/first", form="multiple")


def test_rounds_and_likelihoods_of_sets_are_refused_by_name(tmp_path: Path) -> None:
    rows = [ROW | {"question_id": n, "question_type": "multiple-response", "group": "g", "round": n} for n in (1, 2)]
    path = write(tmp_path / "data.json", *rows)
    with pytest.raises(DataError, match="a round of a dialogue cannot have several right options"):
        snellen.run(str(path), "blind/first", infer_method="every")
    with pytest.raises(UsageError, match="multiple"):
        snellen.run(str(path), "blind/first", infer_method="likelihood")


@pytest.mark.parametrize("reply", ["A-C", "A – C", r"\boxed{A} and \boxed{C}", r"\boxed{A, C} or \boxed{B}"])
def test_half_a_set_and_a_range_are_not_read(reply: str) -> None:
    found = read_mark_set(reply, "ABCD", ["red", "blue", "green", "yellow"])
    assert (found.marks, found.reason is None) == ((), False)


def test_neighbours_joined_by_a_dash_are_both_ways_the_same() -> None:
    assert read_mark_set("A-B", "ABCD", ["red", "blue", "green", "yellow"]).marks == ("A", "B")
    assert read_mark_set(r"\boxed{A, C}", "ABCD", ["red", "blue", "green", "yellow"]).marks == ("A", "C")
