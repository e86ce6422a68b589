"""Outside records as trials, module by module: what each reads, what it refuses and by which words."""

from __future__ import annotations

from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.core.types import Score
from snellen.data.files.records import Record
from snellen.scoring.outside.choices import answer_index, choice_scorer
from snellen.scoring.outside.inference_rules import Verdict, judge_inference, question_type
from snellen.scoring.outside.inferences import (
    MISSING,
    Inference,
    average_tokens,
    by_id,
    inference_record,
    judge_questions,
    question_table,
    seed_record,
)
from snellen.scoring.outside.texts import score_captions, score_chains, text_scorer
from snellen.scoring.outside.trials import KEY, METRIC, Numbering, read_trials

ANIMALS = ["cat", "dog", "cow"]


def record(number: int = 1, **fields: Any) -> Record:
    return Record("f.json", number, fields)


def choice(prediction: Any, answer: Any = 1, options: Any = ANIMALS, **more: Any) -> Record:
    return record(prediction=prediction, answer=answer, answer_options=options, **more)


class TestChoices:
    @pytest.mark.parametrize(("answer", "index"), [(1, 1), ("2", 2), ("cow", 2), (0, 0)])
    def test_an_answer_is_an_index_or_a_text(self, answer: Any, index: int) -> None:
        assert answer_index(choice("x", answer), ANIMALS, lenient=False) == index

    @pytest.mark.parametrize("answer", [3, -1, 1.0, True, None, "horse", ["dog"]])
    def test_what_is_neither_is_refused(self, answer: Any) -> None:
        with pytest.raises(DataError, match=r"f\.json: record 1: 'answer' must be an option index from 0 to 2"):
            answer_index(choice("x", answer), ANIMALS, lenient=False)

    def test_reform_takes_any_number(self) -> None:
        assert [answer_index(choice("x", answer), ANIMALS, lenient=True) for answer in (7, -1, 1.9, "5")] == [
            7,
            -1,
            1,
            5,
        ]

    def test_replies_are_read_and_indices_are_taken(self) -> None:
        read = choice_scorer("snellen", "generation")
        assert [read(choice(reply)).value for reply in ("B", "(A) cat", "a dog")] == [1.0, 0.0, 1.0]
        assert read(choice("no idea at all")).value is None
        assert read(choice("B")).answer == "dog"
        taken = choice_scorer("snellen", "likelihood")
        assert [taken(choice(index)).value for index in (0, 1, 2)] == [0.0, 1.0, 0.0]
        with pytest.raises(DataError, match="'prediction' 3 is no option index: there are 3 options"):
            taken(choice(3))

    def test_two_options_of_one_text_are_told_by_their_marks(self) -> None:
        read = choice_scorer("snellen", "generation")
        twice = ["same", "same", "other"]
        assert [read(choice(mark, 1, twice)).value for mark in ("(A)", "(B)")] == [0.0, 1.0]

    @pytest.mark.parametrize("options", [None, [], ["one"], [None, "x"], "cat"])
    def test_options_are_needed_and_are_texts(self, options: Any) -> None:
        with pytest.raises(DataError, match="answer_options"):
            choice_scorer("snellen", "generation")(choice("A", 0, options))


class TestTrials:
    @staticmethod
    def right(one: Record) -> Score:
        return Score(KEY, METRIC, one.fields["value"], answer=one.fields.get("says"))

    def test_records_of_one_sample_are_its_repeats(self) -> None:
        rows = [
            record(n, sample_id=name, value=v)
            for n, (name, v) in enumerate([("b", 1.0), ("a", 0.0), ("b", 0.0), ("a", 0.0)], 1)
        ]
        table = read_trials(rows, self.right, with_rounds=False, with_classes=False)
        assert len(table) == 4
        numbering = Numbering()
        names = [numbering.next(row) for row in rows]
        assert names == [("000000000", 0), ("000000001", 0), ("000000000", 1), ("000000001", 1)]

    def test_one_and_the_text_one_are_two_samples(self) -> None:
        numbering = Numbering()
        assert len({numbering.next(record(sample_id=name))[0] for name in (1, "1")}) == 2

    def test_empty_and_ragged_files_are_refused(self) -> None:
        with pytest.raises(DataError, match="holds no records"):
            read_trials([], self.right, with_rounds=False, with_classes=False)
        rows = [record(n, sample_id=name, value=1.0) for n, name in enumerate("aabbcd", 1)]
        with pytest.raises(
            DataError, match=r"sample 'c' \(first at record 5\) has 1, sample 'd' \(first at record 6\) has 1, but"
        ):
            read_trials(rows, self.right, with_rounds=False, with_classes=False)


