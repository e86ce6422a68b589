"""Predictions of other harnesses to rows of one form: each format's own facts, odd shapes and damage included."""

from __future__ import annotations

import json
import math
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from foreign_files import (
    inspect_header,
    inspect_sample,
    mcq,
    write_archive,
    write_json,
    write_lines,
    write_sheet,
    write_tsv,
)  # fmt: skip
from snellen.core.builtins import default_registry
from snellen.core.errors import DataError, MissingExtra, SnellenError, UsageError
from snellen.core.types import Form
from snellen.data.atlas.peer_cards import peer_card, peer_cards
from snellen.kits.bridges.damage import EXCEL_CELL, Damage
from snellen.kits.bridges.foreign_rows import ForeignFile, ForeignRow
from snellen.kits.bridges.formats import formats, open_predictions
from snellen.kits.bridges.peer_readers import PEER_READERS
from snellen.kits.bridges.row_spool import spool_rows
from snellen.kits.bridges.text_rules import TEXT_RULES, YES_NO_RULES

PROMPT = "Which animal?\nA. a cat\nB. a dog\nAnswer with the option's letter from the given choices directly."


def read(path: Path, harness: str | None = None) -> tuple[ForeignFile, list[ForeignRow], Damage]:
    damage = Damage()
    file = open_predictions(path, damage, harness)
    return file, list(file.rows), damage


# VLMEvalKit


@pytest.mark.parametrize("ending", ["xlsx", "tsv", "json"])
def test_vlmevalkit_is_read_from_each_of_its_endings(tmp_path: Path, ending: str) -> None:
    rows = [mcq(1, "B"), mcq(2, "Failed to obtain answer via API."), mcq(3, "Es ist ein Hund – 犬 🐕", hint="Look")]
    write = {"xlsx": write_sheet, "tsv": write_tsv, "json": write_json}[ending]
    file, found, _ = read(write(tmp_path / f"qwen2.5-vl_MMStar.{ending}", rows))
    assert (file.harness, file.model, file.task) == ("vlmevalkit", "qwen2.5-vl", "MMStar")
    assert [row.id for row in found] == ["1", "2", "3"]
    assert found[0].options == {"A": "a cat", "B": "a dog", "C": "a horse"}
    assert (found[0].form, found[0].answers, found[0].reply) == (Form.CHOICE, ("a dog",), "B")
    assert (found[1].reply, found[1].failure) == (None, "Failed to obtain answer via API.")
    assert found[1].read_reply == "Failed to obtain answer via API."
    assert found[2].reply == "Es ist ein Hund – 犬 🐕"
    assert found[2].question.startswith("Look\n")
    assert found[0].tags == {"category": "animals"}


def test_a_sheet_says_what_it_lost(tmp_path: Path) -> None:
    long = "B " + "x" * (EXCEL_CELL - 2)
    rows = [mcq(1.0, long), mcq(2.0, 7), mcq(3.0, True), mcq(4.0, ""), mcq(5.0, "B")]
    _, found, damage = read(write_sheet(tmp_path / "m_MMStar.xlsx", rows))
    assert dict(damage.counts) == {"cut": 1, "typed": 2, "empty": 1}
    assert found[0].finish == "length"
    assert [row.id for row in found] == ["1", "2", "3", "4", "5"]
    assert (found[3].reply, found[3].read_reply) == ("", "nan")


def test_nan_and_null_are_lost_replies_and_missing_options_are_none(tmp_path: Path) -> None:
    text = json.dumps(
        [mcq(1, math.nan), mcq(2, None), mcq(3, "A", C=math.nan, answer="A"), mcq("x_4", "", answer=math.nan)]
    )
    path = tmp_path / "m_MMStar.json"
    path.write_text(text)
    _, found, damage = read(path)
    assert dict(damage.counts) == {"lost": 2, "empty": 1, "no_gold": 1}
    assert found[0].failure == "the file holds no reply"
    assert list(found[2].options) == ["A", "B"]
    assert found[3].answers == ()


