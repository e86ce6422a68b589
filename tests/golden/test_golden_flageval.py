"""FlagEvalMM's evaluators at three commits, equalled in profile `flageval` wherever they do not record a bug."""

import json
from pathlib import Path

import pytest

from snellen import score_predictions
from snellen.api.outputs import export
from snellen.core.errors import DataError
from snellen.kits.reform.flageval_rules import judge_blank, normalise_blank

GOLDEN = Path(__file__).parent / "data" / "flageval"

SHIFTED = ("rejected_whole_item", "rejected_inference_first")
"""One rejected inference moves all later ones to other questions in the original; docs/golden-differences.md."""
NO_JUDGE = "single_llm_judge"
OVERWRITTEN = "single_detailed_key_named_accuracy"


def cases() -> list[str]:
    return sorted(path.stem for kind in ("multi", "single") for path in GOLDEN.glob(f"*__{kind}_*.json"))


def load(name: str) -> dict:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def score(case: dict, folder: Path, profile: str = "flageval") -> tuple[dict, list[dict]]:
    """Score a case as a run, and return what its export says: the result, and one record a question."""
    keys = tuple(case["evaluator"].get("detailed_keys", ()))
    told = {"annotations": case["annotations"], "profile": profile, "detailed_keys": keys}
    score_predictions(case["predictions"], "MultiInference", output=folder / "run", **told)
    files = {path.stem: json.loads(path.read_text()) for path in export(folder / "run", "flageval", folder)[0]}
    return files["predictions_result"], files["predictions"]


@pytest.mark.parametrize("name", cases())
def test_numbers_equal_the_original(name: str, tmp_path: Path) -> None:
    case = load(name)
    if "returned" not in case["outputs"]:
        check_where_the_original_fails(case, tmp_path)
        return
    if name.endswith(NO_JUDGE):
        with pytest.raises(DataError, match="llm-judge"):
            score(case, tmp_path)
        return
    returned, (result, _) = case["outputs"]["returned"], score(case, tmp_path)
    if not name.endswith(OVERWRITTEN):
        assert result["accuracy"] == pytest.approx(returned["accuracy"], abs=1e-9)
    if "overall_accuracy" in returned and not name.endswith(SHIFTED):
        assert result["overall_accuracy"] == pytest.approx(returned["overall_accuracy"], abs=1e-9)
    assert result.get("reject_info") == returned.get("reject_info")
    for key in ("average_tokens", "average_prompt_tokens", "average_completion_tokens"):
        assert (key in returned) == (key in result)
        assert key not in returned or result[key] == pytest.approx(returned[key], abs=1e-9)
    keys = case["evaluator"].get("detailed_keys", ())
    for value in {str(annotation[key]) for key in keys for annotation in case["annotations"] if key in annotation}:
        if value in result and not name.endswith(OVERWRITTEN):
            assert result[value] == pytest.approx(returned[value], abs=1e-9)


def check_where_the_original_fails(case: dict, folder: Path) -> None:
    if case["id"] == "multi_all_rejected":
        result, _ = score(case, folder)
        assert result["overall_accuracy"] is None
        assert result["reject_info"]["reject_number"] == 2
    elif case["id"] == "multi_qid_contains_inference":
        assert score(case, folder)[0]["overall_accuracy"] == 100.0
    else:
        with pytest.raises(DataError, match=r"record 1: .*question_type"):
            score(case, folder)


@pytest.mark.parametrize("name", [name for name in cases() if "__multi_" in name and not name.endswith(SHIFTED)])
def test_records_equal_the_original(name: str, tmp_path: Path) -> None:
    case = load(name)
    evaluated = {
        str(item["question_id"]): item
        for item in case["outputs"].get("evaluated.json", [])
        if "inference_scores" in item
    }
    if not evaluated:
        return
    records = {str(record["question_id"]): record for record in score(case, tmp_path)[1]}
    for question, item in evaluated.items():
        for field in ("question_id", "question", "answer", "correct", "inference_scores", "num_inferences"):
            assert records[question][field] == item[field], (question, field)


def test_a_rejected_inference_moves_no_other(tmp_path: Path) -> None:
    case = load("head__multi_rejected_inference_first")
    records = {record["question_id"]: record for record in score(case, tmp_path, "snellen")[1]}
    assert records["q1"]["answer"] == {"inference_0": None, "inference_1": "A"}
    assert records["q2"]["answer"] == {"inference_0": "B", "inference_1": "B"}
    assert records["q3"]["inference_scores"] == [1, 1]


def test_gaps_stay_gaps_in_our_own_profile(tmp_path: Path) -> None:
    case = load("head__multi_varying_counts") | load("ca77c83__multi_gap_in_indices")
    ((record,),) = score(case, tmp_path, "snellen")[1:]
    assert record["inference_scores"] == [0, None, None, 1]
    assert record["num_inferences"] == 2
    assert record["multiple_raw_answers"] == ["A", None, None, "B"]


def test_function_tables() -> None:
    for row in load("head__table_normalize_string")["rows"]:
        assert normalise_blank(row["input"]) == row["output"]
    for row in load("head__table_fill_blank_similarity")["rows"]:
        assert judge_blank(row["answer"], row["gt"]) == (row["correct"], row["cleaned"])
