"""Files of ReForm-Eval, FlagEvalMM and CURE as runs: our own profile, bad files, several inferences, consistency."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import run_command
from snellen import score, score_predictions
from snellen.api.outputs import export
from snellen.core.errors import DataError, SnellenError, UsageError
from snellen.data.files.records import Record
from snellen.kits.reform.formulations import FORMULATIONS, OPTION_MARKS, Numbering, answer_index

OPTIONS = ["yes", "no", "maybe"]


def choice(sample: Any, prediction: Any, answer: Any = 0, **more: Any) -> dict[str, Any]:
    return {"sample_id": sample, "answer": answer, "answer_options": OPTIONS, "prediction": prediction, **more}


def test_our_own_reading_of_choices_counts_the_unread_as_not_right_and_apart() -> None:
    records = [choice(1, "The answer is A."), choice(2, "b"), choice(3, "I cannot say"), choice(4, "maybe", "maybe")]
    result = score_predictions(records, "SingleChoice")
    accuracy = result["metrics"]["accuracy"]
    assert (result["n"], accuracy["value"], accuracy["n"], tuple(accuracy["bounds"])) == (4, 0.5, 4, (0.5, 0.75))
    assert (accuracy["read"]["value"], accuracy["read"]["n"]) == (pytest.approx(2 / 3), 3)
    assert result["metrics"]["format_hit_rate"]["value"] == 0.75


def test_profiles_of_others_read_and_count_in_their_own_way() -> None:
    records = [choice(1, "B) because"), choice(2, "I cannot say", 2)]
    assert score_predictions(records, "SingleChoice", profile="vqa-scripts")["metrics"]["accuracy"]["value"] == 0.0
    assert score_predictions(records, "SingleChoice", profile="reform")["metrics"]["format_hit_rate"]["value"] == 0.0
    with pytest.raises(UsageError, match="unknown profile 'refrom'"):
        score_predictions(records, "SingleChoice", profile="refrom")


def test_repeats_are_clustered_by_sample() -> None:
    records = [choice(sample, "(A)" if sample % 2 else "(B)") for sample in range(20) for _ in range(5)]
    single = [choice((sample * 5) + i, "(A)" if sample % 2 else "(B)") for sample in range(20) for i in range(5)]
    wide = score_predictions(records, "SingleChoice", profile="reform", eval_stability=True)["metrics"]
    narrow = score_predictions(single, "SingleChoice", profile="reform")["metrics"]
    assert wide["accuracy"]["value"] == narrow["accuracy"]["value"] == 0.5
    assert wide["accuracy"]["ci95"][1] - wide["accuracy"]["ci95"][0] > 1.8 * (
        narrow["accuracy"]["ci95"][1] - narrow["accuracy"]["ci95"][0]
    )
    assert wide["instability"]["value"] == 0.0


def test_instability_is_over_option_texts() -> None:
    shuffled = [
        {**choice("s", "(A)"), "answer_options": ["yes", "no"]},
        {**choice("s", "(B)", 1), "answer_options": ["no", "yes"]},
    ]
    assert score_predictions(shuffled, "SingleChoice", eval_stability=True)["metrics"]["instability"]["value"] == 0.0
    long = [choice("s", "x" * 100 + str(i)) for i in range(2)]
    found = score_predictions(long, "SingleChoice", profile="reform", eval_stability=True)["metrics"]
    assert found["instability"]["value"] == pytest.approx(math.log(2))


def test_rounds() -> None:
    records = [choice(f"{d}_{r}", "(A)" if d >= r else "(B)", round_id=r) for d in range(3) for r in range(3)]
    metrics = score_predictions(records, "SingleChoice", multi_round_eval=True)["metrics"]
    assert metrics["round_correlation"]["value"] == pytest.approx(-1.0)
    assert metrics["round_slope"]["value"] == pytest.approx(-1 / 3)
    flat = score_predictions([choice(i, "(A)", round_id=i) for i in range(3)], "SingleChoice", multi_round_eval=True)
    assert flat["metrics"]["round_correlation"]["value"] is None


def test_likelihood_takes_indices() -> None:
    records = [choice(1, 0), choice(2, 2)]
    assert score_predictions(records, "SingleChoice", infer_method="likelihood")["metrics"]["accuracy"]["value"] == 0.5


def test_ocr_and_kie_in_our_own_profile() -> None:
    records = [
        {"sample_id": 1, "answer": ["stop", "halt"], "prediction": "HALT!"},
        {"sample_id": 2, "answer": "中文", "prediction": ["x", "中文"]},
    ]
    assert score_predictions(records, "OCROpenEnded")["metrics"]["accuracy"]["value"] == 1.0
    fields = [{"sample_id": 1, "answer": "$5", "prediction": "pay $5"}]
    found = score_predictions(fields, "KIEOpenEnded")["metrics"]
    assert found["accuracy"]["value"] == found["kie_accuracy"]["value"] == 1.0


BAD = [
    (
        [choice(1, "(A)"), choice(1, "(A)"), choice(2, "(A)")],
        "ragged repeats (a record lost or doubled?): sample 2 (first at record 3) has 1, but the others 2",
    ),
    ([choice(i, "(A)") for i in (1, 1, 2, 2, 3)], "sample 3 (first at record 5) has 1, but the others 2"),
    ([], "nothing to score"),
    (
        [choice(1, "(A)"), {"answer": 0, "prediction": "(A)", "answer_options": OPTIONS}],
        "record 2: has no field 'sample_id'",
    ),
    (
        [choice(1, "(A)"), {"sample_id": 2, "answer_options": OPTIONS, "prediction": "x"}],
        "record 2: has no field 'answer'",
    ),
    ([{"sample_id": 2, "answer_options": OPTIONS, "answer": 1}], "record 1: has no field 'prediction'"),
    ([choice(1, "(A)"), choice(2, 1)], "record 2: 'prediction' must be text, not a number"),
    ([choice(1, 1), choice(2, "(A)")], "record 2: 'prediction' must be"),
    ([choice(1, 3)], "record 1: 'prediction' 3 is no option index"),
    ([choice(1, None)], "record 1: 'prediction' must be text, not null"),
    ([choice(1, ["(A)"])], "record 1: 'prediction' must be text"),
    ([choice([1], "(A)")], "record 1: 'sample_id' must be text or a whole number"),
    ([choice(True, "(A)")], "record 1: 'sample_id' must be text or a whole number, not true/false"),
    ([choice(1, "(A)", 7)], "record 1: 'answer' must be an option index from 0 to 2"),
    ([choice(1, "(A)", "why")], "not 'why'"),
    ([choice(1, "(A)", 0.5)], "record 1: 'answer' must be"),
    ([choice(1, "(A)", None)], "record 1: 'answer' must be"),
    ([{**choice(1, "(A)"), "answer_options": "yes"}], "record 1: 'answer_options' must be a list of texts, not text"),
    ([{**choice(1, "(A)"), "answer_options": ["one"]}], "record 1: needs 'answer_options'"),
    ([{**choice(1, "(A)"), "answer_options": [["a"], "b"]}], "record 1: 'answer_options' must be"),
    ([{**choice(1, "(A)"), "answer_options": [str(i) for i in range(703)]}], "2 to 702"),
    (["text"], "record 1 is text, not an object"),
]


@pytest.mark.parametrize(("records", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_records_are_one_clear_line(records: list, message: str) -> None:
    with pytest.raises(DataError) as caught:
        score_predictions(records, "SingleChoice")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("record", "formulation", "options", "message"),
    [
        (
            {"prediction": "a", "references": []},
            "Generation",
            {},
            "record 1: 'references' must be a list of texts with at least one, not an empty list",
        ),
        ({"prediction": "a", "references": "a"}, "Generation", {}, "record 1: 'references' must be"),
        ({"prediction": "a", "references": ["a", 1]}, "Generation", {}, "record 1: 'references' must be"),
        ({"prediction": ["a"], "references": ["a"]}, "Generation", {}, "record 1: 'prediction' must be text"),
        (
            {"sample_id": 1, "prediction": 5, "answer": "5"},
            "OCROpenEnded",
            {},
            "record 1: 'prediction' must be text or a list",
        ),
        ({"sample_id": 1, "prediction": "5", "answer": " "}, "KIEOpenEnded", {}, "record 1: 'answer' is empty"),
        (choice(1, "(A)"), "SingleChoice", {"multi_round_eval": True}, "record 1: has no field 'round_id'"),
        (
            choice(1, "(A)", round_id="x"),
            "SingleChoice",
            {"multi_round_eval": True},
            "record 1: 'round_id' must be a number",
        ),
        (
            choice(1, "(A)", round_id=math.inf),
            "SingleChoice",
            {"multi_round_eval": True},
            "record 1: 'round_id' must be a number",
        ),
        (choice(1, -1), "SingleChoice", {"infer_method": "likelihood"}, "record 1: 'prediction' -1 is no option index"),
        (
            choice(1, True),
            "SingleChoice",
            {"infer_method": "likelihood"},
            "record 1: 'prediction' must be a whole number, not true/false",
        ),
        ({"ground_truth": {"inference": 1, "chain": [1]}}, "Consistency", {}, "record 1: has no field 'prediction'"),
        (
            {"ground_truth": [1], "prediction": {}},
            "Consistency",
            {},
            "record 1: 'ground_truth' and 'prediction' must be objects",
        ),
        (
            {"ground_truth": {"inference": 1, "chain": []}, "prediction": {}},
            "Consistency",
            {},
            "record 1: ground truth needs",
        ),
    ],
)
def test_bad_records_of_other_formulations(record: dict, formulation: str, options: dict, message: str) -> None:
    with pytest.raises(DataError) as caught:
        score_predictions([record], formulation, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("formulation", "options", "message"),
    [
        ("SingleChoise", {}, "did you mean 'SingleChoice'"),
        ("SingleChoice", {"infer_method": "guess"}, "unknown infer method"),
        ("SingleChoice", {"profle": "x"}, "did you mean 'profile'"),
        ("Generation", {"eval_stability": True}, "--eval-stability needs SingleChoice"),
        ("Generation", {"multi_round_eval": True}, "--multi-round-eval needs"),
        ("MultiInference", {}, "needs --annotations"),
        ("MultiInference", {"profile": "reform"}, "profile 'reform' does not score MultiInference"),
        ("Consistency", {"convention": "x"}, "unknown convention"),
        ("OCROpenEnded", {"profile": "vqa-scripts"}, "profile 'vqa-scripts' does not score OCROpenEnded"),
        ("OCROpenEnded", {"profile": "refrom"}, "unknown profile 'refrom'"),
    ],
)
def test_wrong_use_is_named(formulation: str, options: dict, message: str) -> None:
    records = [{"ground_truth": {"inference": 1, "chain": [1]}, "prediction": {}}]
    with pytest.raises(UsageError, match=message):
        score_predictions(records, formulation, **options)


ANNOTATIONS = [
    {
        "question_id": "q1",
        "question": "Which?",
        "options": ["w", "x"],
        "answer": "B",
        "question_type": "multiple-choice",
        "sub_task": "s",
    },
    {"question_id": "q2", "question": "Is it?", "answer": "yes", "question_type": "yes-no", "sub_task": "t"},
    {"question_id": 3, "question": "How many?", "answer": ["4", "four"], "question_type": "open", "sub_task": "t"},
]
PREDICTIONS = [
    {"question_id": "q1", "answer": {"inference_0": "B", "inference_2": "A", "inference_1": "x"}},
    {"question_id": "q2", "multiple_raw_answers": ["Yes.", "Error code: 500"]},
    {"question_id": "3", "answer": "4.0"},
]


def records_of(folder: Path, *arguments: Any, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the result of a file of several inferences, and its records as FlagEvalMM has them."""
    result = score_predictions(*arguments, output=folder / "run", **options)
    files = {path.stem: path for path in export(folder / "run", "flageval", folder)[0]}
    return result, json.loads(files["predictions"].read_text())


