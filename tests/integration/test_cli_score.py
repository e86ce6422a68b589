"""`snellen score` as a user types it."""

import json
from pathlib import Path

import pytest

from snellen.cli.main import main

pytestmark = pytest.mark.usefixtures("own_folder")
RECORDS = [
    {
        "sample_id": f"s{i}",
        "answer": 0,
        "answer_options": ["yes", "no"],
        "prediction": "(A) yes" if i else "(B)",
        "round_id": i,
    }
    for i in range(4)
]


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(RECORDS))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_the_json_contract(capsys: pytest.CaptureFixture[str], predictions: Path) -> None:
    code, out, _ = run(
        capsys,
        "score",
        predictions,
        "--formulation",
        "SingleChoice",
        "--eval-stability",
        "--multi-round-eval",
        "--profile",
        "reform",
        "--json",
    )
    result = json.loads(out)
    assert code == 0
    assert result["n"] == 4
    printed = {"accuracy", "format_hit_rate", "instability", "round_correlation", "round_slope"}
    assert printed <= set(result["metrics"])
    accuracy = result["metrics"]["accuracy"]
    assert accuracy["value"] == 0.75
    assert accuracy["ci95"][0] < 0.75 < accuracy["ci95"][1]
    assert Path(result["folder"], "run.db").is_file()


def test_the_names_with_underscores_of_the_original_work_too(
    capsys: pytest.CaptureFixture[str], predictions: Path
) -> None:
    code, out, _ = run(
        capsys, "score", predictions, "--formulation", "SingleChoice", "--eval_stability", "--multi_round_eval"
    )
    assert code == 0
    assert "instability" in out and "round_slope" in out


def test_records_of_several_inferences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    annotations, answers, output = tmp_path / "data.json", tmp_path / "answers.json", tmp_path / "run"
    annotations.write_text(
        json.dumps(
            [{"question_id": "q1", "question": "What is this?", "options": ["a", "b"], "answer": "B", "sub_task": "x"}]
        )
    )
    answers.write_text(
        json.dumps(
            [
                {
                    "question_id": "q1",
                    "question": "What is this?",
                    "answer": {f"inference_{i}": "AB"[i != 2] for i in range(5)},
                }
            ]
        )
    )
    arguments = (
        "score",
        answers,
        "--formulation",
        "MultiInference",
        "--annotations",
        annotations,
        "--detailed-keys",
        "sub_task",
        "--output",
        output,
    )
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    assert json.loads(out)["groups"]["sub_task"]["x"]["accuracy"]["value"] == 0.8
    assert run(capsys, "report", output, "--export", "flageval", "-o", tmp_path / "files")[0] == 0
    (record,) = json.loads((tmp_path / "files" / "answers.json").read_text())
    assert record["inference_scores"] == [1, 1, 0, 1, 1]
    assert list(record) == [
        "question_id",
        "question",
        "answer",
        "multiple_raw_answers",
        "correct",
        "inference_scores",
        "num_inferences",
    ]
    assert "sub_task = x" in run(capsys, *arguments)[1]


@pytest.mark.parametrize(
    "damage", [b"", b"[", b'[{"sample_id":1}]', b'\xff[{"a":1}]', b'[{"a":NaN}]', b"x" * 5_000_000]
)
def test_a_bad_file_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(damage)
    code, out, err = run(capsys, "score", path, "--formulation", "SingleChoice", "--json")
    assert (code, json.loads(out)["error"]["exit_code"]) == (2, 2)
    assert err.startswith("error: ") and err.count("\n") == 1 and len(err) < 400


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str], predictions: Path, tmp_path: Path) -> None:
    assert "cannot read" in run(capsys, "score", tmp_path / "none.json", "--formulation", "SingleChoice")[2]
    code, _, err = run(capsys, "score", tmp_path, "--profile", "reform")
    assert code in (2, 3) and str(tmp_path) in err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "score", "--help")
    assert code == 0
    assert "snellen score predictions.json --formulation SingleChoice" in out


def test_a_run_folder_is_scored_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snellen.api import score as api_score

    metrics = {"accuracy": {"value": 0.5, "stderr": None, "ci95": None, "n": 2, "unscored": 0, "failed": 0}}
    seen = {}
    monkeypatch.setattr(
        api_score, "score", lambda folder, **options: seen.update(options) or {"tasks": {"t": {"metrics": metrics}}}
    )
    monkeypatch.setattr("snellen.cli.score.written_where", lambda folder, results: "")
    code, out, _ = run(capsys, "score", tmp_path, "--profile", "reform", "--json")
    assert (code, json.loads(out)["tasks"]["t"]["metrics"], seen["profile"]) == (0, metrics, "reform")
    assert "accuracy" in run(capsys, "score", tmp_path)[1]


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_scorer_of_ones_own_reads_a_stored_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    replies = {"truck-red": "It is red.", "truck-green": "red or green", "truck-blue": "hm", "truck-orange": "blue"}
    lines = [json.dumps({"sample": sample, "text": text}) for sample, text in replies.items()]
    (tmp_path / "replies.jsonl").write_text("\n".join(lines))
    asked = [EXAMPLES / "colours" / "questions.jsonl", "--model", f"replay/{tmp_path / 'replies.jsonl'}"]
    assert run(capsys, "run", *asked, "-o", "run")[0] == 0
    plugin = ["--plugin", EXAMPLES / "my_scorer.py"]
    code, out, _ = run(capsys, "score", "run", *plugin, "--json")
    metric = json.loads(out)["tasks"]["questions"]["metrics"]["colour_named"]
    assert (code, metric["value"], metric["read"]["n"]) == (0, (1.0 + 0.5 + 0.0 + 0.0) / 4, 3)
    assert (tmp_path / "run" / "results-colour_named.json").exists()
    assert run(capsys, "score", "run", "--scorer", "contains", "--json")[0] == 0
    code, _, err = run(capsys, "score", "run", "--scorer", "colour_named")
    assert code == 2 and "--plugin FILE" in err
    code, out, _ = run(
        capsys, "run", *asked, *plugin, "-p", 'scorers=["choice", "colour_named"]', "-o", "both", "--json"
    )
    assert {"accuracy", "colour_named"} <= set(json.loads(out)["tasks"]["questions"]["metrics"])
    code, out, _ = run(capsys, "score", "both", *plugin, "--json")
    assert {"accuracy", "colour_named"} <= set(json.loads(out)["tasks"]["questions"]["metrics"]), "its own scorers stay"
