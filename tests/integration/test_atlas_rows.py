"""`snellen score FILE --task NAME --protocol P`: rows with replies made elsewhere, in every protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from snellen.kits.bridges.scored_files import score_file
from snellen.scoring.protocols.peer_scores import draw_letter

pytestmark = pytest.mark.usefixtures("own_folder")
ROWS: list[dict[str, Any]] = [
    {"id": "a", "options": "['Klee', \"O'Keeffe\"]", "answer": "B", "response": "Maybe (A).\nAnswer: B"},
    {"id": "b", "options": ["Klee", "Marc"], "answer": "A", "response": "B"},
    {"id": "c", "options": ["Klee", "Marc"], "answer": "A", "response": "no idea"},
    {"id": "d", "options": ["Klee", "Marc"], "answer": "A", "response": None},
    {"id": "e", "options": ["Klee", "Marc"], "answer": "A", "response": "Failed to obtain answer via API."},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run_command(["score", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_contract_names_protocol_number_interval_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "rows.jsonl", ROWS)
    found = scored(capsys, file, "--protocol", "official", "--task", "mmmu-pro")
    assert (found["task"], found["protocol"], found["n"]) == ("mmmu-pro", "official", 5)
    assert (found["value"], found["scored"], found["unread"], found["failed"]) == (pytest.approx(1 / 3), 2, 1, 2)
    assert found["ci95"][0] < 1 / 3 < found["ci95"][1]
    assert (found["bounds"], found["read"]) == (pytest.approx([1 / 5, 4 / 5]), {"value": 0.5, "n": 2})
    assert found["reasons"] == {"unparsed": 1}
    drawn = [draw_letter(("Klee", "Marc"), name) == "Klee" for name in "cde"]
    assert found["peer"]["value"] == pytest.approx((1 + sum(drawn)) / 5)
    assert "draws an option at random" in found["peer"]["why"]
    assert "1 unread and 2 failed of 5" in found["peer"]["why"]
    assert found["peer"]["why"].count(". ") == 0  # one sentence


@pytest.mark.parametrize(("protocol", "value", "peer"), [("lmms-eval", 0.0, None), ("vlmevalkit", 0.0, 0.0)])
def test_other_protocols_read_the_same_rows(
    protocol: str, value: float, peer: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = scored(capsys, write(tmp_path / "rows.jsonl", ROWS), "--protocol", protocol, "--task", "mmmu-pro")
    assert found["protocol"] == protocol
    assert found["value"] == value
    assert peer is None or found["peer"]["value"] == peer


def test_the_same_file_twice_gives_the_same_random_number(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.jsonl", ROWS)
    assert score_file(file, task="mmmu-pro") == score_file(file, task="mmmu-pro")


def test_rows_in_a_toolkits_shape_are_grouped_as_the_card_says(tmp_path: Path) -> None:
    rows = [
        {
            "index": index,
            "question": "What?",
            "A": "cat",
            "B": "dog",
            "answer": answer,
            "l2-category": "x",
            "prediction": reply,
        }
        for index, answer, reply in ((1, "A", "A"), (1_000_001, "B", "B"), (2, "A", "A"), (1_000_002, "B", "A"))
    ]
    found = score_file(write(tmp_path / "rows.jsonl", rows), task="mmbench-en", protocol="vlmevalkit")
    assert (found["metric"], found["value"], found["unit"]) == ("circular", 0.5, "groups")


def test_figures_that_the_rows_do_not_allow_are_left_out_and_said(tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "Is it?", "answer": "Yes", "response": "Yes."}]
    found = score_file(write(tmp_path / "rows.jsonl", rows), task="hallusionbench")
    assert (found["metric"], found["value"]) == ("accuracy", 1.0)
    assert any(note.startswith("fAcc is not computed: the rows have no column category") for note in found["notes"])
    assert any("quoted by mean_of_three, which could not be computed" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "a", "options": ["x", "y"], "answer": "A"}], "has no column of replies"),
        ([{"id": "a", "options": ["x", "y"], "answer": "Q", "response": "A"}], "'Q' read as letter is not among"),
        ([{"id": "a", "options": "__import__('os')", "answer": "A", "response": "A"}], "a choice needs"),
        ([{"id": "a", "options": ["x", "y"], "answer": "A", "response": "A"}] * 2, "are both sample 'a'"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused_in_one_line(
    rows: list[dict[str, Any]], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "rows.jsonl", rows)
    assert run_command(["score", file, "--task", "mmmu-pro"]) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0
    assert words in error


def test_options_that_would_be_ignored_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "rows.jsonl", ROWS)
    assert run_command(["score", file, "--task", "mmmu-pro", "--profile", "reform"]) == 2
    assert "--profile says nothing here" in capsys.readouterr().err
    assert run_command(["score", file, "--formulation", "SingleChoice", "--protocol", "official"]) == 2
    assert "--protocol says nothing here" in capsys.readouterr().err
    assert run_command(["score", file, "--task", "eyechart"]) == 2
    assert "no card of a published benchmark" in capsys.readouterr().err


def test_people_see_the_sentence_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "rows.jsonl", ROWS)
    assert run_command(["score", file, "--task", "mmmu-pro"]) == 0
    shown = capsys.readouterr().out
    assert "2 read, 1 unread, 2 failed of 5" in shown
    assert "draws an option at random" in shown


ROW = {"id": "a", "options": ["3", "1", "2"], "answer": "A", "response": "A"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows.jsonl has no rows to score"),
        ([{"q": "x", "gold": "A", "out": "A"}], "has no column of replies (it has q, gold, out); replies stand in"),
        ([ROW, ROW | {"response": "B"}], "rows 1 and 2 are both sample 'a': give every row an id of its own"),
        ([ROW | {"answer": "2"}], "answer '2' read as letter is not among the options ('3', '1', '2'); is it the text"),
        ([ROW | {"answer": 0}], "answer 0 read as letter is not among the options"),
        ([ROW | {"answer": "E"}], "answer 'E' read as letter is not among the options"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused_in_their_own_words(
    rows: list[dict[str, Any]], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "rows.jsonl", rows)
    assert run_command(["score", file, "--task", "mmmu-pro"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_what_an_error_tells_to_set_can_be_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "rows.jsonl", [ROW | {"answer": "2", "response": "C"}])
    found = scored(capsys, file, "--task", "mmmu-pro", "-p", "dataset.answer_kind=text")
    assert (found["value"], found["n"]) == (1.0, 1)
    assert run_command(["score", file, "--formulation", "SingleChoice", "-p", "dataset.answer_kind=text"]) == 2
    assert "-p says nothing here" in capsys.readouterr().err


def test_a_row_without_an_answer_is_counted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our reading and the tool's have the same reason: two scores, one trial."""
    file = write(tmp_path / "rows.jsonl", [ROW, ROW | {"id": "b", "answer": None}])
    found = scored(capsys, file, "--task", "mmmu-pro")
    assert (found["scored"], found["unscored"], found["reasons"]) == (1, 1, {"no_reference": 1})


