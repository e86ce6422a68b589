"""A model that finds answers which a protocol's rule leaves unread: asked about those alone, once, and paid for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snellen
from benchmark_rows import struct
from command_line import json_of, run_command
from judge_doubles import ServedJudge, said, serving
from snellen.api.judges import rest_of
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.kits.bridges.scored_files import score_file

REPLIES = {
    "r0": "(A)",  # by rule: right
    "r1": "(B)",  # by rule: wrong
    "m0": "It is the first one. SAYS(A)",  # the extractor finds the right option
    "m1": "It is the first one, too. SAYS(A)",
    "m2": "It is the second one. SAYS(B)",  # ... another one
    "m3": "Hard to tell. SAYS()",  # it says that there is none
    "m4": "Well. BABBLES",  # it gives no valid reply
    "m5": "Well, well. FAILS",  # its call fails
}
RIGHT = 3
ASKED = 6


class Extractor(ServedJudge):
    """Says of a reply what the reply itself tells it to."""

    models = ("finder", "other")
    asked: ClassVar[list[str]] = []

    def decide(self, prompt: str, case: str, answer: str) -> tuple[int, dict[str, Any]]:
        assert "(A) left\n(B) right" in prompt, "options have the letters that the model saw"
        self.asked.append(answer)
        if "FAILS" in answer:
            return 400, {"error": {"message": "not this one"}}
        named = answer.partition("SAYS")[2]
        found = json.dumps({"case": case, "answer": named if named != "()" else ""})
        text = "I would rather not." if "BABBLES" in answer else found
        return 200, said(text, usage={"prompt_tokens": 1000, "completion_tokens": 100})


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    Extractor.asked.clear()
    with serving(Extractor) as url:
        yield url


def asking(url: str, **more: Any) -> dict[str, Any]:
    return {"base_url": url, "price": "1,10", "max_workers": 1, **more}


def row(name: str) -> dict[str, Any]:
    question = {"idx": name, "question": "Which side?", "sub_task": "Counting", "choices": ["left", "right"]}
    return question | {"answer": "(A)", "prompt": "Which side?\n(A) left\n(B) right"}


def rows_file(folder: Path) -> Path:
    """The questions with the replies: the columns that the benchmark has."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({**row(name), "response": reply}) + "\n" for name, reply in REPLIES.items()))
    return path


