"""Beside a judge's figure: who judged, how far the rule agrees, and what people's labels make of it; and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from command_line import run_command
from judge_doubles import ask_about, judge_model
from made_runs import make_run, make_task
from snellen.api.judges import draw_replies, take_labels
from snellen.api.outputs import find_runs
from snellen.core.builtins import default_registry
from snellen.core.errors import DataError, RunMismatch, UsageError
from snellen.core.tasks import Figure
from snellen.core.types import Request, TrialKey
from snellen.report.pages.finish import finish_run
from snellen.scoring.judges.judge_card import Judge, read_judge
from snellen.scoring.judges.judged import is_published_judge
from snellen.scoring.judges.labels import check_draw, draw_order, read_labels

PROMPT = "Options:\n{options}\nRight: {answers}\nCase {case}.\n{fence}\n{answer}\n{fence}"
WORDS = {"choices": {"RIGHT": 1.0, "WRONG": 0.0}, "prompt": PROMPT, "default_model": "openai/gpt-4-0613"}


def words_judge(**more: Any) -> Judge:
    return read_judge(WORDS | more, "mine")


def generous(request: Request, answer: str) -> dict[str, Any]:
    """Right whenever the right colour is named, and whenever the answer is long."""
    right = request.messages[-1].text.split("Right: - ")[1].split("\n")[0]
    letter = "ABCD"[("red", "green", "blue", "orange").index(right)]
    is_right = f"{letter}." in f"{answer}." or f"({letter})" in answer or right in answer
    return {"verdict": "RIGHT" if is_right or len(answer) > 60 else "WRONG"}


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    folder = make_run(tmp_path / "run", count=200, pictures=1)
    ask_about(folder, words_judge(), judge_model(generous, "openai/local-judge"))
    return folder


def results(folder: Path) -> dict[str, Any]:
    return finish_run(folder, default_registry(), report=False)["tasks"]["shapes"]


def test_the_account_names_the_judge_and_how_far_the_rule_agrees(judged: Path) -> None:
    task = results(judged)
    [account] = task["judges"]
    assert (account["judge"], account["model"], account["comparable"]) == ("mine", "openai/local-judge", False)
    scored = {"rule": 0, "judge": 0, "same": 0, "n": 0}
    for line in (judged / "records.jsonl").read_text().splitlines():
        values = json.loads(line)["scores"]
        if values.get("accuracy") is not None and values.get("judge") is not None:
            scored["n"] += 1
            scored["same"] += values["accuracy"] == values["judge"]
            scored["judge"] += values["judge"] > values["accuracy"]
            scored["rule"] += values["judge"] < values["accuracy"]
    agreement = account["agreement"]
    assert agreement["rule"] == "accuracy"
    assert agreement["n"] == scored["n"]
    assert agreement["same"] == pytest.approx(scored["same"] / scored["n"])
    assert (agreement["right_for_judge_alone"], agreement["right_for_rule_alone"]) == (scored["judge"], scored["rule"])
    notes = " ".join(task["notes"])
    assert "judged by openai/local-judge; published numbers were judged by openai/gpt-4-0613: not comparable" in notes
    assert "agree on" in notes


def test_the_published_judge_needs_no_warning() -> None:
    assert is_published_judge(words_judge(), "azure/GPT-4-0613")
    assert not is_published_judge(words_judge(), "openai/gpt-4o")


def test_every_verdict_stands_in_a_file_of_its_own(judged: Path) -> None:
    results(judged)
    lines = [json.loads(line) for line in (judged / "verdicts-mine.jsonl").read_text().splitlines()]
    records = [json.loads(line) for line in (judged / "records.jsonl").read_text().splitlines()]
    answered = {record["sample"] for record in records if record["scores"].get("judge") is not None}
    assert {line["sample"] for line in lines} == answered
    first = lines[0]
    assert (first["judge"], first["model"], first["vote"]) == ("mine", "openai/local-judge", 0)
    assert first["verdict"] in ("RIGHT", "WRONG")
    assert first["verdict"] in first["reply"]
    assert "Case" in first["prompt"][-1]["text"]
    assert first["failure"] is None


def test_a_void_verdict_is_in_the_file_and_said_and_never_wrong(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", count=20, pictures=1)
    ask_about(folder, words_judge(), judge_model(lambda request, answer: "I would rather not say."))
    task = results(folder)
    assert task["metrics"]["judge"]["value"] is None
    lines = [json.loads(line) for line in (folder / "verdicts-mine.jsonl").read_text().splitlines()]
    assert {line["verdict"] for line in lines} == {None}
    assert "no valid verdict and are outside the figure, not wrong" in " ".join(task["notes"])


def truth(row: dict[str, Any]) -> float:
    """What a person says: the option that was meant is the right one."""
    letter = "ABCD"[row["options"].index(row["answers"][0])]
    reply = row["reply"]
    return float(f"{letter}." in f"{reply}." or f"({letter})" in reply or row["answers"][0] in reply)


def labelled(folder: Path, count: int, path: Path) -> list[dict[str, Any]]:
    rows = draw_replies(folder, "mine", count)
    for row in rows:
        row["label"] = truth(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def test_labels_correct_a_generous_judge(judged: Path, tmp_path: Path) -> None:
    results(judged)
    everything = {row["sample"]: truth(row) for row in draw_replies(judged, "mine", 1000)}
    real = sum(everything.values()) / len(everything)
    labelled(judged, 60, tmp_path / "labels.jsonl")
    task = take_labels(judged, "mine", tmp_path / "labels.jsonl")["tasks"]["shapes"]
    judge, corrected = task["metrics"]["judge"], task["metrics"]["judge_calibrated"]
    assert judge["value"] - real > 0.05, "the judge is generous"
    assert corrected["ci95"][0] <= real <= corrected["ci95"][1]
    assert abs(corrected["value"] - real) < abs(judge["value"] - real)
    assert [corrected[name] for name in ("n", "unscored", "failed")] == [
        judge[name] for name in ("n", "unscored", "failed")
    ]
    assert task["judges"][0]["labels"]["n"] == 60
    assert task["judges"][0]["labels"]["judge_minus_people"] > 0.0


def test_the_draw_hides_the_verdict_and_a_larger_one_begins_alike(judged: Path) -> None:
    few, more = draw_replies(judged, "mine", 5), draw_replies(judged, "mine", 15)
    assert more[:5] == few
    assert not {"verdict", "judge", "value"} & set(few[0])
    assert all(row["label"] is None for row in more)


def test_labels_chosen_by_hand_are_refused(judged: Path, tmp_path: Path) -> None:
    rows = labelled(judged, 15, tmp_path / "labels.jsonl")
    rows[3]["label"] = None
    (tmp_path / "gap.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match="was drawn before others that have labels"):
        take_labels(judged, "mine", tmp_path / "gap.jsonl")
    rows[3]["label"] = 1
    rows[-1]["label"] = None
    (tmp_path / "fewer.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert take_labels(judged, "mine", tmp_path / "fewer.jsonl")["tasks"]["shapes"]["judges"][0]["labels"]["n"] == 14


def test_too_few_labels_give_no_number_and_say_so(judged: Path, tmp_path: Path) -> None:
    labelled(judged, 5, tmp_path / "labels.jsonl")
    task = take_labels(judged, "mine", tmp_path / "labels.jsonl")["tasks"]["shapes"]
    assert task["metrics"]["judge_calibrated"]["value"] is None
    assert "5 labels are too few" in " ".join(task["notes"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sample": "shape-00001", "label": 2}, "a number from 0 to 1"),
        ({"sample": "shape-00001", "label": "maybe"}, "one of RIGHT, WRONG"),
        ({"label": 1}, "names no sample"),
        ({"task": "other", "sample": "x", "label": 1}, "names task 'other'"),
    ],
)
def test_a_label_that_means_nothing_is_refused(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    (tmp_path / "labels.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=message):
        read_labels(tmp_path / "labels.jsonl", words_judge(), ["shapes"])


def test_two_labels_on_one_reply_must_agree(tmp_path: Path) -> None:
    rows = [{"sample": "1", "label": "RIGHT"}, {"sample": "1", "label": 0}]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match="labels sample '1' again"):
        read_labels(tmp_path / "labels.jsonl", words_judge(), ["shapes"])


def test_the_draw_hangs_on_the_run() -> None:
    keys = [TrialKey("t", str(number)) for number in range(50)]
    assert draw_order("one", keys) == draw_order("one", reversed(keys))
    assert draw_order("one", keys) != draw_order("two", keys)
    with pytest.raises(DataError, match="no verdict of the judge"):
        check_draw({TrialKey("t", "unknown"): 1.0}, keys)


def test_a_judge_that_was_not_asked_is_refused_with_those_that_were(judged: Path) -> None:
    with pytest.raises(UsageError, match=r"judge 'min' was not asked .*did you mean 'mine'"):
        draw_replies(judged, "min", 5)


def test_the_command_draws_and_takes(judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = tmp_path / "labels.jsonl"
    assert run_command(["judge", "label", judged, "--judge", "mine", "--count", 20, "-o", drawn]) == 0
    rows = [json.loads(line) for line in drawn.read_text().splitlines()]
    drawn.write_text("".join(json.dumps(row | {"label": truth(row)}) + "\n" for row in rows))
    assert run_command(["judge", "label", judged, "--judge", "mine", "--labels", drawn]) == 0
    assert "judge_calibrated" in capsys.readouterr().out
    assert run_command(["judge", "label", judged, "--judge", "mine"]) == 2
    assert run_command(["judge", "label", judged, "--judge", "mine", "--count", 5]) == 2


def test_a_pair_of_grades_gives_a_ratio_with_its_interval(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", count=40, pictures=1)
    pair = read_judge({"prompt": PROMPT, "verdict": "pair", "scale": [1, 10]}, "pair")
    ask_about(folder, pair, judge_model(lambda request, answer: {"reference": 8, "answer": 4 if "(" in answer else 6}))
    metrics = results(folder)["metrics"]
    ratio = metrics["judge_relative"]
    assert ratio["value"] == pytest.approx(metrics["judge"]["value"] / metrics["judge_reference"]["value"])
    assert ratio["ci95"][0] < ratio["value"] < ratio["ci95"][1]


def test_a_judge_after_another_sees_only_what_that_one_extracted(tmp_path: Path, monkeypatch: Any) -> None:
    folder = make_run(tmp_path / "run", count=12, pictures=1)
    first = read_judge({"prompt": PROMPT, "verdict": "text", "compare": "exact", "metric": "found"}, "first")
    second = read_judge(WORDS | {"after": "first", "metric": "same"}, "second")
    monkeypatch.setattr("snellen.api.judges.load_judge", lambda name: {"first": first}[name])
    seen: list[str] = []

    def decide(request: Request, answer: str) -> dict[str, Any]:
        if request.key.task.endswith("@first"):
            return {"answer": f"extract of {len(answer)}"}
        seen.append(answer)
        return {"verdict": "RIGHT"}

    ask_about(folder, second, judge_model(decide))
    assert seen
    assert all(answer.startswith("extract of ") for answer in seen)
    metrics = results(folder)["metrics"]
    assert metrics["same"]["value"] == 1.0
    assert metrics["found"]["value"] == 0.0


def test_another_model_is_not_mixed_with_the_first(judged: Path) -> None:
    with pytest.raises(RunMismatch, match=r"judge 'mine' was asked otherwise before .*move .*judge-mine away first"):
        ask_about(judged, words_judge(), judge_model(generous, "openai/another"))


def test_the_votes_of_a_judge_are_no_run_to_rank(judged: Path) -> None:
    assert find_runs([judged.parent]) == [judged]


def test_the_figures_of_a_benchmark_are_made_of_the_verdicts_too(tmp_path: Path) -> None:
    figures = (
        Figure("aAcc"),
        Figure("pages", rule="all-of-group", by=("page", "shape")),
        Figure("both", rule="mean-of", of=("aAcc", "pages")),
    )
    task = structs.replace(make_task(), figures=figures, headline="both")
    folder = make_run(tmp_path / "run", count=48, pictures=1, task=task)
    lenient = read_judge(WORDS | {"metric": "lenient", "rule": "accuracy"}, "mine")
    ask_about(folder, lenient, judge_model(lambda request, answer: {"verdict": "RIGHT"}))
    metrics = results(folder)["metrics"]
    assert metrics["lenient_aAcc"]["value"] == metrics["lenient_pages"]["value"] == 1.0
    assert metrics["lenient_both"]["value"] == 1.0
    assert metrics["both"]["value"] < 1.0, "the rule's own figures stay"


def test_labels_can_be_asked_for_one_by_one_and_stopped(
    judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = iter(["RIGHT", "perhaps", "0", "q", *["RIGHT"] * 10])
    monkeypatch.setattr("click.prompt", lambda *arguments, **options: next(words))
    ask = ["judge", "label", judged, "--judge", "mine", "--count", 12, "-o", tmp_path / "labels.jsonl", "--ask"]
    assert run_command(ask) == 0
    assert "2 labels are too few" in capsys.readouterr().out
    assert run_command(ask) == 0, "the same command goes on where it was stopped"
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == [1.0, 0.0, *[1.0] * 10]
    assert "judge_calibrated" in capsys.readouterr().out


def test_a_file_of_labels_is_never_written_over(judged: Path, tmp_path: Path) -> None:
    draw = ["judge", "label", judged, "--judge", "mine", "--count", 12, "-o", tmp_path / "labels.jsonl"]
    assert run_command(draw) == 0
    assert run_command(draw) == 2
