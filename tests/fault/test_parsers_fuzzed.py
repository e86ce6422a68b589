"""Every parser that reads outside bytes, fed with drawn ones: a value or one line of ours, never another error.

What once broke a parser is kept in CORPUS and tried first, every time. SNELLEN_FUZZ says how many examples each gets.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from figures import note_figure
from snellen.api.bundles import check_data
from snellen.core.config import parse_assignment, read_config_file
from snellen.core.errors import ModelError, SnellenError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image
from snellen.data.files.bundle import read_bundle
from snellen.data.files.records import read_records
from snellen.data.files.rows import read_rows
from snellen.data.images.encode import ImageDoor
from snellen.kits.reform.corpus import read_pickled
from snellen.kits.reform.matlab import read_matrices
from snellen.model.served.connection import Response
from snellen.model.served.http_client import EventLines
from snellen.model.served.replies import decode_body
from snellen.perf.collect import PARTIAL, read_partial
from snellen.perf.files import read_timeline
from snellen.store.damage import look_at_run
from snellen.store.reader import RunReader

EXAMPLES = int(os.environ.get("SNELLEN_FUZZ", "25"))
CORPUS = Path(__file__).with_name("corpus")
"""Inputs that once broke a parser, one file each: PARSER.NAME."""


def file_parser(name: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], None]:
    def parse(content: bytes, folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        read(path)

    return parse


def bundle(content: bytes, folder: Path) -> None:
    (folder / "manifest.json").write_bytes(content)
    (folder / "items.jsonl").write_bytes(content)
    list(read_bundle(folder))


def run_folder(content: bytes, folder: Path) -> None:
    (folder / "run.db").write_bytes(b"SQLite format 3\0" + content)
    look_at_run(folder)
    with RunReader(folder) as reader:
        reader.header()


def response(content: bytes, _: Path) -> None:
    answer = Response(lambda data: None)
    try:
        answer.feed(content)
    except ValueError as error:
        assert len(str(error)) < 1000


def partial(content: bytes, folder: Path) -> None:
    (folder / f"{PARTIAL}.jsonl").write_bytes(content)
    read_partial(folder)


PARSERS: dict[str, Callable[[bytes, Path], None]] = {
    "jsonl": file_parser("a.jsonl", lambda path: list(read_rows(path))),
    "json": file_parser("a.json", lambda path: list(read_rows(path))),
    "csv": file_parser("a.csv", lambda path: list(read_rows(path))),
    "tsv": file_parser("a.tsv", lambda path: list(read_rows(path))),
    "parquet": file_parser("a.parquet", lambda path: list(read_rows(path))),
    "mat": file_parser("a.mat", read_matrices),
    "pickle": file_parser("a.pkl", read_pickled),
    "toml": file_parser("a.toml", read_config_file),
    "records": file_parser("records.jsonl", lambda path: list(read_records(path))),
    "timeline": file_parser("timeline.json", read_timeline),
    "partial": partial,
    "check": file_parser("check.jsonl", lambda path: check_data(path)),
    "image": file_parser("a.png", lambda path: asyncio.run(ImageDoor().encode(Image(str(path)), ImagePolicy()))),
    "bundle": bundle,
    "run": run_folder,
    "assignment": lambda content, _: parse_assignment(content.decode("utf-8", "surrogateescape")) and None,
    "reply": lambda content, _: decode_body(content) and None,
    "events": lambda content, _: list(EventLines().feed(content)) and None,
    "response": response,
}
HEADS = {
    "parquet": b"PAR1",
    "mat": b"MATLAB".ljust(124) + b"\x00\x01IM",
    "pickle": b"\x80\x04",
    "image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "response": b"HTTP/1.1 200 OK\r\n",
    "events": b"data: ",
    "assignment": b"a=",
    "run": b"\x10\0\x01\x01\0@  \0\0\0\x01" + struct.pack(">I", 1),
}
PIECES = st.sampled_from(
    [b'{"id": 1, "question": "?"}', b"\n", b"[", b"{", b'"', b",", b"\\ud800", b"\xff", b"\0", b"1e999", b"-", b"null", b"\r\n\r\n",
     b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"ffffffff\r\n", b"data: [DONE]\n\n", b"=", b"'''", b"[a]", b"requests",
     b'{"requests": [{"start": 1}]}', b"\x0e\0\0\0\xff\xff\xff\x7f"]
)  # fmt: skip
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "requests", "start", "chunks", "question", "benchmarks", "ttfts", "x"]), inner, max_size=4),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode())  # fmt: skip
BYTES = st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=12).map(b"".join), JSONS)


def tries(name: str, content: bytes, folder: Path) -> None:
    """Parse; our own errors are short lines, any other error is the finding."""
    try:
        PARSERS[name](content, folder)
    except (SnellenError, ModelError) as error:
        assert "\n" not in str(error) and len(str(error)) < 2000, f"{name}: {error}"


@pytest.mark.parametrize("name", list(PARSERS))
def test_no_bytes_break_a_parser(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp(name)
    for path in sorted(CORPUS.glob(f"{name}.*")):
        tries(name, path.read_bytes(), folder)

    @settings(max_examples=EXAMPLES, database=None)
    @given(BYTES, st.booleans())
    @example(b"", False)
    def fuzz(content: bytes, with_head: bool) -> None:
        tries(name, HEADS.get(name, b"") + content if with_head else content, folder)

    fuzz()
    if EXAMPLES >= 500:
        note_figure(
            "fault", f"drawn bytes for the parser of {name}", f"{EXAMPLES} examples: a value or one line of ours"
        )