class TestTexts:
    @pytest.mark.parametrize(
        ("formulation", "prediction", "answer", "value"),
        [
            ("OCROpenEnded", "the sign says STOP here", "stop", 1.0),
            ("OCROpenEnded", "go", ["stop", "halt"], 0.0),
            ("OCROpenEnded", ["st", "op stop"], "stop", 1.0),
            ("KIEOpenEnded", "Total: 12.50 EUR", "12.50", 1.0),
            ("KIEOpenEnded", "Total: 112.50", "12.50", 0.0),
        ],
    )
    def test_the_answer_must_be_contained(self, formulation: str, prediction: Any, answer: Any, value: float) -> None:
        score = text_scorer(formulation, "snellen")(record(prediction=prediction, answer=answer))
        assert (score.metric, score.value) == (METRIC, value)

    def test_nothing_matches_an_empty_answer(self) -> None:
        with pytest.raises(DataError, match="'answer' is empty"):
            text_scorer("KIEOpenEnded", "snellen")(record(prediction="x", answer=" "))

    def test_chains_are_counted_and_refused_by_record(self) -> None:
        good = {"inference": 1, "chain": [2, 3]}
        n, metrics, undefined = score_chains(
            [
                record(ground_truth=good, prediction=good),
                record(2, ground_truth=good, prediction={"inference": 1, "chain": [2, 0]}),
            ],
            convention="conditional",
        )
        assert (n, metrics["Rh"].value, metrics["Rcot"].value, metrics["Cb"].value, undefined) == (2, 1.0, 0.5, 0.5, {})
        with pytest.raises(DataError, match="record 1: 'ground_truth' and 'prediction' must be objects"):
            score_chains([record(ground_truth=good, prediction=[1])], convention="conditional")
        with pytest.raises(DataError, match="no records"):
            score_chains([], convention="conditional")

    def test_an_empty_file_of_captions_is_refused(self) -> None:
        with pytest.raises(DataError, match="no records"):
            score_captions([], tokeniser="whitespace")


class TestInferenceRules:
    @pytest.mark.parametrize(
        ("fields", "kind"),
        [
            ({}, "open"),
            ({"options": ["a", "b"]}, "multiple-choice"),
            ({"question_type": "yes-no", "options": ["a"]}, "yes-no"),
        ],
    )
    def test_the_type_of_a_question(self, fields: dict[str, Any], kind: str) -> None:
        assert question_type(record(**fields)) == kind

    @pytest.mark.parametrize(
        ("fields", "reply", "verdict"),
        [
            ({"options": ANIMALS, "answer": "B"}, "The answer is B.", Verdict(True, "B")),
            ({"options": ANIMALS, "answer": "cow"}, "B", Verdict(False, "B")),
            ({"options": ANIMALS, "answer": "b"}, "hard to tell", Verdict(None, None)),
            ({"question_type": "yes-no", "answer": "no"}, "No.", Verdict(True, "B")),
            ({"answer": ["Paris", "paris city"]}, " paris ", Verdict(True, "paris")),
            ({"answer": "12"}, "13", Verdict(False, "13")),
        ],
    )
    def test_our_own_rules(self, fields: dict[str, Any], reply: str, verdict: Verdict) -> None:
        assert judge_inference(record(**fields), reply, "snellen") == verdict

    @pytest.mark.parametrize(
        ("fields", "profile", "words"),
        [
            ({"question_type": "llm-judge", "answer": "x"}, "snellen", "needs a judge"),
            (
                {"question_type": "multiple-choice", "answer": "A"},
                "snellen",
                "'options' must be a list of 2 to 26 texts",
            ),
            (
                {"options": ["same", "same"], "answer": "same"},
                "snellen",
                "neither the letter nor the text of one option",
            ),
            ({"question_type": "yes-no", "answer": "yes"}, "flageval", "has no rule for question_type 'yes-no'"),
        ],
    )
    def test_what_cannot_be_judged_is_named(self, fields: dict[str, Any], profile: str, words: str) -> None:
        with pytest.raises(DataError, match=words):
            judge_inference(record(**fields), "A", profile)


