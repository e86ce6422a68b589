"""Own data whose records are of several forms: each is asked and scored as its own, nothing is dropped in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.api.load import load_run
from snellen.core.errors import DataError, UsageError
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers import by_form, number_match, open_answer, option_choice

CHOICE = {"id": "c", "question": "Which animal?", "options": ["cat", "dog"], "answer": "B"}
OPEN = {"id": "o", "question": "Capital of France?", "answer": "Paris"}
YESNO = {"id": "y", "question": "Is it day?", "answer": "Yes"}
NUMBER = {"id": "n", "question": "How many?", "answer": 4, "question_type": "integer"}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def answers_for(path: Path, task: Path, **settings: Any) -> Path:
    """Write what a server that knows the answers must know."""
    entries = [
        {
            "question": sample.question,
            "answer": sample.answers[0] if sample.answers else "?",
            "options": list(sample.options),
            "images": [],
        }
        for sample in snellen.load_dataset(str(task), **settings)
    ]
    return write(path, *entries)


def ask(
    task: Path, mock_server: Callable[..., Any], tmp_path: Path, **settings: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    server = mock_server("--answers", answers_for(tmp_path / "answers.jsonl", task))
    result = snellen.run(
        str(task), "openai/mock", base_url=server.base_url, output_dir=tmp_path / "run", cache=False, **settings
    )
    with load_run(result.folder) as run:
        prompts = {trial.sample.id: trial.request.messages[-1].text for trial in run.trials(task.stem)}
    return result.results["tasks"][task.stem], prompts


@pytest.mark.parametrize("rows", [(CHOICE, OPEN, YESNO, NUMBER), (NUMBER, OPEN, YESNO, CHOICE)])
def test_a_mixed_file_is_right_in_any_order(
    rows: tuple[dict[str, Any], ...], mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    found, prompts = ask(write(tmp_path / "mixed.jsonl", *rows), mock_server, tmp_path)
    accuracy = found["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["unscored"]) == (1.0, 4, 0)
    assert set(found["groups"]["form"]) == {"choice", "open", "yesno", "number"}
    assert "A. cat\nB. dog" in prompts["c"]
    assert "letter" not in prompts["o"] + prompts["y"] + prompts["n"]
    assert "yes or no" in prompts["y"]


def test_mapped_options_are_shown_and_rows_without_them_are_open(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    rows = ({"id": "o", "question": "Where?", "answer": "here"}, {**CHOICE, "picks": CHOICE["options"]})
    del rows[1]["options"]
    task = write(tmp_path / "mapped.jsonl", *rows)
    server = mock_server("--answers", answers_for(tmp_path / "a.jsonl", task, columns={"options": "picks"}))
    result = snellen.run(
        str(task),
        "openai/mock",
        base_url=server.base_url,
        columns={"options": "picks"},
        output_dir=tmp_path / "run",
        cache=False,
    )
    accuracy = result.results["tasks"]["mapped"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (1.0, 2)


def test_a_record_without_an_answer_is_unscored_by_name(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    unanswered = {"id": "u", "question": "Which?", "options": ["x", "y"]}
    found, _ = ask(write(tmp_path / "unanswered.jsonl", CHOICE, unanswered), mock_server, tmp_path)
    accuracy = found["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["unscored"]) == (1.0, 1, 1)
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert "no_reference" in json.dumps([record for record in records if "u" in json.dumps(record)])


def test_one_form_keeps_the_metrics_it_always_had(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    found, _ = ask(write(tmp_path / "open.jsonl", OPEN), mock_server, tmp_path)
    assert {"exact_match", "contains"} <= set(found["metrics"])
    assert "form" not in found["groups"]


def test_a_forced_form_holds_for_all_records(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    found, prompts = ask(write(tmp_path / "forced.jsonl", CHOICE, OPEN), mock_server, tmp_path, form="open")
    assert "B. dog" not in prompts["c"]
    assert "exact_match" in found["metrics"]


def test_a_forced_choice_without_options_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"record 1 has no options and the form is choice; --form auto"):
        snellen.run(str(write(tmp_path / "f.jsonl", OPEN)), "blind/first", form="choice", output_dir=tmp_path / "r")


def test_likelihood_of_several_forms_is_refused_by_name(tmp_path: Path) -> None:
    task = write(tmp_path / "l.jsonl", CHOICE, OPEN)
    with pytest.raises(UsageError, match="several forms"):
        snellen.run(str(task), "blind/first", infer_method="likelihood", output_dir=tmp_path / "r")


def test_a_system_text_keeps_the_instruction(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    overrides = (("prompt.system", "Be brief."),)
    _, prompts = ask(write(tmp_path / "system.jsonl", CHOICE, OPEN), mock_server, tmp_path, overrides=overrides)
    assert "Answer with the letter" in prompts["c"]
    assert "short phrase" in prompts["o"]


def scored(scorer: Any, sample: Sample, reply: str) -> Any:
    key = TrialKey("t", sample.id)
    return scorer.score(sample, Request(key, ()), Prediction(key, text=reply), {})[0]


@pytest.mark.parametrize(
    ("reply", "value"), [("4", 1.0), ("The answer is 4.", 1.0), ("5", 0.0), ("four or 3 and 2", None), ("", None)]
)
def test_a_number_is_read_or_left_unscored(reply: str, value: float | None) -> None:
    sample = Sample("n", "t", Form.NUMBER, "How many?", answers=("4",))
    assert scored(number_match, sample, reply).value == value
    assert scored(by_form, sample, reply).metric == "accuracy"


@pytest.mark.parametrize(
    ("gold", "reply", "value"),
    [
        ("0.5", "50 %", 1.0),
        ("50 %", "0.5", 1.0),
        ("50", "50 percent", 1.0),
        ("50 %", "50", 1.0),
        ("50", "0.5", 0.0),
        ("0.5 %", "50 %", 0.0),
        ("1,234", "The total is 1234.", 1.0),
    ],
)
def test_a_share_is_the_same_number_in_percent(gold: str, reply: str, value: float) -> None:
    assert scored(number_match, Sample("n", "t", Form.NUMBER, "?", answers=(gold,)), reply).value == value


@pytest.mark.parametrize(
    ("answer", "reply", "value"), [("3", "3.0", 1.0), ("3", "There are three", 1.0), ("007", "7", 0.0)]
)
def test_an_open_answer_that_is_a_number_is_read_as_one_and_a_code_is_not(
    answer: str, reply: str, value: float
) -> None:
    assert scored(open_answer, Sample("n", "t", Form.OPEN, "?", answers=(answer,)), reply).value == value


def test_no_known_answer_is_no_wrong_answer() -> None:
    choice = Sample("c", "t", Form.CHOICE, "Which?", options=("cat", "dog"))
    assert scored(option_choice, choice, "A").reason == "no_reference"
    assert scored(number_match, Sample("n", "t", Form.NUMBER, "?"), "4").reason == "no_reference"


@pytest.mark.parametrize("reply", ["Yes.", "True", "yes"])
def test_a_truth_value_is_the_answer_to_a_yes_no_question(tmp_path: Path, reply: str) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "question": "Is it?", "answer": true}\n')
    (tmp_path / "replies.jsonl").write_text(json.dumps({"id": "1", "text": reply}) + "\n")
    result = snellen.run(
        str(tmp_path / "rows.jsonl"), f"replay/{tmp_path / 'replies.jsonl'}", output_dir=tmp_path / "run"
    )
    assert result.results["tasks"]["rows"]["metrics"]["accuracy"]["value"] == 1.0


def test_a_path_into_a_record_is_a_field_as_in_score(tmp_path: Path) -> None:
    rows = [
        {
            "meta": {"key": f"k{n}", "kind": "animals"},
            "messages": [{"role": "user", "content": f"Which animal, {n}?"}, {"role": "assistant", "content": "cat"}],
            "choices": {"list": ["cat", "dog"]},
        }
        for n in range(2)
    ]
    file = write(tmp_path / "chats.jsonl", *rows)
    paths = {"question": "messages[0].content", "answer": "messages[-1].content"}
    told = paths | {"options": "choices.list", "id": "meta.key"}
    samples = list(snellen.load_dataset(str(file), columns=told))
    assert [(one.id, one.question, one.options, one.answers) for one in samples] == [
        (f"k{n}", f"Which animal, {n}?", ("cat", "dog"), ("cat",)) for n in range(2)
    ]
    result = snellen.run(str(file), "blind/first", columns=told, output_dir=tmp_path / "run")
    assert result.metrics["chats"]["accuracy"].value == 1.0
    with pytest.raises(DataError, match=r"messages\[9\]\.content"):
        list(snellen.load_dataset(str(file), columns=told | {"answer": "messages[9].content"}))


def test_a_column_that_is_called_like_a_path_is_that_column(tmp_path: Path) -> None:
    file = write(tmp_path / "flat.jsonl", {"q.text": "Capital of France?", "q": {"text": "another"}, "answer": "Paris"})
    (sample,) = snellen.load_dataset(str(file), columns={"question": "q.text"})
    assert sample.question == "Capital of France?"
