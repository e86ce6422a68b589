"""`snellen compare` and `snellen plan` on real run databases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snellen.cli.main import main
from snellen.core.types import (
    Failure,
    FailureKind,
    Form,
    Params,
    Prediction,
    Request,
    Sample,
    Score,
    TrialKey,
    Turn,
    to_json,
)
from snellen.store.database import open_for_writing, seal
from snellen.store.reader import RunReader
from stored_scores import write_scores


def make_run(
    folder: Path, right: Callable[[int, int], bool | None], *, questions: int = 40, repeats: int = 1, task: str = "toy"
) -> Path:
    """Write a run.db whose reply to question i, repeat r is right, wrong, or (None) failed."""
    folder.mkdir(parents=True)
    database = open_for_writing(folder / "run.db")
    scores = []
    for i in range(questions):
        sample = Sample(
            f"q{i:03}",
            "toy",
            Form.CHOICE,
            f"Question {i}?",
            options=("cat", "dog"),
            answers=("cat",),
            tags={"half": str(i % 2)},
        )
        database.execute(
            "INSERT INTO samples VALUES (?, ?, ?, ?)",
            (task, sample.id, i, seal(to_json(sample), f"{task}\0{sample.id}\0{i}")),
        )
        for r in range(repeats):
            key, outcome = TrialKey(task, sample.id, "base", r), right(i, r)
            request = Request(key, (Turn("user", sample.question),), Params(temperature=0.0))
            failure = Failure(FailureKind.TIMEOUT, "late") if outcome is None else None
            prediction = Prediction(key, text=None if failure else "A" if outcome else "B", failure=failure)
            failed = int(failure is not None)
            reply = seal(to_json(prediction), f"{failed}\0digest")
            row = (task, sample.id, "base", r, failed, "digest", seal(to_json(request)), reply)
            database.execute("INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            if failure is None:
                scores.append(Score(key, "accuracy", float(bool(outcome)), "cat" if outcome else "dog", "letter"))
    database.close()
    write_scores(folder, task, scores)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_compare_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_run(tmp_path / "a", lambda i, _: i < 20)
    second = make_run(tmp_path / "b", lambda i, _: None if i == 39 else i >= 10)
    code, out, err = run(capsys, "compare", first, second, "--json")
    assert (code, err) == (0, "")
    (result,) = json.loads(out)["tasks"]["toy"]
    assert (result["paired"], result["test"], result["outside"]) == (39, "McNemar exact", [0, 1])
    assert result["first_value"] == pytest.approx(20 / 39), "what failed in one is in neither"
    assert result["second_value"] == pytest.approx(29 / 39)
    assert [flip["sample"] for flip in result["worse"]] == [f"q{i:03}" for i in range(10)]
    assert result["divergence"] == {"reply": 29, "same": 10}
    assert result["better"][0]["divergence"] == "reply"


def test_compare_prints_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folders = [
        make_run(tmp_path / name, lambda i, _, cut=cut: i < cut) for name, cut in (("a", 20), ("b", 39), ("c", 20))
    ]  # type: ignore[misc]
    code, out, _ = run(capsys, "compare", *folders)
    assert code == 0
    assert "McNemar exact" in out
    assert "+47.50" in out
    assert "and 9 more (--json lists all)" in out
    assert "[" in out.split("+47.50")[1]


def test_compare_tells_of_unpaired_and_unscored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (
        make_run(tmp_path / "a", lambda i, _: True, questions=12),
        make_run(tmp_path / "b", lambda i, _: None if i else True),
    )
    code, out, _ = run(capsys, "compare", first, second, "--flips", "0")
    assert code == 0
    assert "unpaired samples: 11 only in a, 0 only in b" in out
    assert "failed, or not to be judged: 0 and 39, left out of both" in out
    assert "worse: q" not in out
    _, body, _ = run(capsys, "compare", first, second, "--scored-only", "--json")
    (result,) = json.loads(body)["tasks"]["toy"]
    assert (result["paired"], result["difference"], result["p"]) == (1, 0.0, 1.0)


def test_compare_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, other, again = (
        make_run(tmp_path / "a", lambda i, _: True),
        make_run(tmp_path / "b", lambda i, _: True, task="other"),
        make_run(tmp_path / "c", lambda i, _: True),
    )
    cases: list[tuple[list[Any], int, str]] = [
        ([first], 2, "at least two"),
        ([first, other], 2, "share no task"),
        ([first, again, "--task", "toi"], 2, "did you mean 'toy'"),
        ([first, again, "--metric", "acuracy"], 2, "did you mean 'accuracy'"),
        ([first, tmp_path / "nowhere"], 3, "no run"),
    ]
    for arguments, expected, words in cases:
        code, out, err = run(capsys, "compare", *arguments)
        assert (code, out) == (expected, "")
        assert words in err
        assert len(err.strip().splitlines()) == 1


def test_compare_needs_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_run(tmp_path / "a", lambda i, _: True)
    with sqlite3.connect(first / "run.db") as database:
        database.execute("DELETE FROM scores")
    database.close()
    second = make_run(tmp_path / "b", lambda i, _: None)
    code, _, err = run(capsys, "compare", first, second)
    assert code == 2
    assert "snellen score" in err


def test_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "--gap", "2", "--json")
    designs = json.loads(out)["designs"]
    assert code == 0
    assert [design["repeats"] for design in designs] == [1, 2, 4, 8]
    assert designs[0]["questions"] > designs[-1]["questions"] > 100
    pilot = make_run(tmp_path / "pilot", lambda i, r: i % 4 != 0 or r == 0, questions=80, repeats=4)
    code, out, _ = run(capsys, "plan", "--questions", "300", "--from-run", pilot, "--json")
    body = json.loads(out)
    assert body["assumptions"]["accuracy"] == pytest.approx(0.8125)
    assert body["assumptions"]["question_share"] > 0.5
    assert "More questions, not more repeats." in body["advice"]
    code, out, _ = run(capsys, "plan", "--questions", "300", "--from-run", pilot)
    assert "300" in out
    assert "More questions" in out


def test_plan_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = make_run(tmp_path / "failed", lambda i, _: None)
    for arguments, words in (
        (["--gap", "2", "--questions", "5"], "either"),
        (["--gap", "2", "--repeats", "x"], "1,2,4"),
        ([], "either"),
        (["--gap", "2", "--from-run", failed], "score it"),
    ):
        code, out, err = run(capsys, "plan", *arguments)
        assert (code, out) == (2, "")
        assert words in err


def test_stored_tables_hold_every_trial(tmp_path: Path) -> None:
    from snellen.scoring.aggregates.summary import summarize
    from snellen.scoring.stored import stored_tables

    reader = RunReader(make_run(tmp_path / "a", lambda i, r: None if i == 3 else (i + r) % 3 > 0, repeats=3))
    tables = stored_tables(reader, "toy")
    reader.close()
    result = summarize(tables, group_by=["half"])
    head = result["metrics"]["accuracy"]
    assert (head["n"], head["failed"]) == (117, 3)
    assert result["metrics"]["failed_rate"]["value"] == pytest.approx(1 / 40)
    assert sum(part["accuracy"]["failed"] for part in result["groups"]["half"].values()) == 3
    assert "pass@3" in result["metrics"]