def test_several_inferences_macro_micro_and_groups(tmp_path: Path) -> None:
    told = {"annotations": ANNOTATIONS, "detailed_keys": ("sub_task",)}
    result, records = records_of(tmp_path, PREDICTIONS, "MultiInference", **told)
    assert result["metrics"]["accuracy"]["value"] == pytest.approx((2 / 3 + 1 + 1) / 3)
    micro = result["metrics"]["accuracy_micro"]
    assert (micro["value"], micro["n"], micro["failed"]) == (pytest.approx(4 / 5), 5, 1)
    assert result["groups"]["sub_task"]["s"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert records[0] == {
        "question_id": "q1",
        "question": "Which?",
        "answer": {"inference_0": "B", "inference_1": "B", "inference_2": "A"},
        "multiple_raw_answers": ["B", "x", "A"],
        "correct": pytest.approx(2 / 3),
        "inference_scores": [1, 1, 0],
        "num_inferences": 3,
    }
    assert records[1]["inference_scores"] == [1, None]


def test_missing_questions_are_named_and_null_answers_are_gaps(tmp_path: Path) -> None:
    answers = [{"question_id": "q1", "answer": [None, "B"]}]
    result, records = records_of(tmp_path, answers, "MultiInference", annotations=ANNOTATIONS)
    assert result["damage"]["missing"]["first"] == ["q2", "3"]
    assert result["metrics"]["accuracy_micro"]["failed"] == 1
    assert records[0]["inference_scores"] == [None, 1]


def test_what_was_scored_is_a_run_like_any(tmp_path: Path) -> None:
    records = [choice(i, "(A)" if i % 3 else "(B)") for i in range(9)]
    found = score_predictions(records, "SingleChoice", output=tmp_path / "run", profile="reform")
    stored = score(tmp_path / "run")
    assert stored["tasks"]["predictions"]["metrics"]["accuracy"]["value"] == found["value"]
    assert found["profile"] == "reform"
    (file,) = export(tmp_path / "run", "reform", tmp_path)[0]
    again = score_predictions(file, "SingleChoice", profile="reform")
    assert again["value"] == found["value"]


@pytest.mark.parametrize(
    ("predictions", "annotations", "message"),
    [
        ([{"question_id": "q9", "answer": "B"}], ANNOTATIONS, "record 1: question_id 'q9' is not in the annotations"),
        (PREDICTIONS + PREDICTIONS[:1], ANNOTATIONS, "record 4: question_id 'q1' is a duplicate of record 1"),
        (
            PREDICTIONS,
            [*ANNOTATIONS, {"question_id": "3"}],
            "annotations: record 4: question_id '3' is a duplicate of record 3",
        ),
        (
            [{"question_id": "q1", "answer": {"first": "B"}}],
            ANNOTATIONS,
            "record 1: 'first' is no name of an inference",
        ),
        (
            [{"question_id": "q1", "answer": {"inference_1": "B", "x_1": "B"}}],
            ANNOTATIONS,
            "two inferences have the same index",
        ),
        ([{"question_id": "q1", "answer": {"inference_9999999": "B"}}], ANNOTATIONS, "too large"),
        ([{"question_id": "q1", "answer": {"inference_0": 5}}], ANNOTATIONS, "record 1: an inference must be text"),
        ([{"question_id": "q1"}], ANNOTATIONS, "record 1: has no field 'answer'"),
        ([{"question_id": "q1", "answer": {}}], ANNOTATIONS, "nothing to score"),
        (
            [{"question_id": "q1", "answer": "B"}],
            [{"question_id": "q1", "options": ["w", "x"], "answer": "Q"}],
            "neither the letter nor the text",
        ),
        (
            [{"question_id": "q1", "answer": "B"}],
            [{"question_id": "q1", "options": ["w"], "answer": "A"}],
            "'options' must be a list of 2 to 26",
        ),
        (
            [{"question_id": "q1", "answer": "B"}],
            [{"question_id": "q1", "answer": "A", "question_type": "llm-judge"}],
            "needs a judge",
        ),
    ],
)
def test_bad_inference_files(predictions: list, annotations: list, message: str) -> None:
    with pytest.raises(DataError) as caught:
        score_predictions(predictions, "MultiInference", annotations=annotations)
    assert message in str(caught.value)


def test_a_group_without_its_field_is_an_error() -> None:
    with pytest.raises(DataError, match="has no field 'topic'"):
        score_predictions(PREDICTIONS, "MultiInference", annotations=ANNOTATIONS, detailed_keys=("topic",))


def test_consistency_in_both_conventions() -> None:
    items = [
        {"ground_truth": {"inference": 1, "chain": [1, 2]}, "prediction": {"inference": 1, "chain": [1, 2]}},
        {"ground_truth": {"inference": 1, "chain": [1, 2, 3]}, "prediction": {"inference": 0, "chain": [1, 2, 3]}},
        {"ground_truth": {"inference": 1, "chain": [1]}, "prediction": {"inference": 1, "chain": [None]}},
        {"ground_truth": {"inference": 1, "chain": [1]}, "prediction": {}},
    ]
    metrics = score_predictions(items, "Consistency")["metrics"]
    assert {name: metrics[name]["value"] for name in ("Rh", "Rcot", "Ro", "Cf", "Cb")} == {
        "Rh": 0.5,
        "Rcot": 0.5,
        "Ro": 0.25,
        "Cf": 0.5,
        "Cb": 0.5,
    }
    assert score_predictions(items, "Consistency", convention="over-n")["metrics"]["Cf"]["value"] == 0.25
    undefined = score_predictions(items[3:], "Consistency")
    assert undefined["metrics"]["Cf"]["value"] is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    "sample_id",
    "answer",
    "answer_options",
    "prediction",
    "references",
    "ground_truth",
    "question_id",
    "round_id",
)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([name for name in FORMULATIONS if name != "Generation"]),
    st.sampled_from(["snellen", "reform", "flageval"]),
    st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, json_values)), max_size=3),
)
def test_any_records_give_a_result_or_one_clear_line(formulation: str, profile: str, records: list[dict]) -> None:
    annotations = [{"question_id": 1, "answer": "A", "options": ["x", "y"]}]
    try:
        result = score_predictions(records, formulation, profile=profile, annotations=annotations)
    except SnellenError as error:
        assert "\n" not in str(error)
    else:
        assert all(one["value"] is None or math.isfinite(one["value"]) for one in result["metrics"].values())