@pytest.mark.parametrize(("end", "mark"), [("\r\n", ""), ("\n", "\ufeff"), ("\r\n", "\ufeff")])
def test_carriage_returns_and_byte_order_marks_change_nothing(tmp_path: Path, end: str, mark: str) -> None:
    rows = [mcq(1, 'He said "B"\nand left'), mcq(2, "A")]
    _, found, damage = read(write_tsv(tmp_path / "m_MMStar.tsv", rows, end=end, mark=mark))
    assert [row.reply for row in found] == ['He said "B"\nand left', "A"]
    assert not damage.counts


@pytest.mark.parametrize("form", ["columns", "split", "by index"])
def test_the_other_json_forms_of_vlmevalkit_are_read(tmp_path: Path, form: str) -> None:
    rows = [mcq(1, "B"), mcq(2, "C")]
    names = list(rows[0])
    table: dict[str, Any] = {
        "columns": {name: [row[name] for row in rows] for name in names},
        "split": {"columns": names, "data": [list(row.values()) for row in rows]},
        "by index": {name: {str(n): row[name] for n, row in enumerate(rows)} for name in names},
    }[form]
    _, found, _ = read(write_json(tmp_path / "m_MMStar.json", table))
    assert [(row.id, row.reply) for row in found] == [("1", "B"), ("2", "C")]


def test_verdicts_and_report_beside_the_predictions_are_taken(tmp_path: Path) -> None:
    rows = [mcq(1, "B"), mcq(2, "C")]
    path = write_sheet(tmp_path / "m_MMStar.xlsx", rows)
    write_sheet(tmp_path / "m_MMStar_exact_matching_result.xlsx", [rows[0] | {"hit": 1}, rows[1] | {"hit": 0}])
    (tmp_path / "m_MMStar_acc.csv").write_text('"split","Overall","animals"\n"none","0.5","0.5"\n')
    file, found, _ = read(path)
    assert [row.verdict for row in found] == [1.0, 0.0]
    assert file.reported == {"m_MMStar_acc.csv none": 0.5}
    assert file.notes == ["verdicts of m_MMStar_exact_matching_result.xlsx"]


def test_circular_copies_are_groups_and_yes_and_no_is_a_form(tmp_path: Path) -> None:
    copies = [mcq(5, "B"), mcq(1_000_005, "A", answer="A")]
    _, found, _ = read(write_tsv(tmp_path / "m_MMBench_DEV_EN.tsv", copies))
    assert [row.group for row in found] == ["5", "5"]
    plain = [
        {
            "index": "VD_1",
            "question": "Is it?",
            "answer": "Yes",
            "prediction": "Yes.",
            "extracted": "Yes",
            "score": True,
        }
    ]
    _, found, _ = read(write_tsv(tmp_path / "m_HallusionBench.tsv", plain))
    assert (found[0].form, found[0].answers, found[0].verdict, found[0].read_answer) == (
        Form.YESNO,
        ("yes",),
        1.0,
        "Yes",
    )


def test_a_column_score_of_the_benchmark_itself_is_no_verdict(tmp_path: Path) -> None:
    _, found, _ = read(write_tsv(tmp_path / "m_MMStar.tsv", [mcq(1, "B", score=1), mcq(2, "B", score=0)]))
    assert [row.verdict for row in found] == [None, None]


def test_a_pickle_is_refused_by_name_and_never_opened(tmp_path: Path) -> None:
    bomb = tmp_path / "m_MMStar.pkl"
    bomb.write_bytes(b"cos\nsystem\n(S'touch /tmp/opinion/bomb'\ntR.")
    with pytest.raises(UsageError, match=r"m_MMStar\.pkl is a pickle.*PRED_FORMAT=json"):
        read(bomb)
    with pytest.raises(DataError, match="only pickles"):
        read(tmp_path)


# lmms-eval


def sample(doc_id: int, reply: Any, target: str = "B", **more: Any) -> dict[str, Any]:
    return {"doc_id": doc_id, "target": target, "input": PROMPT, "filtered_resps": reply} | more


