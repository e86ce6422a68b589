"""Records in whatever JSON they stand, and the paths that name a field of them: kits.bridges.formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foreign_files import write_json, write_lines
from snellen.core.errors import DataError, UsageError
from snellen.core.types import Form
from snellen.data.files.records import value_at
from snellen.kits.bridges.damage import Damage
from snellen.kits.bridges.foreign_rows import ForeignFile, ForeignRow
from snellen.kits.bridges.formats import open_predictions, records_in

CHAT = {"messages": [{"content": "?"}, {"content": "B"}], "a.b": 1, "a": {"b": 2, "c": [3, [4]]}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("messages[-1].content", "B"),
        ("messages[0].content", "?"),
        ("a.b", 1),  # a column of that very name goes first
        ("a.c[1][0]", 4),
        ("a.c[9]", None),
        ("messages[-3]", None),
        ("a.b.c", None),
        ("nowhere", None),
        ("messages[", None),
        ("a.b,a.c[0]", "1/3"),
        ("a.b,nowhere", None),
    ],
)
def test_a_path_names_a_value(path: str, value: Any) -> None:
    assert value_at(CHAT, path) == value


@pytest.mark.parametrize(
    ("whole", "records"),
    [
        ({"x": {"response": "A"}}, [{"id": "x", "response": "A"}]),
        ({"x": {"pid": 7, "response": "A"}}, [{"pid": 7, "response": "A"}]),
        ({"x": "A", "y": None}, [{"id": "x", "response": "A"}, {"id": "y", "response": None}]),
        ({"response": "A", "answer": "B"}, [{"response": "A", "answer": "B"}]),
        (
            {"val": [{"idx": 1, "text": "A"}], "test": [{"text": "B"}], "acc": 0.5, "args": {"n": 1}},
            [{"part": "val", "idx": 1, "text": "A"}, {"id": "test/0", "part": "test", "text": "B"}],
        ),
        (
            {"film": {"speed": [{"prediction": "A"}]}},
            [{"id": "film/speed/0", "part": "speed", "group": "film", "prediction": "A"}],
        ),
        (
            {"prediction": {"1": "A", "2": "B"}, "gold": {"1": "A"}, "acc": 1},
            [{"id": "1", "prediction": "A", "gold": "A"}, {"id": "2", "prediction": "B"}],
        ),
        ({"acc": 1, "args": {"n": 1}}, []),
    ],
)
def test_records_are_found_wherever_they_stand(whole: dict[str, Any], records: list[dict[str, Any]]) -> None:
    assert list(records_in(whole)) == records


def read(path: Path, **columns: str) -> tuple[ForeignFile, list[ForeignRow], Damage]:
    damage = Damage()
    file = open_predictions(path, damage, columns=columns)
    return file, list(file.rows), damage


def test_a_numbered_object_with_more_than_opencompass_writes_is_not_its_file(tmp_path: Path) -> None:
    own = {"0": {"origin_prompt": "?", "prediction": "B", "gold": "B"}}
    assert read(write_json(tmp_path / "a.json", own))[0].harness == "opencompass"
    other = {"1": {"pid": "1", "answer": "x", "choices": ["x", "y"], "prediction": "y", "response": "A"}}
    file, (row,), _ = read(write_json(tmp_path / "b.json", other))
    assert (file.harness, row.id, row.reply, row.answers) == ("rows", "1", "A", ("x",))


def test_a_bad_row_is_counted_by_name_and_the_others_are_read(tmp_path: Path) -> None:
    rows = [{"id": 1, "response": "A", "answer": "A"}, {"id": 2, "response": "A", "repeat": "often"}]
    _, found, damage = read(write_lines(tmp_path / "a.jsonl", rows))
    assert [row.id for row in found] == ["1"]
    assert damage.counts["bad"] == 1 and damage.named["bad"][0].startswith("row 2")


def test_a_column_that_is_mapped_serves_no_other_field(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", {"x": {"answer": "B", "reasoning": "none"}})
    _, (row,), damage = read(path, response="answer")
    assert (row.id, row.reply, row.answers, dict(damage.counts)) == ("x", "B", (), {"no_gold": 1})


def test_what_is_mapped_wrongly_is_refused_by_name(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"id": 1, "said": "A"}])
    with pytest.raises(UsageError, match=r"there is no field 'reply'.*response"):
        read(path, reply="said")
    with pytest.raises(DataError, match="no column 'sayd'"):
        read(path, response="sayd.x")
    with pytest.raises(UsageError, match="--map says nothing of files of inspect"):
        open_predictions(path, Damage(), "inspect", {"response": "said"})


def test_letters_stand_for_options_that_the_file_does_not_show(tmp_path: Path) -> None:
    rows = [{"id": 1, "response": "c", "answer": "(C)"}, {"id": 2, "response": "A, C", "answer": "['a', 'c']"}]
    _, (one, several), damage = read(write_lines(tmp_path / "a.jsonl", rows))
    assert (one.form, one.answers) == (Form.CHOICE, ("(C)",))
    assert (several.form, several.answers) == (Form.MULTIPLE, ("(A)", "(C)"))
    assert damage.counts["no_options"] == 2


def test_an_id_that_several_questions_share_is_no_id(tmp_path: Path) -> None:
    from snellen.kits.bridges.row_spool import spool_rows

    rows = [{"question_id": 0, "question": text, "response": "Yes"} for text in ("Is it?", "Was it?")]
    path = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(DataError, match="--map id="):
        spool_rows(open_predictions(path, Damage()), Damage())
    spool = spool_rows(open_predictions(path, Damage(), columns={"id": "question_id,question"}), Damage())
    assert len(spool) == 2
    spool.close()


def test_a_list_without_its_brackets_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(",\n".join(json.dumps({"id": n, "response": "A", "answer": "A"}) for n in range(3)) + ",\n")
    assert [row.id for row in read(path)[1]] == ["0", "1", "2"]