def test_a_file_and_its_records_give_the_same(tmp_path: Path) -> None:
    records = [choice(i, "(A)" if i % 3 else "(B)") for i in range(9)]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    assert score_predictions(path, "SingleChoice")["metrics"] == score_predictions(records, "SingleChoice")["metrics"]


def test_a_consistency_file_with_nothing_predicted_for_an_item_is_still_scored() -> None:
    truth = {"inference": 1, "chain": [0, 2]}
    said = [truth, None, {"inference": "1", "chain": ["0", "1"]}, {}]
    records = [{"ground_truth": truth, "prediction": one} for one in said]
    result = score_predictions(records, "Consistency")
    metrics = result["metrics"]
    assert (metrics["Rh"]["n"], metrics["Rh"]["value"], metrics["Rcot"]["value"]) == (4, 0.5, 0.25)
    assert result["damage"]["silent"]["count"] == 2
    with pytest.raises(DataError, match=r"record 2.*'\(a\)' is predicted where the ground truth says 1"):
        score_predictions([records[0], {"ground_truth": truth, "prediction": {"inference": "(a)"}}], "Consistency")


FRUIT = ["apple", "pear", "plum"]


def marked(prediction: str, options: list[str] | None = None, answer: int = 1, **more: Any) -> dict[str, Any]:
    return {"sample_id": 1, "answer": answer, "answer_options": options or FRUIT, "prediction": prediction, **more}