def run_arguments(folder: Path) -> dict[str, Any]:
    """The settings of a run whose model gives these replies."""
    table = [{**row(name), "image_1": struct(number)} for number, name in enumerate(REPLIES)]
    (folder / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(table), folder / "data" / "val-0.parquet")
    lines = [{"sample": name, "text": reply} for name, reply in REPLIES.items()]
    (folder / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {
        "model": f"replay/{folder / 'replies.jsonl'}",
        "protocol": "official",
        "overrides": (("dataset.path", str(folder / "data")),),
        "output_dir": folder / "run",
    }


def check(task: dict[str, Any]) -> None:
    """The number is the known one, and its name says who found the answers."""
    estimate = task["metrics"]["accuracy"]
    assert (estimate["value"], estimate["n"]) == (RIGHT / len(REPLIES), len(REPLIES))
    assert estimate["read"]["n"] == 5
    assert estimate["bounds"] == [RIGHT / len(REPLIES), (RIGHT + 3) / len(REPLIES)]
    told = task["protocol"]["extractor"]
    assert (told["model"], told["of_tool"], told["asked"]) == ("openai/finder", "gpt-3.5-turbo", ASKED)
    assert f"with extractor openai/finder (blink@{told['version']})" in told["called"]
    assert task["protocol"]["peer"] is None, "the tool asks another model in other words: nobody knows what it prints"


def test_a_file_is_read_by_rule_first_and_the_rest_by_the_model(tmp_path: Path, url: str) -> None:
    told = {"task": "blink", "protocol": "official", "output": tmp_path / "run"}
    found = score_file(rows_file(tmp_path), extractor="openai/finder", extractor_settings=asking(url), **told)
    assert len(Extractor.asked) == ASKED, "what the rule reads is not asked about"
    assert found["reasons"] == {
        "the extractor found no answer": 1,
        "the extractor gave no valid reply": 1,
        "the extractor's call failed": 1,
    }
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    check(results["tasks"]["blink"])
    assert results["run"]["reading"]["extractor"] == "openai/finder"
    assert any("with extractor openai/finder" in note for note in found["notes"])
    assert not any("without its extractor" in note for note in found["notes"])


def test_a_run_asks_its_extractor_after_the_last_reply(tmp_path: Path, url: str) -> None:
    told = run_arguments(tmp_path)
    result = snellen.run("blink", **told, extractor="openai/finder", extractor_settings=asking(url))
    check(result.results["tasks"]["blink"])
    cost = result.results["tasks"]["blink"]["protocol"]["extractor"]["cost"]
    assert (cost["replies"], cost["value"]) == (5, pytest.approx(5 * (1000 * 1 + 100 * 10) / 1e6))
    assert result.results["cost_of_extractors"]["value"] == cost["value"]
    again = snellen.run("blink", **told, extractor="openai/finder", extractor_settings=asking(url))
    assert again.results["tasks"]["blink"]["metrics"] == result.results["tasks"]["blink"]["metrics"]
    assert len(Extractor.asked) - ASKED <= 1, "nothing is asked twice but the call that failed"


def test_a_run_is_read_with_several_extractors_each_kept_under_its_name(tmp_path: Path, url: str) -> None:
    snellen.run("blink", **run_arguments(tmp_path))
    folder = tmp_path / "run"
    before = (folder / "results.json").read_bytes()
    told = [part for name, value in asking(url).items() for part in ("--extractor-arg", f"{name}={value}")]
    results = json_of("score", folder, "--extractor", "openai/finder", *told, "--json")
    check(results["tasks"]["blink"])
    assert (folder / "results.json").read_bytes() == before, "the run's own reading stays"
    assert (folder / "results-extractor-openai-finder.json").is_file()
    snellen.score(folder, extractor="openai/other", extractor_settings=asking(url))
    assert (folder / "results-extractor-openai-other.json").is_file()
    assert len(Extractor.asked) == 2 * ASKED
    plain = snellen.score(folder)["tasks"]["blink"]
    assert plain["protocol"]["extractor"]["called"] == "official reader without its extractor"
    assert plain["metrics"]["accuracy"]["value"] == 1 / len(REPLIES)
    assert "--extractor MODEL" in plain["unread"]["next"]


def test_an_extraction_that_reached_its_limit_goes_on_and_asks_nothing_twice(tmp_path: Path, url: str) -> None:
    told = run_arguments(tmp_path) | {"extractor": "openai/finder"}
    with pytest.raises(EnvironmentProblem, match="extractor openai/finder is not finished"):
        snellen.run("blink", **told, extractor_settings=asking(url, max_cost=0.003))
    assert len(Extractor.asked) == 1, "a reply costs 0.002"
    half = snellen.score(tmp_path / "run")["tasks"]["blink"]["metrics"]["accuracy"]
    assert half["read"]["n"] == 3
    assert half["bounds"][0] < RIGHT / len(REPLIES) <= half["bounds"][1], "what was not asked yet is unread"
    result = snellen.run("blink", **told, extractor_settings=asking(url))
    check(result.results["tasks"]["blink"])
    assert sorted(Extractor.asked) == sorted(set(Extractor.asked)), "each reply once"


def test_what_a_run_leaves_of_its_limits_is_its_extractors() -> None:
    settings = snellen.RunSettings(tasks=("blink",), model="openai/x", max_cost=5.0, deadline_s=60.0)
    assert rest_of(settings, 3.0, 50.0) == {"max_cost": 2.0, "deadline_s": 10.0}
    with pytest.raises(EnvironmentProblem, match="every reply is kept"):
        rest_of(settings, 5.0, 1.0)


def test_every_process_reads_what_the_extractor_found(tmp_path: Path, url: str) -> None:
    snellen.run("blink", **run_arguments(tmp_path), extractor="openai/finder", extractor_settings=asking(url))
    results = snellen.score(tmp_path / "run", executor="processes", replicas=1)
    check(results["tasks"]["blink"])


def test_an_extractor_is_refused_where_no_tool_asks_one(tmp_path: Path, url: str) -> None:
    run = run_arguments(tmp_path)
    told = run | {"protocol": "lmms-eval"}
    with pytest.raises(UsageError, match=r"blink \(lmms-eval\)"):
        snellen.run("blink", **told, extractor="openai/finder", extractor_settings=asking(url))
    with pytest.raises(UsageError, match="--extractor"):
        snellen.run("blink", **told, extractor_settings=asking(url))
    with pytest.raises(UsageError, match="'absent'"):
        snellen.run("blink", **run, extractor="openai/absent", extractor_settings=asking(url))
    with pytest.raises(UsageError, match="max_tokens"):
        snellen.run("blink", **run, extractor="openai/finder", extractor_settings={"max_tokens": 5})
    assert not (tmp_path / "run" / "run.db").exists(), "nothing was asked"
    assert run_command(["score", rows_file(tmp_path), "--extractor", "openai/finder"]) == 2


class Grader(ServedJudge):
    """Says that whatever is under judgement is right, if it says so itself."""

    asked: ClassVar[list[str]] = []

    def decide(self, prompt: str, case: str, answer: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(answer)
        return 200, said(json.dumps({"case": case, "verdict": "CORRECT" if "RIGHT" in answer else "INCORRECT"}))


def test_a_model_that_says_right_or_wrong_gives_the_protocols_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TempCompass's rule reads letters; whether any other reply is right its model says, whatever our reader reads."""
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    replies = ["A. up", "B", "The answer is B, RIGHT", "The answer is A"]
    rows = [
        {"id": f"t{n}", "options": ["up", "down"], "answer": "A", "question": "Which way?", "response": reply}
        for n, reply in enumerate(replies)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    told = {"task": "tempcompass", "protocol": "official", "output": tmp_path / "run"}
    with serving(Grader) as url:
        found = score_file(
            tmp_path / "rows.jsonl", extractor="openai/local-judge", extractor_settings={"base_url": url}, **told
        )
    assert sorted(Grader.asked) == sorted(replies[2:])
    assert (found["value"], found["unread"]) == (0.5, 0)
