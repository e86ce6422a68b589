"""Recorded files of eight tools, read with every trial, score and failure accounted for (`data/bridges/*/expected.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.api.outputs import export
from snellen.kits.bridges.foreign_runs import import_predictions
from snellen.kits.bridges.second_opinions import second_opinion
from snellen.store.reader import RunReader

GOLDEN = Path(__file__).parent / "data" / "bridges"
CASES = [
    ("inspect", "*.eval", {}),
    ("inspect", "*.json", {}),
    ("evalscope", "", {}),
    ("evalscope", "predictions/dummy/*.jsonl", {}),
    ("every-eval-ever", "", {}),
    ("every-eval-ever", "data/*/*/*/*331f.json", {}),
    ("helm", "", {}),
    ("helm", "made*/scenario_state.json", {}),
    ("lm-eval/mc", "", {}),
    ("lm-eval/gen", "samples*.jsonl", {}),
    ("lmms-eval", "*samples*.jsonl", {}),
    ("nemo-evaluator", "", {"data": str(GOLDEN / "bench.jsonl")}),
    ("openai-evals", "*.jsonl", {}),
]


def read_trials(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return (sample, repeat) -> what is stored and scored, in the words of expected.json."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    with RunReader(folder) as reader:
        for trial, scores in reader.with_scores(reader.header().tasks[0].name):
            prediction = trial.prediction
            score = next((one for one in scores if one.metric == "accuracy"), None)
            outcome = "failed" if prediction.failure else "scored" if score and score.value is not None else "unscored"
            found[(trial.sample.id, prediction.key.repeat)] = {
                "outcome": outcome,
                "reply": prediction.text,
                "value": score.value if score else None,
                "answer": score.answer if score and outcome == "scored" else None,
                "loglikelihoods": list(prediction.loglikelihoods or ()),
                "images": len(trial.sample.images),
                "verdict": (prediction.detail.get("peer") or {}).get("verdict"),
                "failure": prediction.failure,
                "question": trial.sample.question,
            }
    return found


@pytest.mark.parametrize(("name", "pattern", "more"), CASES, ids=[f"{n}:{p or 'folder'}" for n, p, _ in CASES])
def test_a_recorded_file_is_read_with_every_trial_score_and_failure(
    name: str, pattern: str, more: dict[str, Any], tmp_path: Path
) -> None:
    path = next((GOLDEN / name).glob(pattern)) if pattern else GOLDEN / name
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    done = import_predictions(path, output=tmp_path / "run", **more)
    found = read_trials(done.folder)
    assert len(found) == expected["counts"]["trials"]
    for trial in expected["trials"]:
        sample = str(trial["index"] // 2) if "index" in trial else trial["sample"]
        own = found[(sample, trial["repeat"])]
        assert own["outcome"] == trial["outcome"], (trial, own)
        assert own["reply"] == trial["reply"], (trial, own)
        assert own["value"] == trial["value"], (trial, own)
        assert own["answer"] == trial["answer"], (trial, own)
        if trial.get("loglikelihoods"):
            assert own["loglikelihoods"] == trial["loglikelihoods"]
    metrics = done.results["tasks"][done.about["task"]]["metrics"]
    assert metrics["accuracy_strict"]["value"] == pytest.approx(expected["accuracy_strict"])
    accuracy = metrics["accuracy"]
    assert (accuracy["read"] or accuracy)["value"] == pytest.approx(expected["accuracy"])


@pytest.mark.parametrize("form", ["eee", "inspect"])
@pytest.mark.parametrize(("name", "pattern", "more"), CASES, ids=[f"{n}:{p or 'folder'}" for n, p, _ in CASES])
def test_what_was_read_is_written_out_and_read_again_the_same(
    name: str, pattern: str, more: dict[str, Any], form: str, tmp_path: Path
) -> None:
    path = next((GOLDEN / name).glob(pattern)) if pattern else GOLDEN / name
    first = import_predictions(path, output=tmp_path / "run", **more)
    files, _ = export(first.folder, form, tmp_path / "out")
    second = import_predictions(files[0], output=tmp_path / "again")
    before, after = (
        {key: {**trial, "images": 0, "verdict": "ours now"} for key, trial in read_trials(one.folder).items()}
        for one in (first, second)
    )
    for key, trial in before.items():
        failures = (trial.pop("failure"), after[key].pop("failure"))
        assert (failures[0] and failures[0].kind) == (failures[1] and failures[1].kind)
    assert after == before


def test_a_second_opinion_on_log_likelihoods_counts_what_the_file_counted(tmp_path: Path) -> None:
    found = second_opinion(GOLDEN / "lm-eval" / "mc", output=tmp_path / "run").summary
    assert (found["peer"]["value"], found["ours"]["value"], found["peer"]["reproduced"]) == (0.2, 0.2, None)
