"""A benchmark with its judge, over the wire and by the command line: asked, judged, labelled, corrected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snellen
from benchmark_rows import struct
from command_line import run_command
from judge_doubles import ServedJudge, said, serving
from snellen.core.errors import RunMismatch

REPLIES = {True: "A red door, I think.", False: "A blue door."}


class GenerousJudge(ServedJudge):
    """Grades 1 for a red door and half for any other: too much."""

    asked = 0

    def decide(self, prompt: str, case: str, answer: str) -> tuple[int, dict[str, object]]:
        type(self).asked += 1
        grade = json.dumps({"case": case, "verdict": 1.0 if "red" in answer else 0.5})
        return 200, said(grade, model="local-judge")


@pytest.fixture
def judge_url() -> Iterator[str]:
    GenerousJudge.asked = 0
    with serving(GenerousJudge) as url:
        yield url


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    return answered(tmp_path, 40)


def answered(tmp_path: Path, count: int) -> Path:
    """Questions of MM-Vet, of which every second is answered rightly."""
    rows = [
        {"question_id": f"v{n}", "question": f"Which door, {n}?", "answer": "red", "capability": "rec"}
        | {"image": struct(n)}
        for n in range(count)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "mmvet.parquet")
    lines = [{"sample": f"v{n}", "text": REPLIES[n % 2 == 0]} for n in range(count)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    snellen.run(
        "mm-vet",
        f"replay/{tmp_path / 'replies.jsonl'}",
        overrides=(("dataset.path", str(tmp_path / "mmvet.parquet")),),
        output_dir=tmp_path / "run",
    )
    return tmp_path / "run"


def judge(run: Path, url: str, model: str = "openai/local-judge") -> dict[str, object]:
    result = snellen.score(run, judge_name="mm-vet", judge_model=model, base_url=url)
    task: dict[str, object] = result["tasks"]["mm-vet"]
    return task


def test_a_served_judge_grades_and_people_correct_it(
    run: Path, judge_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = judge(run, judge_url)
    assert task["metrics"]["mm_vet"]["value"] == pytest.approx(0.75)
    notes = " ".join(task["notes"])
    assert "judged by openai/local-judge; published numbers were judged by openai/gpt-4-0613: not comparable" in notes
    judge(run, judge_url)
    assert GenerousJudge.asked == 40, "what was judged is not asked again"
    lines = [json.loads(line) for line in (run / "verdicts-mm-vet.jsonl").read_text().splitlines()]
    assert len(lines) == 40
    assert {line["verdict"] for line in lines} == {1.0, 0.5}
    drawn = tmp_path / "labels.jsonl"
    assert run_command(["judge", "label", run, "--judge", "mm-vet", "--count", 20, "-o", drawn]) == 0
    rows = [json.loads(line) for line in drawn.read_text().splitlines()]
    drawn.write_text("".join(json.dumps(row | {"label": float("red" in row["reply"])}) + "\n" for row in rows))
    assert run_command(["judge", "label", run, "--judge", "mm-vet", "--labels", drawn, "--json"]) == 0
    corrected = json.loads(capsys.readouterr().out)["tasks"]["mm-vet"]["metrics"]["mm_vet_calibrated"]
    assert corrected["ci95"][0] <= 0.5 <= corrected["ci95"][1], "people say half are right"
    assert abs(corrected["value"] - 0.5) < 0.1


def test_another_judge_is_refused_while_the_first_one_s_verdicts_are_there(run: Path, judge_url: str) -> None:
    judge(run, judge_url)
    with pytest.raises(RunMismatch, match="verdicts of two judges are never mixed"):
        judge(run, judge_url, "openai/other-judge")


def test_without_a_judge_the_number_has_another_name(run: Path) -> None:
    metrics = snellen.score(run, judge_name="mm-vet")["tasks"]["mm-vet"]["metrics"]
    assert "contains_no_judge" in metrics
    assert "mm_vet" not in metrics


def test_a_local_checkpoint_can_judge_and_what_it_babbles_is_no_verdict(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tiny_checkpoints import checkpoint

    model = f"hf/{checkpoint('text')}"
    folder = answered(tmp_path, 2)
    task = snellen.score(folder, judge_name="mm-vet", judge_model=model)["tasks"]["mm-vet"]
    assert (task["metrics"]["mm_vet"]["value"], task["metrics"]["mm_vet"]["unscored"]) == (None, 2)
    assert task["judges"][0]["model"] == model
