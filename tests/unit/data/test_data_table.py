"""Own data without code: every format, every way to write options and answers, every mistake by name."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from snellen.core.errors import DataError, UsageError
from snellen.core.protocols import LoadContext
from snellen.core.types import Form, Sample
from snellen.data.catalog import Catalog
from snellen.data.dataset import Dataset, survey
from snellen.data.files.rows import read_rows
from snellen.data.loaders.row_answers import find_answers
from snellen.data.loaders.table import load

ROW = {"id": "q1", "image": "a.png", "question": "What?", "options": ["cat", "dog"], "answer": "B", "topic": "pets"}


def samples(path: Path, *overrides: tuple[str, object]) -> list[Sample]:
    task = Catalog().task(str(path), overrides)
    return list(load(task, LoadContext()))


def jsonl(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_the_default_columns(tmp_path: Path) -> None:
    (sample,) = samples(jsonl(tmp_path / "my.jsonl", ROW))
    assert (sample.id, sample.dataset, sample.form, sample.answers) == ("q1", "my", Form.CHOICE, ("dog",))
    assert sample.images[0].ref == str(tmp_path / "a.png")
    assert sample.tags == {"topic": "pets"}


def test_rows_of_texts_make_nothing_that_reads_pictures(tmp_path: Path) -> None:
    texts = {"question": "Which?", "options": ["red", "green"], "answer": "red"}
    for name, row, expected in (("texts", texts, False), ("pictures", ROW, True)):
        context = LoadContext()
        assert list(load(Catalog().task(str(jsonl(tmp_path / f"{name}.jsonl", row))), context))
        assert bool(context.memory) is expected  # what pictures a file has is remembered there


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".parquet"])
def test_other_formats_say_the_same(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"my{ending}"
    if ending == ".json":
        path.write_text(json.dumps({"data": [ROW]}))
    elif ending == ".parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist([ROW]), path)
    else:
        mark = "," if ending == ".csv" else "\t"
        path.write_text(mark.join(ROW) + "\n" + mark.join(["q1", "a.png", "What?", "cat|dog", "B", "pets"]))
    (sample,) = samples(path)
    assert (sample.options, sample.answers, sample.tags) == (("cat", "dog"), ("dog",), {"topic": "pets"})


def test_an_object_of_records_has_its_keys_as_ids(tmp_path: Path) -> None:
    path = tmp_path / "my.json"
    bare = {key: value for key, value in ROW.items() if key != "id"}
    path.write_text(json.dumps({"v1_0": bare, "v1_1": bare, "v1_2": {**bare, "id": "own"}}))
    assert [sample.id for sample in samples(path)] == ["v1_0", "v1_1", "own"]


@pytest.mark.parametrize("value", [{}, {"a": 1}, {"a": ROW, "version": "1.0"}, "text"])
def test_any_other_json_is_refused(tmp_path: Path, value: object) -> None:
    path = tmp_path / "my.json"
    path.write_text(json.dumps(value))
    with pytest.raises(DataError, match=r"my.json must hold a list of records, .* or an object of records by id"):
        samples(path)


def test_lettered_columns_and_renaming(tmp_path: Path) -> None:
    row = {"_id": "x", "prompt": "What?", "choice_A": "cat", "choice_B": "dog", "choice_C": "", "answer": "A"}
    path = jsonl(tmp_path / "l.jsonl", row)
    (sample,) = samples(path, ("dataset.columns", {"question": "prompt", "id": "_id"}))
    assert (sample.id, sample.options, sample.answers, sample.tags) == ("x", ("cat", "dog"), ("cat",), {})


def test_no_options_means_an_open_question(tmp_path: Path) -> None:
    (sample,) = samples(jsonl(tmp_path / "o.jsonl", {"question": "Read", "answer": ["a", "b"]}))
    assert (sample.form, sample.answers) == (Form.OPEN, ("a", "b"))
    assert len(sample.id) == 12


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("B", "auto", "dog"),
        ("b", "auto", "dog"),
        ("(B)", "auto", "dog"),
        (1, "auto", "dog"),
        ("1", "auto", "dog"),
        ("DOG ", "auto", "dog"),
        (2, "index1", "dog"),
    ],
)
def test_answers_as_letter_index_or_text(value: object, kind: str, expected: str) -> None:
    assert find_answers(value, ("cat", "dog"), kind, "here") == (expected,)


def test_an_answer_that_can_mean_two_things_is_refused() -> None:
    with pytest.raises(DataError, match="can mean '1' by text or '2' by index"):
        find_answers("1", ("1", "2", "3"), "auto", "here")
    assert find_answers("1", ("1", "2", "3"), "text", "here") == ("1",)
    with pytest.raises(DataError, match="not among the options"):
        find_answers("E", ("cat", "dog"), "auto", "here")
    with pytest.raises(DataError, match="answer_kind"):
        find_answers("E", ("cat", "dog"), "letters", "here")


def test_true_is_no_index_and_two_readings_of_one_option_agree() -> None:
    with pytest.raises(DataError, match="answer True is not among the options"):
        find_answers(True, ("cat", "dog"), "auto", "here")
    assert find_answers("a", ("A", "B"), "auto", "here") == ("A",)
    assert find_answers([" 1 ", "cat"], ("cat", "dog"), "auto", "here") == ("dog", "cat")
    assert find_answers([1, True], (), "auto", "here") == ("1", "True")


@pytest.mark.parametrize(
    "name",
    [
        "a.png",
        "sub/b.c-d.png",
        "./a.png",
        "a//b",
        "a/./b",
        "a/",
        "../a",
        "/abs/a.png",
        ".hidden",
        "é ö.png",
        ".",
        "a\n",
    ],
)
@pytest.mark.parametrize("root", [None, "", ".", "/", "pictures/", "/pictures"])
def test_pictures_are_joined_to_their_folder_as_paths_are(tmp_path: Path, root: str | None, name: str) -> None:
    path = jsonl(tmp_path / "p.jsonl", {**ROW, "image": name})
    (sample,) = samples(path, *([("dataset.image_root", root)] if root is not None else []))
    assert sample.images[0].ref == str((Path(root) if root else tmp_path) / name)


def test_blank_lines_and_a_byte_order_mark_are_no_rows_and_keep_the_count(tmp_path: Path) -> None:
    row = json.dumps(ROW).encode()
    path = tmp_path / "b.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + row + b"\n\n \t\r\n  " + row.replace(b"q1", b"q2") + b" \r\n   {,\n")
    rows = read_rows(path)
    assert [(number, row["id"]) for number, row in islice(rows, 2)] == [(1, "q1"), (4, "q2")]
    with pytest.raises(DataError, match=r"line 5 is not valid JSON: .*\(byte 1\)"):
        next(rows)


BAD = {
    "not json": ('{"id": 1,', "line 1 is not valid JSON"),
    "not an object": ("[1]", "record 1 is a list"),
    "no question": ({"id": 1, "qestion": "x"}, r"did you mean 'qestion'"),
    "empty id": ({**ROW, "id": " "}, "empty id"),
    "same to the eye": ({**ROW, "options": ["caf\u00e9", "cafe\u0301"]}, "options 1 and 2 are the same"),
    "same but for what nobody sees": ({**ROW, "options": ["cat", "cat\u200b"]}, "options 1 and 2 are the same"),
    "same but for a direction": ({**ROW, "options": ["cat", "\u202ecat"]}, "options 1 and 2 are the same"),
    "same options": ({**ROW, "options": ["Cat", "cat "]}, "options 1 and 2 are the same"),
    "same later options": (
        {**ROW, "options": ["a b", "x", "y", "A  B", "X"]},
        r"options 1 and 4 are the same \('A  B'\)",
    ),
    "answer": ({**ROW, "answer": "Z"}, "not among the options"),
    "image": ({**ROW, "image": 5}, "image must be a file name"),
    "options": ({**ROW, "options": 5}, "options must be a list"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_named(tmp_path: Path, name: str) -> None:
    row, message = BAD[name]
    with pytest.raises(DataError, match=message):
        samples(jsonl(tmp_path / "bad.jsonl", row))


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        samples(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="no task named 'eyechrt'"):
        Catalog().task("eyechrt")
    ragged = tmp_path / "r.csv"
    ragged.write_text("question,answer\na,b,c\n")
    with pytest.raises(DataError, match="record 1 has more cells"):
        samples(ragged)
    broken = tmp_path / "u.csv"
    broken.write_bytes(b"question,answer\n\xff\xfe,b\n")
    with pytest.raises(DataError, match="cannot be read"):
        samples(broken)


def survey_of(path: Path) -> object:
    return survey(Dataset(Catalog().task(str(path)), load, LoadContext()))


def test_the_survey_counts_hashes_and_refuses_duplicates(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    path = jsonl(tmp_path / "s.jsonl", ROW, {**ROW, "id": "q2", "image": "none.png"})
    found = survey_of(path)
    assert (found.samples, found.images, found.missing_count) == (2, 2, 1)
    assert "q2" in found.missing[0]
    assert survey_of(path).fingerprint == found.fingerprint
    assert (
        survey_of(jsonl(tmp_path / "s.jsonl", ROW, {**ROW, "id": "q3", "image": "none.png"})).fingerprint
        != found.fingerprint
    )
    with pytest.raises(DataError, match="repeat an id"):
        survey_of(jsonl(tmp_path / "d.jsonl", ROW, ROW))
    with pytest.raises(DataError, match="no samples"):
        survey_of(jsonl(tmp_path / "e.jsonl", ""))


def test_capitals_on_own_data_keep_the_label_right(tmp_path: Path) -> None:
    (sample,) = samples(jsonl(tmp_path / "c.jsonl", {**ROW, "question": "what?"}), ("dataset.capitalise", True))
    assert (sample.question, sample.options, sample.answers) == ("What?", ("Cat", "Dog"), ("Dog",))


def test_a_cell_that_is_one_answer_stays_whole(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "o.jsonl",
        {"question": "Where?", "answer": [0.1, 0.2, 0.3, 0.4]},
        {"question": "Which?", "answer": "['a', 'b']"},
    )
    task = Catalog().task(str(path), [("dataset.answer_kind", "whole")])
    assert [sample.answers for sample in load(task, LoadContext())] == [("[0.1,0.2,0.3,0.4]",), ("['a', 'b']",)]