@pytest.mark.parametrize("column", [{"data_type": "image"}, {}])
def test_a_benchmarks_own_column_is_no_picture_and_may_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: dict[str, str]
) -> None:
    row = {"question_id": "1", "question": "Which?", "answer": "B", "response": "B", "question_type_id": 1}
    options = {f"choice_{letter}": str(at) for at, letter in enumerate("abcd")}
    file = write(tmp_path / "rows.jsonl", [row | options | column])
    found = scored(capsys, file, "--task", "seedbench-img", "--protocol", "lmms-eval")
    assert found["metrics"]["accuracy"]["value"] == 1.0
    assert any("data_type" in note for note in found["notes"]) == (not column)


def test_yes_and_no_of_the_hub_are_asked_and_read_in_vlmevalkits_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "1", "question": "Is it red?", "answer": "Yes", "response": "Yes, it is."}]
    found = scored(capsys, write(tmp_path / "rows.jsonl", rows), "--task", "realworldqa", "--protocol", "vlmevalkit")
    assert found["value"] == 1.0


@pytest.mark.parametrize(("protocol", "read"), [("lmms-eval", 1), ("vlmevalkit", 0)])
def test_thinking_is_taken_off_where_the_tool_takes_it_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str, read: int
) -> None:
    reply = "<think> A or B </think>\n B"
    rows = [{"id": "1", "options": ["a cat", "a dog", "a cow"], "answer": "1", "response": reply}]
    found = scored(capsys, write(tmp_path / "rows.jsonl", rows), "--task", "ai2d", "--protocol", protocol)
    assert found["scored"] == read
    assert found["version"] == {"lmms-eval": "lmms-eval@75571cf", "vlmevalkit": "vlmevalkit@e8e78f0"}[protocol]
