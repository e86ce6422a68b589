"""ReForm-Eval's own scorer on its prediction files, equalled in profile `reform`."""

import json
from pathlib import Path
from typing import Any

import pytest

from snellen import score_predictions
from snellen.core.errors import DataError, UsageError
from snellen.extract.profiles import reform_index
from snellen.scoring.aggregates.caption_scores import missing_reason
from snellen.scoring.aggregates.instability import round_trend
from snellen.scoring.scorers import key_values as kie
from snellen.scoring.scorers import word_accuracy as ocr
from snellen.scoring.scorers.vqa import ARTICLES, CONTRACTIONS, NUMBER_WORDS, PUNCTUATION, normalise_vqa

GOLDEN = Path(__file__).parent / "data" / "reform"

NAMES = {
    "score": "accuracy",
    "format_hit_rate": "format_hit_rate",
    "instability_entropy": "instability",
    "round_corr": "round_correlation",
    "round_slope": "round_slope",
}
RIGHT_RESULTS = {
    "sc_gen_answer_text": {"accuracy": 1.0},
    "kie_list_answer": {"accuracy": 1.0},
    "gen_newline_prediction": {"bleu_1": 0.7117665802914107},
}
"""Cases that crash or hang the original and have a right result here; all other such cases are clear errors."""


def cases() -> list[Any]:
    """Return the recorded cases; of those that start Java, which takes seconds, all but one are asked by night."""
    names = sorted(path.stem for kind in ("sc", "ocr", "kie", "gen", "bad") for path in GOLDEN.glob(f"{kind}_*.json"))
    java = {name for name in names if name.startswith("gen_")} - {"gen_basic"}
    return [pytest.param(name, marks=[pytest.mark.nightly] if name in java else []) for name in names]


def load(name: str) -> dict:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def score(case: dict) -> dict:
    chosen = {key: case["args"][key] for key in ("infer_method", "eval_stability", "multi_round_eval")}
    return score_predictions(case["records"], case["args"]["formulation"], profile="reform", **chosen)["metrics"]


@pytest.mark.parametrize("name", cases())
def test_outside_predictions_equal_the_original(name: str) -> None:
    case = load(name)
    if name.startswith("gen_") and (reason := missing_reason()):
        pytest.skip(f"METEOR {reason}")
    if case["error"]:
        check_where_the_original_fails(name, case)
        return
    metrics = score(case)
    expected = {NAMES[key]: value for key, value in case["expected"].items() if key in NAMES} | case["expected"].get(
        "generation", {}
    )
    assert expected
    for metric, value in expected.items():
        assert metrics[metric]["value"] == (None if value == "nan" else pytest.approx(value, abs=1e-9)), metric


def check_where_the_original_fails(name: str, case: dict) -> None:
    if name in RIGHT_RESULTS:
        metrics = score(case)
        assert {key: metrics[key]["value"] for key in RIGHT_RESULTS[name]} == pytest.approx(RIGHT_RESULTS[name])
        return
    with pytest.raises((DataError, UsageError)) as caught:
        score(case)
    assert "\n" not in str(caught.value)


def test_single_choice_parser_rows() -> None:
    for row in load("fn_singlechoice_metric")["rows"]:
        if (
            row["alphabet"] == "all"
            and row["options"] is None
            and "ok" in row["out"]
            and isinstance(row["prediction"], str)
        ):
            correct, index = row["out"]["ok"]
            assert reform_index(row["prediction"]) == index, row
            assert int(index == int(row["answer"])) == correct


def test_kie_rows_and_tables() -> None:
    golden = load("fn_kie_metric")
    lower = {key: value for key, value in golden["contractions"].items() if key == key.lower() and key != value}
    assert lower == CONTRACTIONS
    assert golden["number_words"] == NUMBER_WORDS
    assert set(golden["articles"]) == ARTICLES
    assert set(golden["punct"]) <= set(PUNCTUATION)
    for row in golden["rows"]:
        out = row["out"]["ok"]
        assert kie.contains_reform(row["prediction"], row["answer"]) == bool(out if isinstance(out, int) else out[0]), (
            row
        )
        if "norm_pred" in row:
            assert normalise_vqa(row["prediction"]) == row["norm_pred"]
            assert normalise_vqa(row["answer"]) == row["norm_answer"]


def test_ocr_rows() -> None:
    for row in load("fn_ocr_metric")["rows"]:
        assert ocr.contains_reform(row["prediction"], row["answer"]) == bool(row["out"]["ok"][0]), row
        assert ocr.strip_reform(row["prediction"]) == row["norm_pred"]


def test_round_rows() -> None:
    for row in load("fn_multi_round")["rows"]:
        correlation, slope = row["out"]["ok"]
        trend = round_trend([(number, values) for number, values in row["rounds"]])
        assert trend.correlation == (None if correlation == "nan" else pytest.approx(correlation, abs=1e-9))
        assert trend.slope == pytest.approx(slope, abs=1e-9)