def test_lmms_eval_is_read_with_its_results(tmp_path: Path) -> None:
    folder = tmp_path / "qwen__small"
    acc = {
        "id": "validation_Art_1",
        "subdomain": "Art",
        "question_type": "multiple-choice",
        "answer": "B",
        "parsed_pred": ["B"],
    }
    rows = [
        sample(0, ["(B)"], mmmu_acc=acc),
        sample(1, "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"),
        sample(2, "", target="['24.5', '24']", input="How much?"),
    ]
    path = write_lines(folder / "20260801_120000_samples_mmmu_val.jsonl", rows)
    results = {
        "results": {"mmmu_val": {"mmmu_acc,none": 0.5, "mmmu_acc_stderr,none": "N/A", "alias": "mmmu_val"}},
        "n-samples": {"mmmu_val": {"original": 4, "effective": 4}},
        "model_name": "qwen/small",
        "nothing": math.nan,
    }
    write_json(folder / "20260801_120000_results.json", results)
    file, found, damage = read(path)
    assert (file.harness, file.task, file.model, file.expected) == ("lmms-eval", "mmmu_val", "qwen/small", 4)
    assert file.reported == {"mmmu_acc,none": 0.5}
    assert [row.id for row in found] == ["validation_Art_1", "doc-1", "doc-2"]
    assert (found[0].reply, found[0].options, found[0].verdict) == ("(B)", {"A": "a cat", "B": "a dog"}, 1.0)
    assert found[0].tags["subdomain"] == "Art"
    assert found[1].failure is not None
    assert (found[2].form, found[2].answers) == (Form.OPEN, ("24.5", "24"))
    assert dict(damage.counts) == {"empty": 1}
    assert open_predictions(folder, Damage()).path == path


