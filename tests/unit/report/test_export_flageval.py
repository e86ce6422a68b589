"""Stored trials in the form of the multiple-inference document."""

from snellen import score_predictions
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.kits.publish.harness_files import flageval_records
from snellen.report.exported_run import StoredTrial

SAMPLE = Sample(id="q1", dataset="d", form=Form.CHOICE, question="What is this?")


def trial(repeat: int, text: str | None, value: float | None, *, variant: str = "base") -> StoredTrial:
    key = TrialKey("t", "q1", variant, repeat)
    failure = None if text is not None else Failure(FailureKind.TIMEOUT, "late")
    score = (
        Score(key=key, metric="accuracy", value=value, answer=text, reason=None if value is not None else "unparsed")
        if text
        else None
    )
    return (
        SAMPLE,
        Request(key, (Turn("system", "s"), Turn("user", "What is this?\nA. x"))),
        Prediction(key=key, text=text, failure=failure),
        score,
    )


def test_the_example_of_the_document() -> None:
    (record,) = flageval_records([trial(i, "A" if i != 2 else "B", float(i != 2)) for i in (4, 0, 2, 1, 3)])
    assert record == {
        "question_id": "q1",
        "question": "What is this?\nA. x",
        "answer": {"inference_0": "A", "inference_1": "A", "inference_2": "B", "inference_3": "A", "inference_4": "A"},
        "multiple_raw_answers": ["A", "A", "B", "A", "A"],
        "correct": 0.8,
        "inference_scores": [1, 1, 0, 1, 1],
        "num_inferences": 5,
    }


def test_failed_and_missing_inferences_keep_their_place_and_unread_ones_are_not_right() -> None:
    (record,) = flageval_records([trial(0, None, None), trial(1, "?", None), trial(3, "A", 1.0)])
    assert record["inference_scores"] == [None, 0, None, 1]
    assert record["multiple_raw_answers"] == [None, "?", None, "A"]
    assert (record["correct"], record["num_inferences"]) == (0.5, 2)


def test_variants_are_questions_of_their_own_and_all_failed_is_undefined() -> None:
    first, second = flageval_records([trial(0, "A", 0.5), trial(0, None, None, variant="wording=1")])
    assert (first["question_id"], first["inference_scores"]) == ("q1", [0.5])
    assert (second["question_id"], second["correct"]) == ("q1?wording=1", None)


def test_answers_of_choices_are_letters_that_the_rules_of_that_system_read() -> None:
    sample = Sample("q1", "d", Form.CHOICE, "Which shape?", options=("round", "square"), answers=("square",))
    trials = []
    for repeat, (said, read) in enumerate((("It is (B).", "square"), ("A", "round"), ("hm", None))):
        key = TrialKey("t", "q1", repeat=repeat)
        value = None if read is None else float(read == "square")
        score = Score(key, "accuracy", value, read, reason=None if read else "unparsed")
        trials.append((sample, Request(key, ()), Prediction(key, text=said), score))
    (record,) = flageval_records(trials)
    assert record["answer"] == {"inference_0": "B", "inference_1": "A", "inference_2": None}
    assert record["multiple_raw_answers"] == ["It is (B).", "A", "hm"]
    bare = {"question_id": "q1", "answer": {"inference_0": "B", "inference_1": "A"}}
    asked = {"question_id": "q1", "question_type": "multiple-choice", "answer": "B", "options": ["round", "square"]}
    found = score_predictions([bare], "MultiInference", annotations=[asked], profile="flageval")
    assert found["metrics"]["accuracy"]["value"] == 0.5
