"""Data files that would fill the memory or break the reader: one line, little memory, little time."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.config import parse_assignment, parse_toml, read_config_file
from snellen.core.errors import ConfigError, DataError
from snellen.data.files.rows import read_rows
from snellen.kits.reform.matlab import read_matrices

CEILING_MB = 512


def element(kind: int, payload: bytes) -> bytes:
    return struct.pack("<II", kind, len(payload)) + payload + b"\0" * (-len(payload) % 8)


def matrix(flags: int, dims: tuple[int, ...], *parts: bytes, name: bytes = b"labels") -> bytes:
    head = element(6, struct.pack("<II", flags, 0)) + element(5, struct.pack(f"<{len(dims)}i", *dims))
    return element(14, head + element(1, name) + b"".join(parts))


def mat(*elements: bytes) -> bytes:
    return b"MATLAB".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def nested(depth: int) -> bytes:
    inner = matrix(6, (1, 1), element(9, struct.pack("<d", 1.0)))
    for _ in range(depth):
        inner = matrix(1, (1, 1), inner)
    return inner


def packed(content: bytes) -> bytes:
    body = zlib.compress(content, 9)
    return struct.pack("<II", 15, len(body)) + body


HUGE = 2**31 - 1
MATS = {
    "dims of a struct": mat(matrix(2, (HUGE, HUGE), element(5, struct.pack("<i", 8)), element(1, b""))),
    "dims without names": mat(matrix(2, (HUGE,), element(5, struct.pack("<i", 8)), element(1, b"x".ljust(8, b"\0")))),
    "negative dims": mat(matrix(2, (-1, 5), element(5, struct.pack("<i", 8)), element(1, b"x".ljust(8, b"\0")))),
    "names of no width": mat(matrix(2, (1,), element(5, struct.pack("<i", 0)), element(1, b"x".ljust(8, b"\0")))),
    "a bomb": mat(packed(bytes(300 * 2**20))),
    "bombs in a row": mat(*[packed(element(14, bytes(8 * 2**20)))] * 20),
    "packed in packed": mat(packed(packed(matrix(6, (1, 1), element(9, struct.pack("<d", 1.0)))))),
    "deep cells": mat(nested(200)),
    "no parts": mat(element(14, b"")),
    "an odd text": mat(matrix(4, (1, 1), element(9, b"12345678"))),
}


@pytest.mark.parametrize("name", MATS)
def test_a_hostile_mat_file_is_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "labels.mat"
    path.write_bytes(MATS[name])
    with pytest.raises(DataError, match=r"labels\.mat") as caught:
        read_matrices(path)
    assert "\n" not in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(st.integers(128, 400), st.binary(min_size=1, max_size=8))
def test_no_changed_bytes_of_a_mat_file_make_more_than_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, change: bytes
) -> None:
    values = [
        matrix(4, (1, 1), element(16, b"word"), name=b""),
        matrix(6, (1, 1), element(9, struct.pack("<d", 1.0)), name=b""),
    ]
    names = element(5, struct.pack("<i", 8)) + element(1, b"a".ljust(8, b"\0") + b"b".ljust(8, b"\0"))
    content = bytearray(mat(matrix(2, (1, 1), names, *values)))
    content[at : at + len(change)] = change
    path = tmp_path_factory.getbasetemp() / "flipped.mat"
    path.write_bytes(bytes(content))
    try:
        read_matrices(path)
    except DataError as error:
        assert "\n" not in str(error)


def test_a_parquet_cell_that_unpacks_without_measure_is_refused_before_it_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    rows = {"one": ["x" * (100 * 2**20)], "many": ["y" * 2**20] * 600}
    for name, values in rows.items():
        path = tmp_path / f"{name}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"question": values}), path, compression="zstd")
        assert path.stat().st_size < 200_000
        with pytest.raises(DataError, match="unpack"):
            list(read_rows(path))


def test_wide_parquet_rows_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import os

    values = [os.urandom(2**20) for _ in range(40)]
    path = tmp_path / "wide.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"image": values}), path, compression="none", use_dictionary=False)
    assert [row["image"] for _, row in read_rows(path)] == values


TOMLS = {
    "one key": ".".join(["a"] * 20_000) + " = 1",
    "a header": "[" + ".".join(["a"] * 20_000) + "]",
    "spaced": " . ".join(["'a'"] * 10_000) + " = 1",
    "inline": "x = {" + ".".join(["a"] * 20_000) + " = 1}",
    "long": "a = 1\n" * 300_000,
}


@pytest.mark.parametrize("name", TOMLS)
def test_toml_that_grows_by_the_square_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "card.toml"
    path.write_text(TOMLS[name])
    with pytest.raises(ConfigError, match=r"card\.toml") as caught:
        read_config_file(path)
    assert len(str(caught.value)) < 300


def test_usual_toml_is_read_as_before() -> None:
    assert parse_toml("a.b.c = 1\n[x.y]\nz = '...'")["x"] == {"y": {"z": "..."}}
    assert parse_toml("a = '" + "." * 500 + "'")["a"] == "." * 500
    assert parse_assignment("a=" + "{" + ".".join(["b"] * 5000) + "=1}")[0] == "a"


CHILD = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
import test_data_bombs as bombs
path = Path({folder!r}) / "labels.mat"
before = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
for name, content in bombs.MATS.items():
    path.write_bytes(content)
    try:
        bombs.read_matrices(path)
    except bombs.DataError:
        pass
for text in bombs.TOMLS.values():
    try:
        bombs.parse_toml(text)
    except ValueError:
        pass
print((int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) - before) // 1024)
"""


def test_all_of_them_together_stay_below_the_ceiling(tmp_path: Path) -> None:
    child = CHILD.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    found = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=60, check=True)
    assert int(found.stdout) < CEILING_MB