def test_a_letter_without_options_is_read_against_letters(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x_samples_blink.jsonl", [sample(0, "B", input="Which?", pope_accuracy=math.nan)])
    _, found, damage = read(path)
    assert (found[0].form, found[0].answers) == (Form.CHOICE, ("(B)",))
    assert dict(damage.counts) == {"no_options": 1}


def test_older_lmms_files_keep_the_doc_and_repeats_are_repeats(tmp_path: Path) -> None:
    doc = {"id": "q7", "question": "Which?", "options": "['a cat', \"a dog\"]", "image": None}
    log = {"doc_id": 7, "doc": doc, "target": "B", "resps": [["B", "A"]], "filtered_resps": ["B", "A"]}
    file, found, _ = read(write_json(tmp_path / "mmmu_val.json", {"args": {}, "logs": [log]}))
    assert file.harness == "lmms-eval"
    assert [(row.id, row.repeat, row.reply) for row in found] == [("q7", 0, "B"), ("q7", 1, "A")]
    assert found[0].options == {"A": "a cat", "B": "a dog"}


# inspect_ai


@pytest.mark.parametrize("method", [93, zipfile.ZIP_DEFLATED])
def test_inspect_archives_are_read_the_last_of_two_members_counts(tmp_path: Path, method: int) -> None:
    failed = inspect_sample(3, "", error={"message": "Connection timed out"}, output={}, scores=None)
    unscored = json.dumps(inspect_sample(4, "ANSWER: B", scores={"choice": {"value": "NaN!"}})).replace('"NaN!"', "NaN")
    members: list[tuple[str, Any]] = [
        ("samples/1_epoch_1.json", inspect_sample(1, "ANSWER: A")),
        ("samples/1_epoch_1.json", inspect_sample(1, "ANSWER: B")),
        ("samples/1_epoch_2.json", inspect_sample(1, "ANSWER: A", epoch=2)),
        ("samples/3_epoch_1.json", failed),
        ("samples/4_epoch_1.json", unscored.encode()),
        ("header.json", inspect_header(4, 0.5)),
    ]
    file, found, damage = read(write_archive(tmp_path / "log.eval", members, method=method))
    assert (file.harness, file.task, file.model, file.expected) == (
        "inspect",
        "mmmu_multiple_choice",
        "openai/small",
        4,
    )
    assert file.reported == {"choice accuracy": 0.5}
    assert [(row.id, row.repeat, row.reply) for row in found] == [
        ("1", 0, "ANSWER: B"), ("1", 1, "ANSWER: A"), ("3", 0, None), ("4", 0, "ANSWER: B"),
    ]  # fmt: skip
    assert (found[0].verdict, found[1].verdict, found[3].verdict) == (1.0, 0.0, None)
    assert found[2].failure == "Connection timed out"
    assert found[0].tokens == (9, 2)
    assert dict(damage.counts) == {"superseded": 1}


def test_without_its_package_a_zstandard_log_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = write_archive(tmp_path / "log.eval", [("header.json", inspect_header(1, 1.0))])
    with pytest.raises(MissingExtra, match=r"reading log\.eval.*pip install 'snellen\[inspect\]'"):
        read(path)


def test_a_killed_inspect_run_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    start = {"version": 2, "eval": inspect_header(2, 0)["eval"], "plan": {}}
    members = [("_journal/start.json", start), ("samples/1_epoch_1.json", inspect_sample(1, "ANSWER: B"))]
    file, found, _ = read(write_archive(tmp_path / "log.eval", members))
    assert len(found) == 1
    assert file.expected == 2
    assert "killed" in file.notes[0]


def test_an_inspect_log_in_json_holds_pictures_and_nan(tmp_path: Path) -> None:
    picture = {"type": "image", "image": "attachment://abc"}
    asked = [{"role": "user", "content": [{"type": "text", "text": "Which animal?"}, picture]}]
    one = inspect_sample("q/1", "ANSWER: B", input=asked, attachments={"abc": "data:image/png;base64,AAAA"})
    log = inspect_header(2, math.nan) | {
        "samples": [one, inspect_sample(2, "B", scores={"choice": {"value": math.nan}})]
    }
    file, found, _ = read(write_json(tmp_path / "log.json", log))
    assert file.harness == "inspect"
    assert found[0].images[0].ref == "data:image/png;base64,AAAA"
    assert found[0].question == "Which animal?"
    assert found[1].verdict is None


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    path = write_archive(
        tmp_path / "log.eval", [("header.json", {}), ("samples/1_epoch_1.json", inspect_sample(1, "B"))]
    )
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x00"))
    with pytest.raises(SnellenError, match=r"log\.eval: member header\.json cannot be"):
        read(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match="no readable ZIP"):
        read(path)


# FlagEvalMM, evalscope, OpenCompass, AISBench


def test_flageval_replies_come_from_the_whole_file_and_labels_from_the_evaluated_one(tmp_path: Path) -> None:
    folder = tmp_path / "model" / "blink"
    rows: list[dict[str, Any]] = [
        {"question_id": "1", "question": PROMPT, "answer": "The answer is B", "reason": "", "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
        {"question_id": "2", "question": PROMPT, "answer": "Error code: 400"},
        {"question_id": "3", "question": PROMPT, "answer": {"inference_0": "A", "inference_1": "B"}},
    ]  # fmt: skip
    write_json(folder / "blink.json", rows)
    evaluated = [
        row | {"raw_answer": "cleaned", "label": "B", "correct": n != 2, "question_type": "multiple-choice"}
        for n, row in enumerate(rows)
    ]
    path = write_json(folder / "blink_evaluated.json", [row | {"answer": "B"} for row in evaluated])
    write_json(folder / "blink_result.json", {"accuracy": 66.67, "reject_info": {"reject_number": 1}})
    for given in (folder / "blink.json", path):
        file, found, _ = read(given)
        assert (file.harness, file.task) == ("flageval", "blink")
        assert [row.reply for row in found] == ["The answer is B", None, "A", "B"]
        assert found[0].answers == ("a dog",)
        assert found[1].failure == "Error code: 400"
        assert found[0].tokens == (5, 1)
        assert file.reported == {"blink_result.json accuracy": pytest.approx(0.6667)}


def test_evalscope_predictions_and_reviews_are_joined_by_index(tmp_path: Path) -> None:
    output = {
        "choices": [{"message": {"role": "assistant", "content": "ANSWER: B"}, "stop_reason": "stop"}],
        "error": None,
    }
    broken = {"choices": [], "error": "Rate limit exceeded"}
    asked = "Which?\n\nA) a cat\nB) a dog"
    score = {"value": {"acc": 1.0}, "extracted_prediction": "B", "prediction": "ANSWER: B", "main_score_name": "acc"}
    predictions = write_lines(
        tmp_path / "predictions" / "m" / "mm_star_val.jsonl",
        [{"index": 0, "model": "m", "model_output": output}, {"index": 1, "model": "m", "model_output": broken}],
    )
    reviews = write_lines(
        tmp_path / "reviews" / "m" / "mm_star_val.jsonl",
        [{"index": n, "input": asked, "target": "B", "sample_score": {"score": score, "sample_metadata": {"kind": "zoo"}}} for n in (0, 1)],
    )  # fmt: skip
    write_json(tmp_path / "reports" / "m" / "mm_star.json", {"name": "mm_star", "score": 0.5})
    for given in (predictions, reviews):
        file, found, _ = read(given)
        assert (file.harness, file.model) == ("evalscope", "m")
        assert (found[0].reply, found[0].answers, found[0].verdict) == ("ANSWER: B", ("a dog",), 1.0)
        assert found[1].failure == "Rate limit exceeded"
        assert file.reported == {"mm_star.json score": 0.5}


def test_opencompass_and_aisbench_are_read_with_their_failures(tmp_path: Path) -> None:
    prompt = [{"role": "HUMAN", "prompt": PROMPT}]
    table = {
        "0": {"origin_prompt": prompt, "prediction": "B", "gold": "B"},
        "1": {"origin_prompt": prompt, "prediction": ["A", "B"], "gold": "B"},
    }
    write_json(tmp_path / "results" / "m" / "mmstar.json", {"accuracy": 50.0})
    file, found, _ = read(write_json(tmp_path / "predictions" / "m" / "mmstar.json", table))
    assert (file.harness, file.model, file.reported) == ("opencompass", "m", {"results/mmstar.json accuracy": 0.5})
    assert [(row.id, row.repeat, row.reply) for row in found] == [("0", 0, "B"), ("1", 0, "A"), ("1", 1, "B")]
    rows = [
        {
            "data_abbr": "d",
            "id": 3,
            "success": True,
            "uuid": "u",
            "origin_prompt": PROMPT,
            "prediction": "so</think>B",
            "gold": "B",
        }
    ]
    write_lines(
        tmp_path / "ais_failed.jsonl", [{"data_abbr": "d", "id": 4, "input": PROMPT, "error_info": "Bad Gateway"}]
    )
    file, found, damage = read(write_lines(tmp_path / "ais.jsonl", rows))
    assert file.harness == "aisbench"
    assert [(row.id, row.failure) for row in found] == [("3", None), ("4", "Bad Gateway")]
    assert found[0].options == {"A": "a cat", "B": "a dog"}
    assert dict(damage.counts) == {"no_gold": 1}


# Rows of one's own


def test_plain_rows_take_lists_python_lists_and_columns(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "options": ["a cat", "a dog"], "answer": "B", "response": "B"},
        {"id": 2, "options": "['a cat', \"a dog's\"]", "answer": "a dog's", "response": "B", "correct": True},
        {"id": 3.0, "choice_a": "a cat", "choice_b": "a dog", "answer": "(A)", "response": None, "error": "boom"},
        {"id": 4, "options": ["a cat", "a dog"], "answer": 1, "response": "Failed to obtain answer via API."},
        {"id": 5, "options": ["a cat", "a dog"], "answer": "E", "response": 7},
        {"id": 6, "options": ["a cat", "a dog", "a cow"], "answer": "A, C", "response": "A and C"},
    ]
    file, found, damage = read(write_lines(tmp_path / "mine.jsonl", rows, end="\r\n", mark="\ufeff"))
    assert file.harness == "rows"
    assert [row.answers for row in found] == [("a dog",), ("a dog's",), ("a cat",), ("a dog",), (), ("a cat", "a cow")]
    assert [row.failure for row in found][2:4] == ["boom", "Failed to obtain answer via API."]
    assert found[1].verdict == 1.0
    assert found[5].form is Form.MULTIPLE
    assert dict(damage.counts) == {"odd_gold": 1, "typed": 1}


def test_a_right_answer_that_is_a_number_is_read_as_one_and_a_code_is_not(tmp_path: Path) -> None:
    golds: list[Any] = ["3", 3, 2.5, "1,234", ["2", "3"], "007", "10:30", "3 cars", ["2", "two"]]
    rows = [{"id": n, "question": "?", "answer": gold, "response": "x"} for n, gold in enumerate(golds)]
    _, found, _ = read(write_lines(tmp_path / "mine.jsonl", rows))
    assert [row.form for row in found] == [Form.NUMBER] * 5 + [Form.OPEN] * 4


# All of them


def test_a_truth_value_without_options_is_the_answer_of_a_yes_or_no_question(tmp_path: Path) -> None:
    rows = [{"id": n, "question": "Is it?", "answer": gold, "response": "Yes"} for n, gold in enumerate((True, False))]
    _, found, _ = read(write_lines(tmp_path / "mine.jsonl", rows))
    assert [(row.form, row.answers) for row in found] == [(Form.YESNO, ("yes",)), (Form.YESNO, ("no",))]


def test_a_number_that_is_an_option_s_text_and_another_s_place_is_no_right_answer(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "options": ["3", "1", "2", "0"], "answer": 0, "response": "A"},  # the first option, or `0`
        {"id": "2", "options": ["5", "7", "6", "8"], "answer": 1, "response": "B"},  # only a place
        {"id": "3", "options": ["0", "1"], "answer": 1, "response": "B"},  # both ways the same
    ]
    _, found, damage = read(write_lines(tmp_path / "mine.jsonl", rows))
    assert [row.answers for row in found] == [(), ("7",), ("1",)]
    [line] = damage.lines()
    assert "can be an option's text or another's place" in line and "write its letter" in line