class TestInferences:
    ANNOTATIONS = {"q": record(question_id="q", options=ANIMALS, answer="B", question="Which?", topic="t")}  # noqa: RUF012

    def questions(self, answer: Any, **more: Any) -> list[Any]:
        rows = [record(question_id="q", answer=answer, **more)]
        return [question for _, question in judge_questions(self.ANNOTATIONS, rows, "snellen")]

    def test_a_gap_stays_a_gap(self) -> None:
        (question,) = self.questions({"inference_3": "A", "inference_0": "B"})
        assert list(question.replies) == [0, 3]
        assert [question.verdicts[index].correct for index in (0, 3)] == [True, False]
        made = seed_record(question, dense=False)
        assert (made["inference_scores"], made["num_inferences"], made["correct"]) == ([1, None, None, 0], 2, 0.5)
        assert seed_record(question, dense=True)["inference_scores"] == [1, 0]
        assert (made["question"], made["question_id"]) == ("Which?", "q")

    def test_failed_ones_are_failed_trials_and_tags_come_along(self) -> None:
        (question,) = self.questions({"inference_0": "B", "inference_1": None})
        assert question.verdicts[1] is None and question.is_scored
        table = question_table([question], ["topic"])
        assert len(table) == 2
        (lost,) = self.questions(None)
        assert not lost.is_scored

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"first": "A"}, "'first' is no name of an inference"),
            ({"inference_1": "A", "x_01": "B"}, "two inferences have the same index"),
            ({"inference_100000": "A"}, "is too large: at most 100000"),
            ({"inference_0": 5}, "an inference must be text, not 5"),
        ],
    )
    def test_odd_names_are_refused(self, answer: Any, words: str) -> None:
        with pytest.raises(DataError, match=words):
            self.questions(answer)

    def test_ids_are_texts_once(self) -> None:
        assert [name for name, _ in by_id([record(question_id=1), record(2, question_id="a")])] == ["1", "a"]
        with pytest.raises(DataError, match="record 2: question_id '1' is a duplicate of record 1"):
            list(by_id([record(question_id=1), record(2, question_id="1")]))
        with pytest.raises(DataError, match="'z' is not in the annotations"):
            list(judge_questions(self.ANNOTATIONS, [record(question_id="z", answer="A")], "snellen"))

    def test_tokens_are_divided_by_all_scored_items(self) -> None:
        usage = {"total_tokens": 10, "prompt_tokens": 6, "completion_tokens": 4}
        both = [*self.questions("B", usage=usage), *self.questions("A")]
        assert average_tokens(both) == {
            "average_tokens": 5.0,
            "average_prompt_tokens": 3.0,
            "average_completion_tokens": 2.0,
        }
        assert average_tokens(self.questions({"inference_0": "A"}, usage=usage)) == {}

    def test_the_record_of_a_question(self) -> None:
        made = inference_record(7, "?", [Inference("(A)", "A", 1.0), MISSING, Inference("x", "x", 0.5)])
        assert made == {
            "question_id": 7,
            "question": "?",
            "answer": {"inference_0": "A", "inference_1": None, "inference_2": "x"},
            "multiple_raw_answers": ["(A)", None, "x"],
            "correct": 0.75,
            "inference_scores": [1, None, 0.5],
            "num_inferences": 2,
        }
