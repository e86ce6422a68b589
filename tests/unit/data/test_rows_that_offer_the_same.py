"""Rows that offer the same options, or nearly: what was found out about one row says nothing of another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Form, Sample
from snellen.data.loaders import row_options
from snellen.data.loaders.option_texts import option_facts
from snellen.data.loaders.table import load

CELLS = st.sampled_from(["1", 1, True, 1.0, "true", "cat", "Cat ", "dog", "0", 0, "<image 1>", "a.b", None])
OPTIONS = st.one_of(
    st.lists(CELLS, max_size=4),
    st.dictionaries(st.sampled_from(["A", "B", "1", "cat"]), CELLS, max_size=4),
    st.sampled_from(['["cat", "dog"]', "cat|dog", ["cat", "dog"], ["dog", "cat"], ["cat", "dog", "1"]]),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "question": st.sampled_from(["What?", "Which?\nA. cat\nB. dog", "Is <image 1> it?"]),
            "options": OPTIONS,
            "answer": st.sampled_from(["A", "B", "cat", "dog", "1", 1, True, ["A", "B"], "A,B", "AB", "", None]),
        },
        optional={"form": st.sampled_from(["multiple", "choice", "open"]), "group": st.just("g")},
    ),
    min_size=1,
    max_size=6,
)


def forget() -> None:
    """Forget what was found out about options."""
    for looked_at in (option_facts, row_options._plain_options):
        looked_at.cache_clear()  # type: ignore[attr-defined]


def read(folder: Path, rows: list[dict[str, Any]], **told: Any) -> list[Sample] | str:
    """Return the samples of rows, or what is wrong with them."""
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = Task("t", {"loader": "table", "path": str(file), **told}, form=Form.AUTO)
    try:
        samples = load(task, LoadContext(workdir=folder))
        return [structs.replace(sample, id=sample.id.partition("-")[0]) for sample in samples]  # twins are numbered
    except DataError as error:
        return str(error).replace("record 2", "record 1")


@given(ROWS, st.sampled_from([{}, {"answer_kind": "text"}, {"strip_marks": True}, {"duplicates": "drop"}]))
def test_a_row_after_others_is_read_as_it_is_alone(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], told: dict[str, Any]
) -> None:
    """Each row, read after every other that is accepted, gives what it gives alone with nothing remembered."""
    folder = tmp_path_factory.mktemp("rows")
    alone = []
    for row in rows:
        forget()
        alone.append(read(folder, [row], **told))
    accepted = [(row, found) for row, found in zip(rows, alone, strict=True) if not isinstance(found, str)]
    forget()
    together = read(folder, [row for row, _ in accepted], **told) if accepted else []
    assert together == [sample for _, found in accepted for sample in found]
    for row, found in zip(rows, alone, strict=True):  # those that are refused are refused with the same words
        if isinstance(found, str) and accepted:
            assert read(folder, [accepted[0][0], row], **told) == found


def test_numbers_and_truths_that_equal_texts_or_each_other_stay_what_they_are(tmp_path: Path) -> None:
    """1, True and 1.0 are one key to a dictionary: their texts differ, and so do the options they are."""
    rows = [{"question": "Q", "options": options, "answer": 0} for options in ([1, 2], [True, 2], [1.0, 2], ["1", "2"])]
    found = read(tmp_path, [row | {"id": number} for number, row in enumerate(rows)], answer_kind="index")
    assert not isinstance(found, str)
    assert [sample.options for sample in found] == [("1", "2"), ("True", "2"), ("1.0", "2"), ("1", "2")]
    assert [sample.answers for sample in found] == [("1",), ("True",), ("1.0",), ("1",)]


def test_the_same_answer_is_read_as_each_task_is_told(tmp_path: Path) -> None:
    """What one task read an answer as is not what another reads it as."""
    row = {"question": "Q", "options": ["2", "0", "1"], "answer": "1"}
    texts = [read(tmp_path, [row], answer_kind=kind) for kind in ("text", "index", "index1", "text")]
    assert [found[0].answers for found in texts if not isinstance(found, str)] == [("1",), ("0",), ("2",), ("1",)]
    assert "can mean" in read(tmp_path, [row])