def value_of(*records: dict[str, Any], **options: Any) -> float | None:
    numbered = [{**each, "sample_id": place} for place, each in enumerate(records)]
    return score_predictions(numbered, "SingleChoice", **options)["metrics"]["accuracy"]["read"]["value"]


@pytest.mark.parametrize(
    "reply", ["(2)", "(2) pear", "The answer is (2).", "2", "2.", "[2]", "(B)", "(b) pear", "pear"]
)
def test_numbers_and_letters_are_read_alike(reply: str) -> None:
    assert value_of(marked(reply)) == 1.0
    assert value_of(marked(reply, answer=0)) == 0.0


def test_a_number_no_option_has_is_unread() -> None:
    assert value_of(marked("(9)")) is None


def test_several_numbers_are_a_working_and_not_a_label() -> None:
    assert value_of(marked("First (1) it is round, then (3) it is red.")) is None


def test_numbers_among_numbers_are_settled_by_the_prompt_or_not_at_all() -> None:
    """(2) may be the second option or the option 2: nothing is guessed."""
    options = ["2", "3", "4"]
    result = score_predictions([marked("(2)", options, 0)], "SingleChoice")
    assert result["metrics"]["accuracy"]["read"]["n"] == 0
    assert result["reasons"] == {"ambiguous": 1} and "two_marks" in result["damage"]
    by_label = marked("(2)", options, 1, question_with_option="How many? Options: (1) 2; (2) 3; (3) 4.")
    by_text = marked("(2)", options, 0, question_with_option="How many? Options: (A) 2; (B) 3; (C) 4.")
    assert value_of(by_label, by_text) == 1.0
    assert value_of(marked("(2)", options, 1), option_mark="number") == 1.0
    assert value_of(marked("(2)", options, 0), option_mark="upper") == 1.0
    assert value_of(marked("2", options, 0), marked("(2)", ["1", "2", "3"], 1)) == 1.0


