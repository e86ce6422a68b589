"""A second opinion on files that harnesses wrote of video benchmarks: options in a list, right answers in three forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from foreign_files import write_lines, write_tsv

FOUR = ["a cat", "a dog", "a cow", "a hen"]
LETTERED = [f"{letter}. {text}" for letter, text in zip("ABCD", FOUR, strict=True)]
REPLIES = ["B", "Best option: C", "Hard to say here", "(D) a hen"]
RIGHT = "BCAD"


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def opinion(capsys: pytest.CaptureFixture[str], file: Path) -> dict[str, Any]:
    capsys.readouterr()
    code = run_command(["second-opinion", file, "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    found: dict[str, Any] = json.loads(printed.out)
    return found


def kit_rows(options: list[str], **answers: list[Any]) -> list[dict[str, Any]]:
    """Return rows as VLMEvalKit writes them of a video benchmark, with the columns of right answers."""
    return [
        {"index": at, "video": "x", "question": f"What is it in scene {at}?", "candidates": str(options)}
        | {name: values[at] for name, values in answers.items()}
        | {"prediction": reply}
        for at, reply in enumerate(REPLIES)
    ]


TEXTS = [FOUR["ABCD".index(letter)] for letter in RIGHT]


@pytest.mark.parametrize(
    ("name", "rows", "theirs"),
    [
        # the B of Best: two of four right; what nobody reads is wrong there
        ("Video-MME_8frame", kit_rows(LETTERED, answer=list(RIGHT)), 0.5),
        ("LongVideoBench_8frame", kit_rows(FOUR, correct_choice=["ABCD".index(letter) for letter in RIGHT]), 0.5),
        ("MLVU_MCQ", kit_rows(FOUR, answer=TEXTS), 0.5),
        ("TempCompass_MCQ", kit_rows(LETTERED, answer=[LETTERED["ABCD".index(letter)] for letter in RIGHT]), 0.25),
    ],
)
def test_a_file_of_vlmevalkit_is_read_again_by_its_rule_and_by_ours(
    name: str, rows: list[dict[str, Any]], theirs: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = opinion(capsys, write_tsv(Path(f"small_{name}.tsv"), rows))
    assert found["damage"] == {}
    assert found["peer"]["value"] == pytest.approx(theirs)
    assert (found["ours"]["value"], found["ours"]["n"], found["unscored"]) == (0.75, 4, 1)


def test_a_rule_that_counts_an_empty_reply_as_right_is_not_said_to_be_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = opinion(capsys, write_tsv(Path("small_MVBench_8frame.tsv"), kit_rows(FOUR, answer=TEXTS)))
    assert found["peer"]["value"] is None, "no number of theirs rather than a wrong one"
    assert found["ours"]["read"]["value"] == 1.0


def test_a_file_of_lmms_eval_is_read_again_by_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "What is it?\n" + "\n".join(LETTERED)
    samples = [
        {"doc_id": at, "target": RIGHT[at], "input": prompt, "filtered_resps": reply}
        for at, reply in enumerate(REPLIES)
    ]
    write_lines(Path("t_samples_videomme.jsonl"), samples)
    found = opinion(capsys, Path("t_samples_videomme.jsonl"))
    assert (found["peer"]["value"], found["ours"]["value"]) == (0.75, 0.75)
    assert found["kinds"]["misread"]["count"] == 0


def test_words_in_a_row_without_options_are_unread_and_no_crash(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"index": 1, "question": "Which?", "answer": "B", "prediction": "Best of all is the blue one"}]
    found = opinion(capsys, write_tsv(Path("small_MMStar.tsv"), rows))
    assert found["damage"]["no_options"]["count"] == 1
    assert found["unscored"] == 1
