"""Reading of prediction files: both forms, any damage, bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.data.files import jsonstream
from snellen.data.files.jsonstream import iterate_records

BAD = {
    b"": "the file is empty",
    b"  \n": "the file is empty",
    b"hello": "starts with 'h'",
    b"null": "starts with 'n'",
    b'[{"a":1},{"b":2}': "after record 2: the file is cut off",
    b'[{"a":1},{"b":': "record 2 is cut off",
    b'[{"a":1} {"b":2}]': "after record 1: found '{'",
    b'[{"a":1}]x': "after record 1: found 'x' after the end",
    b'[{"a":1},]': "record 2 starts with ']'",
    b"[1]": "record 1 starts with '1'",
    b'[{"a":NaN}]': "record 1 holds NaN",
    b'[{"a":1},{"a":-Infinity}]': "record 2 holds -Infinity",
    b'[{"a":1},{"a":"\xff"}]': "record 2 is not UTF-8 at byte 15",
    b'[{"a":"\xe6\x97': "record 1 is not UTF-8",
    b'[{"a":' + b"[" * 100_000: "record 1 is nested too deeply",
    b'[{"a":' + b"9" * 5_000 + b"}]": "record 1 is cut off or not valid",
    b'{"a":1}\n{"b"\n{"c":1}': "record 2 is cut off or not valid",
}


@pytest.mark.parametrize(("data", "message"), BAD.items(), ids=lambda value: str(value)[:30])
def test_damage_is_named_with_its_record(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(iterate_records(path))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(DataError, match="cannot read"):
            list(iterate_records(path))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=8),
    st.sampled_from([None, 2]),
    st.booleans(),
    st.integers(1, 9),
)
def test_whatever_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict], indent: int | None, as_lines: bool, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("r") / "p.json"
    whole = json.dumps(records, indent=indent, ensure_ascii=False)
    lines = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    path.write_bytes(("\ufeff" + (lines if as_lines and records else whole)).encode("utf-8", "surrogatepass"))
    usual, jsonstream.CHUNK_BYTES = jsonstream.CHUNK_BYTES, chunk
    try:
        assert [record for _, record in iterate_records(path)] == records
    finally:
        jsonstream.CHUNK_BYTES = usual


def test_a_record_without_end_is_refused_before_the_memory_is_full(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(b'[{"a":1},{"prediction":"' + b"x" * (3 << 20))
    with pytest.raises(DataError, match="record 2 is longer than 1 MiB or has no end"):
        list(iterate_records(path, max_bytes=1 << 20))


MEASURE = """
import sys
from snellen.core.errors import DataError
from snellen import score_predictions
before = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
try:
    print(score_predictions(sys.argv[1], "SingleChoice", profile="reform", eval_stability=True)["metrics"]["accuracy"]["value"])
except DataError as error:
    print(error)
print((int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) - before) / 1024)
"""


def run_measured(path: Path) -> tuple[str, float]:
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    result, grown_mb = done.stdout.strip().split("\n")
    return result, float(grown_mb)


def test_a_big_one_line_file_is_scored_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    filler = "x" * 2000
    with path.open("w") as out:
        out.write("[")
        for i in range(33_000):
            mark = "(A)" if i % 4 else "(B)"
            out.write(
                f'{"," if i else ""}{{"sample_id": {i}, "answer": 0, "answer_options": ["y", "n"], "prediction": "{mark} {filler}"}}'
            )
        out.write("]")
    assert path.stat().st_size > 64 << 20
    result, grown_mb = run_measured(path)
    assert float(result) == 0.75
    assert grown_mb < 120


@pytest.mark.parametrize("start", ["", "[", '["', '[{"sample_id": 1, "prediction": "'])
def test_a_big_line_of_nothing_is_refused_in_little_memory(tmp_path: Path, start: str) -> None:
    path = tmp_path / "big.json"
    with path.open("w") as out:
        out.write(start)
        for _ in range(64):
            out.write("a" * (1 << 20))
    result, grown_mb = run_measured(path)
    assert result.startswith(str(path))
    assert grown_mb < 150
