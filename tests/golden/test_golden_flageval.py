"""FlagEvalMM's evaluators at three commits, equalled in profile `flageval` wherever they do not record a bug."""

import json
from pathlib import Path

import pytest

from snellen.core.errors import DataError
from snellen.scoring.outside.flageval import judge_blank, normalise_blank
from snellen.scoring.outside.predictions import OutsideResult, score_predictions

GOLDEN = Path(__file__).parent / "data" / "flageval"

SHIFTED = ("rejected_whole_item", "rejected_inference_first")
"""One rejected inference moves all later ones to other questions in the original; docs/golden-differences.md."""
NO_JUDGE = "single_llm_judge"
OVERWRITTEN = "single_detailed_key_named_accuracy"


def cases() -> list[str]:
    return sorted(path.stem for kind in ("multi", "single") for path in GOLDEN.glob(f"*__{kind}_*.json"))


def load(name: str) -> dict:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def score(case: dict, profile: str = "flageval") -> OutsideResult:
    keys = tuple(case["evaluator"].get("detailed_keys", ()))
    return score_predictions(
        case["predictions"], "MultiInference", annotations=case["annotations"], profile=profile, detailed_keys=keys
    )


@pytest.mark.parametrize("name", cases())
def test_numbers_equal_the_original(name: str) -> None:
    case = load(name)
    if "returned" not in case["outputs"]:
        check_where_the_original_fails(case)
        return
    if name.endswith(NO_JUDGE):
        with pytest.raises(DataError, match="llm-judge"):
            score(case)
        return
    returned, result = case["outputs"]["returned"], score(case)
    micro = result.metrics["accuracy_micro"]
    if not name.endswith(OVERWRITTEN):
        assert 100 * micro.value == pytest.approx(returned["accuracy"], abs=1e-9)
    if "overall_accuracy" in returned and not name.endswith(SHIFTED):
        assert 100 * result.metrics["accuracy"].value == pytest.approx(returned["overall_accuracy"], abs=1e-9)
    rejected = returned.get("reject_info", {"reject_number": 0, "total_question": micro.n})
    assert (micro.failed, micro.n + micro.failed) == (rejected["reject_number"], rejected["total_question"])
    for key in ("average_tokens", "average_prompt_tokens", "average_completion_tokens"):
        assert (key in returned) == (key in result.metrics)
        assert key not in returned or result.metrics[key].value == pytest.approx(returned[key], abs=1e-9)
    groups = {value: metrics for found in result.groups.values() for value, metrics in found.items()}
    for value, metrics in groups.items():
        assert 100 * metrics["accuracy_micro"].value == pytest.approx(returned[value], abs=1e-9)


def check_where_the_original_fails(case: dict) -> None:
    if case["id"] == "multi_all_rejected":
        assert score(case).metrics["accuracy"].value is None
        assert score(case).metrics["accuracy_micro"].failed == 2
    elif case["id"] == "multi_qid_contains_inference":
        assert score(case).metrics["accuracy"].value == 1.0
    else:
        with pytest.raises(DataError, match=r"record 1: .*question_type"):
            score(case)


@pytest.mark.parametrize("name", [name for name in cases() if "__multi_" in name and not name.endswith(SHIFTED)])
def test_records_equal_the_original(name: str) -> None:
    case = load(name)
    evaluated = {
        str(item["question_id"]): item
        for item in case["outputs"].get("evaluated.json", [])
        if "inference_scores" in item
    }
    records = {str(record["question_id"]): record for record in score(case).records}
    for question, item in evaluated.items():
        for field in ("question_id", "question", "answer", "correct", "inference_scores", "num_inferences"):
            assert records[question][field] == item[field], (question, field)


def test_a_rejected_inference_moves_no_other() -> None:
    case = load("head__multi_rejected_inference_first")
    records = {record["question_id"]: record for record in score(case, "snellen").records}
    assert records["q1"]["answer"] == {"inference_0": None, "inference_1": "A"}
    assert records["q2"]["answer"] == {"inference_0": "B", "inference_1": "B"}
    assert records["q3"]["inference_scores"] == [1, 1]


def test_gaps_stay_gaps_in_our_own_profile() -> None:
    (record,) = score(load("head__multi_varying_counts") | load("ca77c83__multi_gap_in_indices"), "snellen").records
    assert record["inference_scores"] == [0, None, None, 1]
    assert record["num_inferences"] == 2
    assert record["multiple_raw_answers"] == ["A", None, None, "B"]


def test_function_tables() -> None:
    for row in load("head__table_normalize_string")["rows"]:
        assert normalise_blank(row["input"]) == row["output"]
    for row in load("head__table_fill_blank_similarity")["rows"]:
        assert judge_blank(row["answer"], row["gt"]) == (row["correct"], row["cleaned"])
