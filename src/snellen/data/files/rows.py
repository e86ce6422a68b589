"""Files to rows: JSON, JSONL, CSV, TSV and Parquet, read lazily, each row with its number for error messages."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, MissingExtra, UsageError

Row = dict[str, Any]
NumberedRow = tuple[int, Row]

CSV_FIELD_LIMIT = 64 * 2**20
"""A cell may hold a base64 image; Python's default limit of 128 kB would refuse it."""

BATCH_LIMIT = 64 * 2**20
"""So many bytes of a Parquet file are unpacked at once; no cell is larger."""
BOMB_RATIO = 1000
"""What is packed better than this is no data."""

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_rows(path: str | Path) -> Iterator[NumberedRow]:
    """Yield (row number from 1, row) of a data file; the format follows its ending."""
    file = Path(path)
    if file.is_dir():
        raise DataError(
            f"{str(path)!r} is a folder; name the table in it that has the questions ({', '.join(READERS)})"
        )
    if not file.is_file():
        raise DataError(f"data file {str(path)!r} does not exist")
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise UsageError(f"data file {str(path)!r}: unknown ending {file.suffix!r}; known: {', '.join(READERS)}")
    return reader(file)


def _read_jsonl(file: Path) -> Iterator[NumberedRow]:
    decode = msgspec.json.Decoder().decode
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = decode(line)
            except NOT_JSON:
                yield from _read_odd_line(line, file, number)
            else:
                yield number, row if type(row) is dict else _row(row, file, number)


def _read_odd_line(line: bytes, file: Path, number: int) -> Iterator[NumberedRow]:
    """Yield the row of a line that begins with a byte order mark, none of a blank line, and refuse any other."""
    text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
    if not text:
        return
    try:
        row = msgspec.json.decode(text)
    except NOT_JSON as error:
        raise DataError(f"{file.name} line {number} is not valid JSON: {error}") from None
    yield number, _row(row, file, number)


def _read_json(file: Path) -> Iterator[NumberedRow]:
    try:
        value = msgspec.json.decode(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except NOT_JSON as error:
        raise DataError(f"{file.name} is not valid JSON: {error} (one object a line? name it .jsonl)") from None
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        raise DataError(f'{file.name} must hold a list of records, or {{"data": […]}}')
    for number, row in enumerate(value, 1):
        yield number, _row(row, file, number)


def _read_delimited(file: Path, delimiter: str) -> Iterator[NumberedRow]:
    csv.field_size_limit(CSV_FIELD_LIMIT)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            delimiter = _delimiter(lines.readline(), delimiter)
            lines.seek(0)
            reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
            yield from ((number, _check_cells(row, file, number)) for number, row in enumerate(reader, 1))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file.name} cannot be read: {error}") from None


def _delimiter(header: str, usual: str) -> str:
    """Return what divides the cells of a header: the usual mark, or the semicolon or tab of other countries' sheets."""
    if usual in header or usual != ",":
        return usual
    return next((mark for mark in (";", "\t") if mark in header), usual)


def _check_cells(row: Row, file: Path, number: int) -> Row:
    if None in row or None in row.values():
        raise DataError(f"{file.name} record {number} has {'more' if None in row else 'fewer'} cells than the header")
    return row


def _read_parquet(file: Path) -> Iterator[NumberedRow]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("parquet", f"reading {file.name}") from None
    try:
        content = pyarrow.parquet.ParquetFile(file)
        batches = content.iter_batches(batch_size=_rows_at_once(content.metadata, file))
        yield from enumerate((row for batch in batches for row in _bounded(batch, file).to_pylist()), 1)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file.name} is not valid Parquet: {error}") from None


def _rows_at_once(facts: Any, file: Path) -> int:
    """Return how many rows may be read together; refuse a file that says of itself that it is a bomb."""
    widest = 1
    for number in range(facts.num_row_groups):
        group = facts.row_group(number)
        columns = [group.column(place) for place in range(group.num_columns)]
        for column in columns:
            size, packed = column.total_uncompressed_size, max(1, column.total_compressed_size)
            if size > BATCH_LIMIT and (size > BOMB_RATIO * packed or size > BATCH_LIMIT * max(1, column.num_values)):
                raise DataError(
                    f"{file.name}: column {column.path_in_schema!r} unpacks from {packed:,} to {size:,} bytes"
                )
        widest = max(widest, sum(column.total_uncompressed_size for column in columns) // max(1, group.num_rows))
    return max(1, min(256, BATCH_LIMIT // widest))


def _bounded(batch: Any, file: Path) -> Any:
    """Return a batch unless it is far larger than the file said: values that stand once and are meant many times."""
    if batch.nbytes > 4 * BATCH_LIMIT:
        raise DataError(f"{file.name}: {batch.num_rows} rows unpack to {batch.nbytes:,} bytes")
    return batch


def _row(value: Any, file: Path, number: int) -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{file.name} record {number} is a {type(value).__name__}, not an object")
    return value


READERS: dict[str, Callable[[Path], Iterator[NumberedRow]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": partial(_read_delimited, delimiter=","),
    ".tsv": partial(_read_delimited, delimiter="\t"),
    ".parquet": _read_parquet,
}
