"""Whatever a file of predictions holds in whatever place, it is read or refused in one line; nothing else happens."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_files import inspect_header, inspect_sample, mcq, write_archive
from snellen.core.errors import SnellenError
from snellen.kits.bridges.damage import Damage
from snellen.kits.bridges.formats import open_predictions
from snellen.kits.bridges.row_spool import spool_rows

PROMPT = "Which?\nA. a cat\nB. a dog\n"
OUTPUT = {
    "choices": [{"message": {"role": "assistant", "content": "B"}, "stop_reason": "stop"}],
    "error": None,
    "completion": "B",
}
SCORE = {"value": {"acc": 1.0}, "extracted_prediction": "B", "prediction": "B", "main_score_name": "acc"}
RECORDS: dict[str, tuple[str, Any]] = {
    "vlmevalkit": ("m_MMStar.json", [mcq(1, "B", hit=1, thinking="", extracted="B", split="dev")]),
    "lmms-eval": (
        "t_samples_mmmu_val.jsonl",
        {"doc_id": 1, "target": "B", "input": PROMPT, "filtered_resps": ["B"], "token_counts": [{"input_tokens": 1}],
         "doc": {"id": "x", "options": ["a", "b"]}, "acc": {"id": "x", "answer": "B", "parsed_pred": ["B"], "score": 1}},
    ),
    "inspect": ("log.json", {**inspect_header(1, 1.0), "samples": [inspect_sample(1, "ANSWER: B")]}),
    "flageval": ("blink.json", [{"question_id": 1, "question": PROMPT, "answer": "B", "usage": {}, "reason": ""}]),
    "evalscope": ("x.jsonl", {"index": 1, "model_output": OUTPUT, "input": PROMPT, "target": "B", "sample_score": {"score": SCORE, "sample_metadata": {}}}),
    "opencompass": ("x.json", {"0": {"origin_prompt": [{"role": "HUMAN", "prompt": PROMPT}], "prediction": "B", "gold": "B"}}),
    "aisbench": ("x.jsonl", {"data_abbr": "d", "id": 1, "origin_prompt": PROMPT, "prediction": "B", "gold": "B", "success": True}),
    "rows": ("x.jsonl", {"id": 1, "options": ["a", "b"], "answer": "B", "response": "B", "correct": True, "repeat": 0}),
}  # fmt: skip
ANY = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=5), st.sampled_from(["B", "", "[", "['a']", "\ud800"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=5,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return changed


def read_or_refuse(path: Path, harness: str | None) -> None:
    damage = Damage()
    try:
        spool = spool_rows(open_predictions(path, damage, harness), damage)
    except SnellenError as error:
        assert str(error)
        return
    rows = list(spool)
    spool.close()
    assert len(rows) == len(spool)
    assert all((row.reply is None) == (row.failure is not None) for row in rows)
    assert damage.lines() is not None


@pytest.mark.parametrize("harness", sorted(RECORDS))
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_any_value_in_any_place_is_read_or_refused(harness: str, data: st.DataObject) -> None:
    name, value = RECORDS[harness]
    path = data.draw(st.sampled_from(list(places(value))))
    changed = put(value, path, data.draw(ANY))
    told = data.draw(st.sampled_from([None, harness]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(json.dumps(changed))
        read_or_refuse(file, told)


@given(
    st.binary(max_size=200),
    st.sampled_from(["x.json", "x.jsonl", "x.tsv", "x.xlsx", "x.eval", "x.csv", "x.parquet", "x"]),
)
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_refused_in_one_line(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(data)
        read_or_refuse(file, None)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_log_with_any_byte_changed_is_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        members = [("header.json", inspect_header(1, 1.0)), ("samples/1_epoch_1.json", inspect_sample(1, "ANSWER: B"))]
        file = write_archive(Path(folder) / "log.eval", members)
        whole = bytearray(file.read_bytes())
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        file.write_bytes(bytes(whole))
        read_or_refuse(file, None)
