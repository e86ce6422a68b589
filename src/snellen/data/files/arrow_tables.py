"""Parquet and Arrow files to rows, as `datasets`, `feather` and hubs write them (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, MissingExtra

BATCH_LIMIT = 64 * 2**20
"""So many bytes of a Parquet file are unpacked at once; no cell is larger."""
BOMB_RATIO = 1000
"""What is packed better than this is no data."""
ROWS_AT_ONCE = 256
IPC_FILE = b"ARROW1"
"""How an Arrow file (and a Feather file of version 2) begins; one without it is a stream."""
FEATHER_1 = b"FEA1"
HUB_FACTS = b"huggingface"
"""Where the schema of a hub's table says what its columns are."""


def read_parquet(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("parquet", f"reading {file.name}") from None
    try:
        content = pyarrow.parquet.ParquetFile(file)
        batches = content.iter_batches(batch_size=_rows_at_once(content.metadata, file))
        rows = (row for batch in batches for row in _bounded(batch, file).to_pylist())
        yield from enumerate(_labelled(_dated(rows, content.schema_arrow), content.schema_arrow.metadata), 1)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file.name} is not valid Parquet: {error}") from None


def read_arrow(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of an Arrow file or stream, as `datasets` and `feather` write them."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra("parquet", f"reading {file.name}") from None
    try:
        with pyarrow.memory_map(str(file)) as source:
            yield from enumerate(_rows_of(_batches(pyarrow.ipc, source, file), file), 1)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file.name} is not a valid Arrow file: {error}") from None


def _rows_of(batches: Iterator[Any], file: Path) -> Iterator[dict[str, Any]]:
    for batch in batches:
        rows = (row for piece in _pieces(batch) for row in _bounded(piece, file).to_pylist())
        yield from _labelled(_dated(rows, batch.schema), batch.schema.metadata)


def _dated(rows: Iterator[dict[str, Any]], schema: Any) -> Iterator[dict[str, Any]]:
    """Return rows with days and times as texts: a day that a table keeps as its first moment is a day."""
    columns = [field.name for field in schema if str(field.type).startswith(("timestamp", "date", "time"))]
    return (row | {column: _moment(row[column]) for column in columns} for row in rows) if columns else rows


def _moment(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else value


def _labelled(rows: Iterator[dict[str, Any]], metadata: Mapping[bytes, bytes] | None) -> Iterator[dict[str, Any]]:
    """Yield rows with the names of class labels: hubs store their numbers, and the names beside the table."""
    names = _class_names(metadata or {})
    for row in rows:
        for column, labels in names.items():
            number = row.get(column)
            if isinstance(number, int):
                row[column] = labels[number] if 0 <= number < len(labels) else None  # -1: kept back
        yield row


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    try:
        features = msgspec.json.decode(metadata[HUB_FACTS])["info"]["features"]
        labels = {name: kind for name, kind in features.items() if kind.get("_type") == "ClassLabel"}
        return {name: list(kind["names"]) for name, kind in labels.items()}
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return {}


def _batches(ipc: Any, source: Any, file: Path) -> Iterator[Any]:
    with file.open("rb") as stream:
        head = stream.read(len(IPC_FILE))
    if head.startswith(FEATHER_1):
        raise DataError(f"{file.name} is a Feather file of version 1: write it again as version 2, or as Parquet")
    if head != IPC_FILE:
        yield from ipc.open_stream(source)
        return
    reader = ipc.open_file(source)
    yield from map(reader.get_batch, range(reader.num_record_batches))


def _pieces(batch: Any) -> Iterator[Any]:
    """Yield a batch in pieces that are small as Python objects too."""
    a_row = max(1, batch.nbytes // max(1, batch.num_rows))
    size = max(1, min(ROWS_AT_ONCE, BATCH_LIMIT // a_row))
    yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))


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
    return max(1, min(ROWS_AT_ONCE, BATCH_LIMIT // widest))


def _bounded(batch: Any, file: Path) -> Any:
    """Return a batch unless it is far larger than the file said: values that stand once and are meant many times."""
    if batch.nbytes > 4 * BATCH_LIMIT:
        raise DataError(f"{file.name}: {batch.num_rows} rows unpack to {batch.nbytes:,} bytes")
    return batch
