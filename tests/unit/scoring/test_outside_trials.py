"""Outside records as trials: how they are numbered and scored, and which small aggregates read their table."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.core.types import Score
from snellen.data.files.records import Record, read_records
from snellen.scoring.aggregates.instability import answer_entropy, trend_of_rounds
from snellen.scoring.aggregates.means import format_hit_rate, mean_of_questions, mean_of_trials
from snellen.scoring.outside.choices import choice_scorer
from snellen.scoring.outside.inferences import by_id, judge_questions, question_table
from snellen.scoring.outside.texts import score_chains, text_scorer
from snellen.scoring.outside.trials import KEY, read_trials
from snellen.scoring.table import ScoreTable

OPTIONS = ["yes", "no", "maybe"]


def table_of(rows: list[dict[str, Any]], **options: bool) -> ScoreTable:
    def score(record: Record) -> Score:
        value = record.fields["value"]
        return Score(KEY, "accuracy", value, record.fields.get("chosen"), None, "unparsed" if value is None else None)

    return read_trials(read_records(rows), score, **{"with_rounds": False, "with_classes": False, **options})


def row(sample: Any, value: float | None, **more: Any) -> dict[str, Any]:
    return {"sample_id": sample, "value": value, "prediction": "?", **more}


def test_records_of_one_sample_are_its_repeats_in_the_order_of_the_file() -> None:
    table = table_of([row("b", 1.0), row(1, 0.0), row("1", None), row("b", 0.0), row(1, 1.0), row("1", 1.0)])
    assert table.sample.tolist() == [0, 0, 1, 1, 2, 2]
    assert table.repeat.tolist() == [0, 1] * 3
    assert table.value[table.read].tolist() == [1.0, 0.0, 0.0, 1.0, 1.0]
    assert mean_of_trials(table).value == 0.5
    assert (mean_of_questions(table).value, mean_of_questions(table).n) == (pytest.approx(0.5), 3)
    assert mean_of_trials(table).read.value == 0.6
    assert format_hit_rate(table).value == pytest.approx(5 / 6)


def test_more_than_three_ragged_samples_are_counted() -> None:
    rows = [row(sample, 1.0) for sample in [*range(6)] * 2] + [row(sample, 1.0) for sample in (0, 1, 2, 3)]
    rows = [*rows, *(row(sample, 1.0) for sample in (6, 6, 7, 7, 8, 8))]
    with pytest.raises(
        DataError, match=r"sample 0 \(first at record 1\) has 3, .* and 1 more differ, but the others 2"
    ):
        table_of(rows)


def test_a_record_that_could_not_be_read_needs_no_round() -> None:
    rows = [row(0, 1.0, round_id=1), row(1, None), row(2, 0.0, round_id=2.0), row(3, 1.0, round_id=2)]
    trend = trend_of_rounds(table_of(rows, with_rounds=True))
    assert (trend["round_slope"].value, trend["round_slope"].n) == (-0.5, 2)
    assert trend_of_rounds(table_of([row(0, None)], with_rounds=True))["round_slope"].value is None


def test_replies_that_name_no_option_are_classes_of_their_own() -> None:
    rows = [
        row("s", None, prediction="well"),
        row("s", 1.0, chosen="yes"),
        row("s", None, prediction="hm"),
        row("s", 1.0, chosen="yes"),
    ]
    assert answer_entropy(table_of(rows, with_classes=True)).value == pytest.approx(1.5 * math.log(2))


@pytest.mark.parametrize(("reply", "answer", "value"), [("(A)", 0, 1.0), ("(A)", 1, 0.0), ("(B)", "no", 0.0)])
def test_of_two_options_with_one_text_the_label_decides(reply: str, answer: Any, value: float) -> None:
    record = Record("p", 1, {"answer": answer, "answer_options": ["yes", "yes", "no"], "prediction": reply})
    assert choice_scorer("snellen", "generation")(record).value == value


def test_an_index_is_scored_as_it_is() -> None:
    record = Record("p", 1, {"answer": 7, "prediction": 7})
    assert choice_scorer("reform", "likelihood")(record).value == 1.0
    record = Record("p", 1, {"answer": 1, "answer_options": OPTIONS, "prediction": 1})
    assert choice_scorer("snellen", "likelihood")(record).answer == "no"


def test_texts_and_chains_are_measured_as_in_runs() -> None:
    record = Record("p", 1, {"answer": ["5"], "prediction": "12.5 m"})
    assert (
        text_scorer("KIEOpenEnded", "snellen")(record).value,
        text_scorer("KIEOpenEnded", "reform")(record).value,
    ) == (0.0, 1.0)
    n, metrics, notes = score_chains(
        read_records([{"ground_truth": {"inference": 1, "chain": [1]}, "prediction": {"inference": 0, "chain": [0]}}]),
        convention="conditional",
    )
    assert (n, metrics["Rh"].value, set(notes)) == (1, 0.0, {"Cf", "Cb"})


def test_a_rejected_inference_is_a_failed_trial_at_its_own_index() -> None:
    annotations = dict(by_id(read_records([{"question_id": 1, "answer": "A", "options": ["x", "y"], "topic": None}])))
    replies = [
        {"question_id": 1, "answer": {"inference_0": "Error code: 500", "inference_3": "A", "inference_1": "eh"}}
    ]
    questions = [question for _, question in judge_questions(annotations, read_records(replies), "snellen")]
    table = question_table(questions, ["topic"])
    assert (table.repeat.tolist(), table.counts, table.tags["topic"][1]) == ([0, 1, 3], (2, 0, 1), ["None"])


def test_what_the_quick_decoder_refuses_the_exact_one_takes(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    records = [{"a": "\ud800", "big": 10**40, "nested": {"deep": [[1], {"x": "}"}]}}, {"b": 'quote " and \\ and ]'}]
    for text in (json.dumps(records), json.dumps(records, indent=1), "\n".join(map(json.dumps, records)) + "\n"):
        path.write_text(text)
        assert [dict(record.fields) for record in read_records(path)] == records
