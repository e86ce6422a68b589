"""What a run can do beyond asking once: several inferences, variants, early stopping, judges, re-scoring, other orders."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.core.errors import RunMismatch, UsageError
from twofaced_server import TwoFaced, twofaced


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def choice(tmp_path: Path) -> Path:
    draw = random.Random(5)
    path = tmp_path / "choice.jsonl"
    rows = [
        {
            "id": n,
            "question": f"Question {n}?",
            "options": [f"one {n}", f"two {n}", f"three {n}"],
            "answer": draw.choice("ABC"),
            "topic": n % 2,
        }
        for n in range(60)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def metrics(result: Any, task: str = "choice") -> dict[str, Any]:
    return result.results["tasks"][task]["metrics"]


def test_several_inferences_are_trials_of_their_own(choice: Path, tmp_path: Path) -> None:
    result = snellen.run(str(choice), "blind/random", num_infers=4, temperature=1.0, output_dir=tmp_path / "r")
    found = metrics(result)
    assert found["accuracy"]["n"] == 240
    assert {
        "accuracy_majority",
        "pass@2",
        "pass^2",
        "cons@4",
        "answer_entropy",
        "flip_rate",
        "accuracy_run_std",
    } <= set(found)
    assert (
        found["pass@4"]["value"] >= found["pass@2"]["value"] >= found["accuracy"]["value"] >= found["pass^2"]["value"]
    )
    assert result.results["tasks"]["choice"]["notes"]


def test_variants_keep_the_labels_right(choice: Path, mock_server: Callable[..., Any], tmp_path: Path) -> None:
    """A perfect reader stays perfect under every order, mark style and wording."""
    answers = tmp_path / "answers.jsonl"
    rows = [json.loads(line) for line in choice.read_text().splitlines()]
    entries = [
        {"question": row["question"], "answer": row["options"]["ABC".index(row["answer"])], "options": row["options"]}
        for row in rows
    ]
    answers.write_text("\n".join(map(json.dumps, entries)))
    server = mock_server("--answers", answers)
    variants = ("base", "order=1", "order=2&marks=number", "marks=lower", "wording=3")
    result = snellen.run(
        str(choice), "openai/mock", base_url=server.base_url, variants=variants, num_infers=2, output_dir=tmp_path / "r"
    )
    found = metrics(result)
    assert (found["accuracy"]["value"], found["accuracy"]["n"], found["instability"]["value"]) == (1.0, 600, 0.0)


def test_workers_and_completion_order_change_nothing(
    choice: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    server = mock_server("--reader", "verbose")
    tables = []
    for workers in (1, 7, 64):
        result = snellen.run(
            str(choice),
            "openai/mock",
            base_url=server.base_url,
            max_workers=workers,
            output_dir=tmp_path / f"r{workers}",
            cache=False,
        )
        tables.append(json.dumps(result.results["tasks"], sort_keys=True))
    assert len(set(tables)) == 1


def test_the_cache_answers_a_second_run_and_is_marked(
    choice: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "seen.jsonl"
    server = mock_server("--log", log)
    first = snellen.run(str(choice), "openai/mock", base_url=server.base_url, output_dir=tmp_path / "a")
    asked = len(log.read_text().splitlines())
    second = snellen.run(str(choice), "openai/mock", base_url=server.base_url, output_dir=tmp_path / "b")
    assert second.results["tasks"] == first.results["tasks"]
    assert second.state.cached == 57, "three are asked again, and agree"
    assert len(log.read_text().splitlines()) - asked == 3
    records = (tmp_path / "b" / "records.jsonl").read_text().splitlines()
    assert sum(json.loads(record)["cached"] for record in records) == 57


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        ({"overrides": (("prompt.template", "{question} Go. {options}"),)}, "{} Go. A. "),
        ({"prompt": {"template": "{question} Go. {options}"}}, "{} Go. A. "),
        ({"prompt_template": "{question} Go. {options}"}, "{} Go. A. "),
        (
            {"overrides": (("prompt.template", "{question} {options}"), ("prompt.instructions", ["Think."]))},
            "Think. {} ",
        ),
        ({"overrides": (("prompt.template", "{instruction} {question} {options}"),)}, "Answer with the letter"),
    ],
)
def test_a_template_that_is_told_is_sent_as_it_is_written(
    choice: Path, tmp_path: Path, told: dict[str, Any], sent: str
) -> None:
    faces = TwoFaced(names=("mock",))
    with twofaced(faces) as url:
        snellen.run(str(choice), "openai/mock", base_url=url, output_dir=tmp_path / "a", limit=1, **told)
    (asked,) = faces.texts
    assert sent.format("Question 0?") in asked
    assert ("Answer with" in asked) == sent.startswith("Answer with")


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"temperature": 0.5}, {"prompt_template": "{question}\n{options}"}, {"model": "blind/last"}]
)
def test_another_configuration_is_refused_and_more_workers_are_not(
    choice: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    base: dict[str, Any] = {"model": "blind/first", "output_dir": tmp_path / "r"}
    snellen.run(str(choice), **base)
    snellen.run(str(choice), **base, max_workers=3)
    if change.get("model") == "blind/last":
        change = {"model": "blind/longest"}
    with pytest.raises(RunMismatch, match=r"was .*, now "):
        snellen.run(str(choice), **(base | change))


def test_until_ci_stops_early_records_it_and_stays_stopped(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(
        "\n".join(json.dumps({"id": n, "question": f"q{n}", "options": ["a", "b"], "answer": "A"}) for n in range(2000))
    )
    settings: dict[str, Any] = {"output_dir": tmp_path / "r", "until_ci": 4.0}
    first = snellen.run(str(path), "blind/first", **settings)
    status = first.results["status"]
    assert status["until_ci"]["stopped"]
    assert status["complete"]
    assert not first.interrupted
    low, high = status["until_ci"]["interval"]
    assert high - low <= 0.08
    assert low <= 1.0 <= high
    accuracy = first.results["tasks"]["many"]["metrics"]["accuracy"]
    assert accuracy["n"] < 1500
    assert accuracy["ci95"] == [low, high], "one interval, and that which allows for having looked"
    written = json.loads((tmp_path / "r" / "results.json").read_text())
    assert written["tasks"]["many"]["metrics"]["accuracy"] == accuracy
    again = snellen.run(str(path), "blind/first", **settings)
    assert again.state.done == 0
    other = tmp_path / "other.jsonl"
    other.write_text(path.read_text())
    with pytest.raises(UsageError, match="one task at a time"):
        snellen.run((str(path), str(other)), "blind/first", until_ci=4.0)


def test_until_ci_does_not_take_questions_of_one_document_for_many(tmp_path: Path) -> None:
    """Half of the documents are right throughout: forty questions of the first four show next to nothing."""
    rows = (
        {"id": f"{n}", "group": f"d{n // 10}", "question": f"q{n}", "options": ["a", "b"], "answer": "AB"[n // 10 % 2]}
        for n in range(4000)
    )
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    result = snellen.run(str(path), "blind/first", output_dir=tmp_path / "r", until_ci=10.0)
    accuracy = result.results["tasks"]["documents"]["metrics"]["accuracy"]
    assert result.results["status"]["until_ci"]["groups"] > 40
    assert accuracy["ci95"][0] <= 0.5 <= accuracy["ci95"][1]
    assert accuracy["ci95"][0] <= accuracy["value"] <= accuracy["ci95"][1]


def test_a_run_is_scored_again_with_another_profile_without_asking(
    choice: Path, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    server = mock_server("--answer", "I would say B. one thing")
    before = metrics(snellen.run(str(choice), "openai/mock", base_url=server.base_url, output_dir=tmp_path / "r"))
    after = snellen.score(tmp_path / "r", profile="reform")["tasks"]["choice"]["metrics"]
    assert before["accuracy"]["n"] == 60
    assert after["accuracy"]["value"] == 0.0  # its parser wants "(B)"
    assert snellen.score(tmp_path / "r")["tasks"]["choice"]["metrics"]["accuracy"] == before["accuracy"]


def test_a_judge_is_a_second_run_beside_the_first(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "open.jsonl"
    path.write_text(
        "\n".join(json.dumps({"id": n, "question": f"What is thing {n}?", "answer": f"thing {n}"}) for n in range(5))
    )
    server = mock_server("--answer", "no verdict at all")
    folder = tmp_path / "r"
    snellen.run(str(path), "openai/mock", base_url=server.base_url, output_dir=folder)
    without = snellen.score(folder, judge_name="correctness")["tasks"]["open"]["metrics"]
    assert "exact_no_judge" in without
    assert "judge" not in without
    judged = snellen.score(folder, judge_name="correctness", judge_model="openai/mock", base_url=server.base_url)[
        "tasks"
    ]["open"]["metrics"]
    assert (judged["judge"]["n"], judged["judge"]["unscored"]) == (0, 5)  # never a guess
    assert "exact_no_judge" not in judged
    assert (folder / "judge-correctness" / "run.db").exists()
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert [set(record["scores"]) >= {"exact_match", "judge"} for record in records] == [True] * 5, (
        "verdicts are in the records too"
    )
    with pytest.raises(UsageError, match="--judge"):
        snellen.score(folder, judge_model="openai/mock")


def test_groups_are_those_asked_for(choice: Path, tmp_path: Path) -> None:
    result = snellen.run(str(choice), "blind/first", output_dir=tmp_path / "r", detailed_keys=("topic",))
    groups = result.results["tasks"]["choice"]["groups"]["topic"]
    assert set(groups) == {"0", "1"}
    assert sum(group["accuracy"]["n"] for group in groups.values()) == 60
