"""What the headline means, from stored replies to results.json, the terminal, exports and the leaderboard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from recount import OPTIONS, Drawn, Trial, write_run
from snellen.api.outputs import leaderboard
from snellen.core.tasks import Task
from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey, Turn, Usage
from snellen.kits.publish.harness_files import flageval_result
from snellen.report.stored_results import read_results
from snellen.store.reader import RunReader

THIRD = [0] * 9 + [1] + ["unread"] * 12 + ["refused"] * 6 + ["empty"] * 2
"""Ten of thirty answered, nine of these rightly."""
WHOLE = [0] * 18 + [1] * 12


def stored(folder: Path, said: Sequence[int | str], *, seed: int = 1, repeats: int = 1) -> dict[str, Any]:
    """Store and score a run whose right answer is always the first option."""
    names = [f"q{number:02}" for number in range(len(said) // repeats)]
    samples = [Sample(n, "t", Form.CHOICE, f"What is {n}?", options=OPTIONS, answers=OPTIONS[:1]) for n in names]
    task = Task("t", {}, Form.CHOICE, repeats=repeats, scorers=("choice",))
    trials = [Trial(names[at // repeats], "base", at % repeats, one, 0, {}, None) for at, one in enumerate(said)]
    return write_run(Drawn(seed, "questions", task, samples, trials, False, len(samples), trials), folder)


def test_results_have_value_interval_bounds_and_what_was_read(tmp_path: Path) -> None:
    results = stored(tmp_path / "run", THIRD)
    accuracy = results["tasks"]["t"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (pytest.approx(0.3), 30)
    assert accuracy["ci95"][0] < 0.3 < accuracy["ci95"][1] < 0.9
    assert accuracy["bounds"] == pytest.approx([0.3, 29 / 30])
    assert accuracy["read"] == {"value": pytest.approx(0.9), "n": 10}
    assert results["status"]["complete"]


def test_the_line_under_the_number_quotes_three_replies_and_names_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(tmp_path / "run", THIRD)
    told = results["tasks"]["t"]["unread"]
    assert (told["n"], told["replies"]) == (20, 30)
    assert told["reasons"] == {"ambiguous": 12, "refused": 6, "empty": 2}
    assert [one["reason"] for one in told["quoted"]] == ["ambiguous", "refused", "empty"]
    assert run_command(["score", tmp_path / "run"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "20 of 30 replies (66.7 %) could not be read" in printed
    assert all(f"“{one['reply']}”" in printed for one in told["quoted"])
    assert told["next"] in printed


def test_a_few_unread_replies_need_no_line(tmp_path: Path) -> None:
    assert "unread" not in stored(tmp_path / "run", [0] * 39 + ["unread"])["tasks"]["t"]


def test_a_failed_call_makes_the_run_incomplete_and_widens_the_bounds(tmp_path: Path) -> None:
    results = stored(tmp_path / "run", [0, 0, 1, "timeout"])
    accuracy = results["tasks"]["t"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["bounds"]) == (pytest.approx(2 / 3), [0.5, 0.75])
    assert (results["status"]["complete"], results["status"]["failed"]) == (False, {"t": 1})


def test_the_leaderboard_puts_who_answers_all_before_who_answers_a_third(tmp_path: Path) -> None:
    stored(tmp_path / "third", THIRD)
    stored(tmp_path / "whole", WHOLE, seed=2)
    board, _ = leaderboard([tmp_path / "third", tmp_path / "whole"])
    assert [line.name for line in board.lines] == ["whole", "third"]
    cell = board.lines[1].tasks["t"]
    assert (cell.value, cell.n, cell.unread, cell.lost) == (pytest.approx(0.3), 30, 20, 0)


def test_results_of_before_are_counted_anew(tmp_path: Path) -> None:
    results = stored(tmp_path / "run", THIRD)
    del results["run"]["counted"]
    results["tasks"]["t"]["metrics"]["accuracy"]["value"] = 0.9
    (tmp_path / "run" / "results.json").write_text(json.dumps(results))
    with RunReader(tmp_path / "run") as reader:
        again = read_results(reader, reader.header())
    assert again["tasks"]["t"]["metrics"]["accuracy"]["value"] == pytest.approx(0.3)


def test_the_export_of_several_inferences_counts_the_unread_one(tmp_path: Path) -> None:
    stored(tmp_path / "run", [0, 1, "unread", 1, 1], repeats=5)
    assert run_command(["report", tmp_path / "run", "--export", "flageval", "-o", tmp_path / "out"]) == 0
    (record,) = json.loads((tmp_path / "out" / "t.json").read_text())
    assert (record["num_inferences"], record["correct"]) == (5, pytest.approx(0.2))
    assert record["inference_scores"] == [1, 0, 0, 0, 0]
    result = json.loads((tmp_path / "out" / "t_result.json").read_text())
    assert result["accuracy"] == 20.0 and "average_tokens" not in result, "an average of several inferences is none"


def test_the_export_of_a_run_has_the_tokens_that_its_server_counted() -> None:
    sample = Sample("q0", "t", Form.CHOICE, "Which?", options=OPTIONS, answers=OPTIONS[:1])
    key = TrialKey("t", "q0")
    reply = Prediction(key, text="A", usage=Usage(30, 2))
    trial = (sample, Request(key, (Turn("user", "Which?"),)), reply, Score(key, "accuracy", 1.0))
    result = flageval_result([trial])
    assert [result[f"average_{kind}tokens"] for kind in ("", "prompt_", "completion_")] == [32, 30, 2]