def test_what_was_taken_for_a_mark_is_counted() -> None:
    assert score_predictions([marked("(2)")], "SingleChoice")["damage"]["numbers"]["count"] == 1
    assert OPTION_MARKS == ("auto", "upper", "lower", "number")
    with pytest.raises(UsageError, match="unknown option mark"):
        score_predictions([marked("(2)")], "SingleChoice", option_mark="roman")


def test_the_command_takes_the_option(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps([marked("(2)", ["2", "3", "4"])]))
    where = ("-o", tmp_path / "run")
    assert (
        run_command(["score", path, "--formulation", "SingleChoice", "--option-mark", "number", "--json", *where]) == 0
    )
    assert json.loads(capsys.readouterr().out)["metrics"]["accuracy"]["value"] == 1.0


ANIMALS = ["cat", "dog", "cow"]


def animal(prediction: Any, answer: Any = 1, options: Any = ANIMALS, **more: Any) -> Record:
    return Record("f.json", 1, {"prediction": prediction, "answer": answer, "answer_options": options, **more})


class TestChoices:
    @pytest.mark.parametrize(("answer", "index"), [(1, 1), ("2", 2), ("cow", 2), (0, 0)])
    def test_an_answer_is_an_index_or_a_text(self, answer: Any, index: int) -> None:
        assert answer_index(animal("x", answer), ANIMALS, lenient=False) == index

    @pytest.mark.parametrize("answer", [3, -1, 1.0, True, None, "horse", ["dog"]])
    def test_what_is_neither_is_refused(self, answer: Any) -> None:
        with pytest.raises(DataError, match=r"f\.json: record 1: 'answer' must be an option index from 0 to 2"):
            answer_index(animal("x", answer), ANIMALS, lenient=False)

    def test_reform_takes_any_number(self) -> None:
        assert [answer_index(animal("x", answer), ANIMALS, lenient=True) for answer in (7, -1, 1.9, "5")] == [
            7,
            -1,
            1,
            5,
        ]

    def test_two_options_of_one_text_are_told_by_their_marks(self) -> None:
        twice = [{**choice(i, mark, 1), "answer_options": ["same", "same", "other"]} for i, mark in enumerate("AB")]
        assert score_predictions(twice, "SingleChoice")["metrics"]["accuracy"]["value"] == 0.5

    def test_repeats_may_show_other_options_with_other_right_ones(self) -> None:
        shown = [{**choice("s", "(A)", answer), "answer_options": ["x", "y"]} for answer in (0, 1)]
        assert score_predictions(shown, "SingleChoice")["metrics"]["accuracy"]["value"] == 0.5

    def test_one_and_the_text_one_are_two_samples(self) -> None:
        numbering = Numbering()
        assert len({numbering.next(Record("p", 1, {"sample_id": name}))[0] for name in (1, "1")}) == 2
