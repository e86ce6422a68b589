"""Streaming JSON equals reading it whole, whatever the size of the pieces, and says where a file is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.data.files import jsonstream

TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ['"', "\\", '\\"', "}{", "][", "\\\\", "a" * 700, "é\u2028"]
)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonstream, "CHUNK_BYTES", 7)


@settings(max_examples=120, deadline=None)
@given(
    items=st.lists(VALUE, max_size=6),
    chunk=st.integers(1, 40),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_elements_equal(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], chunk: int, ascii_only: bool, indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("stream") / "data.json"
    path.write_text(
        json.dumps({"version": "1", "data": items, "after": {"k": [1]}}, ensure_ascii=ascii_only, indent=indent),
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "CHUNK_BYTES", chunk)
        assert list(jsonstream.iterate_array(path, ("data",))) == items
        assert jsonstream.read_header(path, ("data",)) == {"version": "1", "after": {"k": [1]}}
        pairs = list(jsonstream.iterate_with_header(path, ("data",)))
        assert [value for kind, value in pairs if kind == "element"] == items


@settings(max_examples=60, deadline=None)
@given(table=st.dictionaries(TEXT, VALUE, max_size=5), chunk=st.integers(1, 20))
def test_members_equal(tmp_path_factory: pytest.TempPathFactory, table: dict[str, Any], chunk: int) -> None:
    path = tmp_path_factory.mktemp("stream") / "data.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "CHUNK_BYTES", chunk)
        assert dict(jsonstream.iterate_members(path)) == table


@pytest.mark.usefixtures("small_chunks")
def test_nested_pointer_and_top_level_array(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"data": {"questions": ["a"], "dialogs": [{"x": [1, {"y": "]"}]}, 2], "answers": []}}')
    assert list(jsonstream.iterate_array(path, ("data", "dialogs"))) == [{"x": [1, {"y": "]"}]}, 2]
    assert jsonstream.read_header(path, ("data", "dialogs")) == {"data.questions": ["a"], "data.answers": []}
    path.write_text(" [1, 2.5, null, true]  ")
    assert list(jsonstream.iterate_array(path)) == [1, 2.5, None, True]


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ('{"data": [{"a": 1}, {"b": "unfin', 1),
        ('{"data": [{"a": 1} {"b": 2}]}', 1),
        ('{"data": [1, 2', 2),
        ('{"data": [tru]}', 1),
        ("", 0),
        ('{"data"', 0),
    ],
)
def test_broken_files_name_the_record(tmp_path: Path, text: str, record: int) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(DataError, match=f"broken.json: record {record} is not valid JSON"):
        list(jsonstream.iterate_array(path, ("data",)))


def test_one_huge_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonstream, "CHUNK_BYTES", 64)
    monkeypatch.setattr(jsonstream, "MAX_ELEMENT_BYTES", 256)
    path = tmp_path / "huge.json"
    path.write_text(json.dumps([{"image": "x" * 2000}]))
    with pytest.raises(DataError, match="larger than"):
        list(jsonstream.iterate_array(path))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        list(jsonstream.iterate_array(tmp_path / "none.json"))
