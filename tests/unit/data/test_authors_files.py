"""Files as benchmark authors keep them: nested questions, answers beside them, one picture for many, bad rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Form, Sample
from snellen.data.atlas import card_rows
from snellen.data.catalog import Catalog
from snellen.data.loaders.authors_files import READERS, named_reader
from snellen.data.loaders.table import load

CHOICE = {"question": "Which?", "options": ["red", "blue"], "answer": "red"}


def write(place: Path, value: Any) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return place


def rows(file: Path, reader: str) -> list[dict[str, Any]]:
    return [row for _, row in named_reader(reader, "a task")(file, "")]


def samples(folder: Path, table: list[dict[str, Any]], **told: Any) -> tuple[list[Sample], dict[str, Counter[str]]]:
    file = write(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in table))
    context = LoadContext(workdir=folder)
    task = Task("t", {"loader": "table", "path": str(file), **told}, form=Form.AUTO)
    return list(load(task, context)), context.notes


def of_card(card: str, folder: Path) -> list[Sample]:
    task = Catalog().task(card, [("dataset.path", str(folder))])
    return list(card_rows.load(task, LoadContext(workdir=folder / "work")))


def test_amber_joins_its_annotations(tmp_path: Path) -> None:
    file = write(tmp_path / "data/query/query_discriminative.json", [{"id": 7, "image": "a.jpg", "query": "Is it?"}])
    with pytest.raises(DataError, match=r"annotations\.json"):
        rows(file, "amber")
    write(tmp_path / "data/annotations.json", [{"id": 8, "type": "x", "truth": "no"}])
    with pytest.raises(DataError, match="7"):
        rows(file, "amber")
    write(tmp_path / "data/annotations.json", [{"id": 7, "type": "discriminative-relation", "truth": "yes"}])
    (row,) = rows(file, "amber")
    assert (row["query"], row["truth"], row["type"]) == ("Is it?", "yes", "discriminative-relation")


def test_amber_as_its_authors_have_it_is_asked_with_category_and_answer(tmp_path: Path) -> None:
    write(tmp_path / "data/query/query_discriminative.json", [{"id": 7, "image": "a.jpg", "query": "Is it?"}])
    write(tmp_path / "data/annotations.json", [{"id": 7, "type": "discriminative-relation", "truth": "yes"}])
    (tmp_path / "image").mkdir()
    (sample,) = of_card("amber", tmp_path)
    assert (sample.question, sample.answers, sample.tags["category"]) == ("Is it?", ("yes",), "discriminative-relation")
    assert sample.images[0].ref.endswith("image/a.jpg")


def test_tempcompass_gives_every_nested_question_a_row(tmp_path: Path) -> None:
    asked = [{"question": "What?\nA. a run\nB. a jump", "answer": "A. a run"}]
    file = write(tmp_path / "multi-choice.json", {"v1": {"action": asked, "speed": asked * 2}})
    found = rows(file, "tempcompass")
    assert [(row["id"], row["video_id"], row["dim"]) for row in found] == [
        ("v1/action/0", "v1", "action"),
        ("v1/speed/0", "v1", "speed"),
        ("v1/speed/1", "v1", "speed"),
    ]
    plain = write(tmp_path / "hub.json", [{"video_id": "v1", "question": "What?", "options": ["a", "b"]}])
    assert rows(plain, "tempcompass") == [{"video_id": "v1", "question": "What?", "options": ["a", "b"]}]


def test_the_captions_of_a_question_are_its_options_without_their_names(tmp_path: Path) -> None:
    asked = [{"question": "Which fits?\nSentence A: a run\nSentence B: a jump", "answer": "Sentence B: a jump"}]
    (row,) = rows(write(tmp_path / "caption.json", {"v1": {"action": asked}}), "tempcompass")
    assert (row["options"], row["answer"]) == (["a run", "a jump"], "a jump")


def test_cmmmu_numbers_its_list_of_pictures(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", [{"id": 1, "question": "x", "img_list": ["q1.png", "q2.png"]}])
    (row,) = rows(file, "cmmmu")
    assert (row["image_1"], row["image_2_filename"]) == ("q1.png", "q2.png")
    assert "img_list" not in row


def test_mmvu_videos_are_looked_for_below_videos(tmp_path: Path) -> None:
    address = "https://hub.example/datasets/someone/MMVU/resolve/main/videos/Art/0.mp4"
    file = write(tmp_path / "a.json", [{"id": 1, "video": address}, {"id": 2, "video": "Art/1.mp4"}])
    assert [row["video"] for row in rows(file, "mmvu")] == ["Art/0.mp4", "Art/1.mp4"]


def test_an_unknown_reader_is_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"tempcompas'.*tempcompass"):
        named_reader("tempcompas", "task 'x'")
    assert "" in READERS


def test_mathverse_without_pictures_is_read_and_an_answer_that_is_no_option_is_left_out(tmp_path: Path) -> None:
    row = {"problem_index": "1", "problem_version": "Text Only", "image": "", "question_type": "multi-choice",
           "metadata": {"subject": "Plane Geometry"}, "query_wo": "", "query_cot": ""}  # fmt: skip
    listed = "How large?\nChoices:\nA:38\nB:52\nC:52\nD:62"
    table = [
        {**row, "sample_index": "1", "question": listed, "answer": "A", "query_wo": listed, "query_cot": listed},
        {**row, "sample_index": "2", "question": listed, "answer": "C\nD", "query_wo": listed, "query_cot": listed},
    ]
    write(tmp_path / "testmini_text_only.json", table)
    (sample,) = of_card("mathverse", tmp_path / "testmini_text_only.json")
    assert (sample.options, sample.answers) == (("38", "52", "52", "62"), ("38",))


def test_an_option_that_looks_like_a_list_is_the_answer_itself(tmp_path: Path) -> None:
    offered = {"question": "Which?", "options": ["[0, 2]", "[3, 2]"], "answer": "[0, 2]"}
    (sample,), _ = samples(tmp_path, [offered])
    assert sample.answers == ("[0, 2]",)


def test_markers_of_a_picture_that_shows_many_are_words(tmp_path: Path) -> None:
    row = {**CHOICE, "question": "Is <image1> or <image2> red?", "image": "a.png"}
    with pytest.raises(DataError, match="picture 2"):
        samples(tmp_path, [row])
    (sample,), _ = samples(tmp_path, [row], one_picture=True)
    assert sample.question == row["question"]


def test_a_bad_row_refuses_the_file_or_is_left_out_by_name(tmp_path: Path) -> None:
    table = [CHOICE, {**CHOICE, "answer": "green"}, {**CHOICE, "question": ""}]
    with pytest.raises(DataError, match="record 2"):
        samples(tmp_path, table)
    found, notes = samples(tmp_path, table, bad_rows="leave")
    assert len(found) == 1
    left = {name: who for note, who in notes.items() if note.startswith("rows left out") for name in who}
    assert sorted(left) == ["rows.jsonl record 2", "rows.jsonl record 3"]


def test_rows_that_are_the_same_are_questions_of_their_own_and_said(tmp_path: Path) -> None:
    found, notes = samples(tmp_path, [CHOICE, CHOICE, CHOICE])
    assert len({sample.id for sample in found}) == 3
    assert sum(sum(who.values()) for note, who in notes.items() if "what another row asks" in note) == 2


def test_one_object_a_line_is_read_though_the_file_is_named_json(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", json.dumps(CHOICE) + "\n" + json.dumps(CHOICE) + "\n")
    assert len(rows(file, "")) == 2
    with pytest.raises(DataError, match="not valid JSON"):
        rows(write(tmp_path / "b.json", '{"a": 1, \n'), "")