def test_rows_that_contradict_each_other_are_refused_unless_told_which_counts(tmp_path: Path) -> None:
    path = write_tsv(tmp_path / "m_MMStar.tsv", [mcq(1, "B"), mcq(1, "B"), mcq(1, "A")])
    with pytest.raises(DataError, match="answered twice, and differently"):
        spool_rows(open_predictions(path, Damage()), Damage())
    for policy, reply in (("first", "B"), ("last", "A")):
        damage = Damage()
        spool = spool_rows(open_predictions(path, damage), damage, policy)
        assert [row.reply for row in spool] == [reply]
        assert len(spool) == 1
        assert dict(damage.counts) == {"repeated": 1, "superseded": 1}
        spool.close()


def test_halves_of_characters_do_not_stop_an_import(tmp_path: Path) -> None:
    path = tmp_path / "m_MMStar.json"
    path.write_text(json.dumps([mcq(1, "B \ud83d")]))
    spool = spool_rows(open_predictions(path, Damage()), Damage())
    assert [row.reply for row in spool] == ["B \ufffd"]
    spool.close()


def test_what_is_of_no_known_format_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no known format \(x\): .*--map response=.*--from .*inspect\|lm-eval\|lmms-eval"
    ):
        read(write_lines(tmp_path / "a.jsonl", [{"x": 1}]))
    with pytest.raises(UsageError, match="did you mean 'vlmevalkit'"):
        read(write_lines(tmp_path / "a.jsonl", [{"x": 1}]), "vlmeval")
    with pytest.raises(DataError, match="do not exist"):
        read(tmp_path / "nothing.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="empty"):
        read(tmp_path / "empty.jsonl")
    write_lines(tmp_path / "b.jsonl", [{"x": 1}])
    with pytest.raises(UsageError, match="holds 3 files"):
        read(tmp_path)


def test_every_format_has_a_card_and_every_name_of_a_benchmark_is_found() -> None:
    assert set(peer_cards()) == set(formats())
    for card in peer_cards().values():
        for task in card.tasks:
            for name in task.names:
                if "*" not in name:
                    assert card.find(name) is not None
            assert all(name in PEER_READERS for name in (task.choice, card.choice) if name)
            assert all(name in YES_NO_RULES for name in (task.yesno, card.yesno) if name)
            assert all(name in TEXT_RULES for name in (task.open, card.open) if name)
            assert all(default_registry().get("scorer", name) for name in task.ours or ())
    named = [task.task for task in peer_card("vlmevalkit").tasks if task.task]
    assert len(set(named)) == len(named)
    assert peer_card("vlmevalkit").rules("MMCR_own").aggregate == "all-of-group"
    assert peer_card("vlmevalkit").rules("GMAI-MMBench_VAL").aggregate == "mean"
    assert peer_card("lmms-eval").rules("mmmu_pro_standard").choice == "lmms-mmmu"
    assert peer_card("lmms-eval").rules("mathvision_testmini").choice == ""
    assert peer_card("vlmevalkit").rules("MMBench_DEV_EN_V11").aggregate == "all-of-group"
